//! What a tool says of itself, what it is asked, and what it answers.

pub mod findings;
mod made;
pub mod web_page;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use self::{findings::Findings, web_page::WebPage};
use crate::{
    block::Block,
    digest::Digest,
    ids::{AgentId, ToolName, ToolUseId},
    run::PromptBlock,
    step3_context_assembly::source8_tool_results::escape_harness_tags,
};

/// The tool by which the model asks a person. The rules know it by its name, as they do those of settings.
pub const ASK_USER_QUESTION: &str = "AskUserQuestion";

/// Images and documents of one result that are shown.
pub(crate) const MAX_MEDIA: usize = 20;

/// What a tool declares about itself. Fixed while a session lives, so that the request prefix that
/// lists the tools stays byte-identical.
///
/// Serialised into the transcript's setup, so that a replay knows the tools without the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: ToolName,
    /// What the model reads about it.
    pub description: Arc<str>,
    /// JSON schema of the input, as the text of an object.
    pub input_schema: Arc<str>,
    /// What it can change.
    pub effect: ToolEffect,
    /// What else may run at the same time.
    pub concurrency: Concurrency,
    /// What the permission gate looks at.
    pub access: Access,
    /// Characters of output that the model sees at most; `None` means that budget reduction leaves
    /// its results alone.
    pub output_cap: Option<u32>,
    /// Milliseconds one call may take before it is cancelled; `None` means no limit of ours.
    pub timeout_ms: Option<u64>,
    /// Repeating the same call with the same result is not a sign of a loop.
    pub polls: bool,
}

/// What a tool can change. Decides whether the intent must be durable before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolEffect {
    /// Nothing outside the session.
    ReadOnly,
    /// Something that can be seen from outside.
    SideEffects,
    /// Something that cannot be taken back.
    Destructive,
}

/// What else may run at the same time as a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Concurrency {
    /// No other call runs at the same time.
    Alone,
    /// Neighbouring calls that may, too; at most `max` of this tool at once.
    Together {
        /// Calls of this tool at once: Read and Grep 10, WebFetch 3, Agent 5.
        max: u32,
    },
}

/// What the permission gate looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Access {
    /// Allowed unless a rule says otherwise (TodoWrite, Agent).
    Free,
    /// Reads the path in this field of the input; a missing field means the working directory.
    ReadPath {
        /// Name of the input's field that holds the path.
        field: Cow<'static, str>,
    },
    /// Changes the path in this field of the input.
    WritePath {
        /// Name of the input's field that holds the path.
        field: Cow<'static, str>,
    },
    /// Runs the shell command in this field of the input.
    Command {
        /// Name of the input's field that holds the command.
        field: Cow<'static, str>,
    },
    /// Needs a rule or an answer: network, embedder's tools.
    Ask,
    /// Needs an answer each time, in every mode and whatever rules allow: a person decides. For the tools
    /// AskUserQuestion and ExitPlanMode a hook may answer that gives what the person would.
    Person,
}

/// One call, as it will be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool use that asked for it.
    pub id: ToolUseId,
    /// Name of the tool to run.
    pub name: ToolName,
    /// The input, JSON text of an object.
    pub input: Arc<str>,
}

impl ToolCall {
    /// Binds decisions to exactly this action: covers id, name and input.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(self.input.len() + 64);
        for part in [self.id.as_str(), self.name.as_str(), &self.input] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Digest::of(&bytes)
    }

    /// Returns a digest that is the same for the same action whatever its id; for noticing repetitions.
    pub(crate) fn action(&self) -> Digest {
        // No tool has a zero in its name, so the name ends where it seems to.
        Digest::of(&[self.name.as_str().as_bytes(), b"\0", self.input.as_bytes()].concat())
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// What the model reads. Never empty: an empty output says so.
    pub text: String,
    /// What programs read: JSON text of the structured result (`toolUseResult` in transcripts).
    pub structured: Option<String>,
    /// How the call failed; `None` if it succeeded.
    pub error: Option<ToolErrorKind>,
    /// The exit code of the process, if there was one.
    pub exit_code: Option<i32>,
    /// From start to end, in milliseconds.
    pub duration_ms: u64,
    /// What the model does not see of the output, for the record of the call; `None` when it sees all.
    pub truncation: Option<Truncation>,
    /// Images and documents for the model to see, after the text.
    pub media: Vec<PromptBlock>,
    /// What the session should remember.
    pub notes: Vec<ToolNote>,
}

impl ToolOutcome {
    /// Makes a success. An empty text is replaced by one that says so.
    pub fn ok(text: impl Into<String>) -> Self {
        let text = text.into();
        let text = if text.is_empty() { "(no output)".into() } else { text };
        Self {
            text,
            structured: None,
            error: None,
            exit_code: None,
            duration_ms: 0,
            truncation: None,
            media: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Makes the outcome of a call whose executor crashed: what it did is unknown, and it is not run again.
    pub fn crashed() -> Self {
        let text = "The tool crashed. What it did until then is not known; it was not run again.";
        Self::failed(ToolErrorKind::Crashed, text)
    }

    /// Makes a failure that the model reads.
    pub fn failed(kind: ToolErrorKind, text: impl Into<String>) -> Self {
        Self { error: Some(kind), ..Self::ok(text) }
    }

    /// Adds the structured result. A value that cannot be serialised is left out.
    #[must_use]
    pub fn with_structured(mut self, value: &impl Serialize) -> Self {
        self.structured = serde_json::to_string(value).ok();
        self
    }

    /// Adds images and documents, of which the first `MAX_MEDIA` are shown.
    #[must_use]
    pub fn with_media(mut self, media: impl IntoIterator<Item = PromptBlock>) -> Self {
        self.media.extend(media);
        self.media.truncate(MAX_MEDIA);
        self
    }

    /// Returns images and documents, as a message holds them.
    pub(crate) fn media_blocks(&self) -> Vec<Block> {
        self.media.iter().map(|it| it.block().clone()).collect()
    }

    /// Makes the block that answers the tool use. What could be taken for a mark of the harness in it is made harmless.
    pub fn to_block(&self, id: &ToolUseId) -> Block {
        let text = escape_harness_tags(&self.text);
        Block::media_result(id, &text, &self.media_blocks(), self.error.is_some())
    }
}

/// Why a call failed. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The input does not fit the schema.
    InvalidInput,
    /// There is no such tool.
    UnknownTool,
    /// A rule, a hook or a person denied it.
    PermissionDenied,
    /// The cap on calls per turn was reached.
    TooManyCalls,
    /// The tool ran and failed.
    Failed,
    /// It took too long.
    TimedOut,
    /// It was stopped from outside; what it did until then is not known.
    Interrupted,
    /// The tool panicked, or its actor ended without a result.
    Crashed,
    /// A limit of the tree of agents was reached.
    LimitReached,
}

/// Output that was left out of what the model sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Truncation {
    /// Characters of the result before it was cut.
    pub original_chars: u64,
    /// Characters of the result that were kept.
    pub kept_chars: u64,
    /// Where the whole output lies, if it was kept.
    pub stored_at: Option<String>,
}

/// Something a call changed in what the session knows. Folded in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolNote {
    /// The content of a file is known to the model.
    FileSeen {
        /// Absolute path of the file, without symbolic links.
        path: String,
        /// State of the file when it was read or written.
        seen: FileSeen,
    },
    /// The shell's working directory is now this one.
    CwdChanged {
        /// Absolute path of the directory.
        path: String,
    },
    /// The whole list of tasks.
    Todos(Vec<Todo>),
    /// A sub-agent has ended.
    AgentEnded {
        /// Id of the sub-agent.
        agent: AgentId,
        /// Hash of the last record of its transcript.
        head: Option<Digest>,
    },
    /// The sub-agents of a call with several prompts have ended. Where there is more than one finding, a model puts
    /// them together.
    AgentsEnded {
        /// What became of each.
        #[doc(hidden)]
        findings: Findings,
    },
    /// A page was fetched. Where it has a text, a model answers what is asked about it.
    PageFetched {
        /// The page, with the question.
        #[doc(hidden)]
        page: WebPage,
    },
    /// The result shows how a sub-agent in the background ended, so that it is not reported again.
    BackgroundAgentEnded {
        /// Id of the sub-agent.
        agent: AgentId,
        /// The call that started it.
        call: ToolUseId,
        /// Its task in a few words, on one line.
        description: String,
        /// The code of the state in which it ended.
        state: String,
    },
}

/// The state of a file when the model saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileSeen {
    /// Modification time in nanoseconds since 1970.
    pub mtime_ns: u64,
    /// Size of the file, in bytes.
    pub size: u64,
    /// Digest of the file's bytes.
    pub digest: Digest,
    /// Only a part was shown; not enough to overwrite the file.
    pub partial: bool,
    /// Of a notebook of which a part was shown: the first cell that was, counted from 0, and the one after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<[u32; 2]>,
}

/// One task of the list that TodoWrite keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// The task in words, as something under way ("Running tests").
    #[serde(rename = "activeForm")]
    pub active_form: String,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Work on the item has not begun.
    Pending,
    /// Work on the item is under way.
    InProgress,
    /// Work on the item is finished.
    Completed,
}

/// What a session remembers for its tools. Plain data, owned by the session, given to calls as a
/// snapshot. On resume only the list of tasks is restored, so a file must be read again before it is
/// changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolMemory {
    /// Files whose content the model knows, by absolute path.
    pub files: BTreeMap<String, FileSeen>,
    /// The shell's working directory, if it is not the session's.
    pub cwd: Option<String>,
    /// The list of tasks.
    pub todos: Vec<Todo>,
}

impl ToolMemory {
    /// Applies what a call changed.
    pub fn fold(&mut self, note: &ToolNote) {
        match note {
            ToolNote::FileSeen { path, seen } => {
                self.files.insert(path.clone(), *seen);
            }
            ToolNote::CwdChanged { path } => self.cwd = Some(path.clone()),
            ToolNote::Todos(todos) => self.todos.clone_from(todos),
            ToolNote::AgentEnded { .. }
            | ToolNote::AgentsEnded { .. }
            | ToolNote::PageFetched { .. }
            | ToolNote::BackgroundAgentEnded { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
