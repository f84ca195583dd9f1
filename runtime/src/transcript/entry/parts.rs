//! What records are made of, and their names on the wire.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

use super::{RecordKind, Stored};
use crate::{
    catalogue::Money,
    digest::Digest,
    ids::{AgentId, EntryId, RunId, ShellId, ToolUseId},
    permission::PermissionMode,
    time::Timestamp,
    tokens::Tokens,
    tool::ToolNote,
};

/// The most that a model call can have used whose usage is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnconfirmedUsage {
    /// Tokens of all kinds together.
    pub tokens: Tokens,
    /// What they cost; nothing where the price is not known.
    pub cost: Money,
}

/// A shaper stage that did not run; on the wire a pair, since every turn has five of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PassedStage {
    /// Name of the stage that did nothing.
    pub stage: Cow<'static, str>,
    /// Why the stage did nothing.
    pub why: Cow<'static, str>,
}

impl Serialize for PassedStage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.stage, &self.why).serialize(serializer)
    }
}

/// An answer that is not a line: a summary, or one that was cut, refused or paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardedAnswer {
    /// Wire name of the stop reason.
    pub stop_reason: String,
    /// Its blocks, a JSON list.
    pub content: Stored,
}

/// Head of a sub-agent's transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidechainHead {
    /// Id of the sub-agent.
    pub agent: AgentId,
    /// Hash of its last record.
    pub head: Digest,
    /// Those of the other sub-agents of the same call, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SidechainHead>,
}

impl SidechainHead {
    /// Names the last record of the transcript of one sub-agent.
    pub fn new(agent: AgentId, head: Digest) -> Self {
        Self { agent, head, others: Vec::new() }
    }

    /// Returns the heads that notes of a call name, those of all its sub-agents.
    pub(crate) fn of(notes: &[ToolNote]) -> Option<Self> {
        let one = |agent: &Option<AgentId>, head: &Option<Digest>| {
            Some(Self::new(agent.clone()?, (*head)?))
        };
        let each = |note: &ToolNote| match note {
            ToolNote::AgentEnded { agent, head } => {
                one(&Some(agent.clone()), head).into_iter().collect()
            }
            ToolNote::AgentsEnded { findings } => {
                findings.agents().iter().filter_map(|it| one(&it.agent, &it.head)).collect()
            }
            _ => Vec::new(),
        };
        let mut all = notes.iter().flat_map(each);
        let first = all.next()?;
        Some(Self { others: all.collect(), ..first })
    }

    /// Returns the notes of a call that name the same heads.
    pub(crate) fn notes(&self) -> impl Iterator<Item = ToolNote> {
        let all = std::iter::once(self).chain(&self.others);
        all.map(|it| ToolNote::AgentEnded { agent: it.agent.clone(), head: Some(it.head) })
    }
}

/// The links that the paths of a shell command lead through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinksRecord {
    /// Id of the tool use, as the model issued it.
    pub call: ToolUseId,
    /// The `LinksSeen` of the permission gate, as JSON text.
    pub seen: Stored,
}

/// How a sub-agent in the background is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundRecord {
    /// The name of the sub-agent in the tree.
    pub agent: AgentId,
    /// The call that started it.
    pub call: ToolUseId,
    /// Its task in a few words.
    pub description: String,
    /// The code of a [`BackgroundState`](crate::ports::agents::BackgroundState).
    pub state: String,
    /// Whether the model has not learned of its end; written when the session is closed.
    #[serde(default, rename = "untold", skip_serializing_if = "std::ops::Not::not")]
    pub is_unreported: bool,
}

/// A message that a sub-agent was sent while it was at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// The line of the conversation that shows it, once it is shown.
    pub message: EntryId,
    /// The text of the message, or where it is kept.
    pub text: Stored,
}

/// A command that goes on in the background, or has ended there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellRecord {
    /// The name of the command: `bash_1` and so on.
    pub shell: ShellId,
    /// The beginning of the command.
    pub command: String,
    /// The code of a [`ShellState`](crate::ports::shells::ShellState).
    pub state: String,
    /// The exit code of the shell, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether the model has not learned of its end; written when the session is closed.
    #[serde(default, rename = "untold", skip_serializing_if = "std::ops::Not::not")]
    pub is_unreported: bool,
}

/// Bytes of a transcript that are not a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedBytes {
    /// Offset in the file at which they begin.
    pub offset: u64,
    /// Number of the bytes.
    pub length: u64,
    /// Digest of the bytes.
    pub digest: Digest,
}

/// The mode that the session was put into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChange {
    /// The mode that holds from the next decision on.
    pub mode: PermissionMode,
    /// The call that changed it; `None`: somebody did from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolUseId>,
}

/// Something that the harness did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The clock reading of the input that caused it, in milliseconds since 1970.
    pub at: Timestamp,
    /// The run; `None` for records of the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The turn within the run, from 1; 0 outside turns.
    #[serde(default)]
    pub turn: u32,
    /// What the line records.
    #[serde(flatten)]
    pub what: RecordKind,
    /// Whether it stands on the line of the record before it, if the two come in one write.
    #[serde(skip)]
    pub shares_line: bool,
}

impl Record {
    /// Makes a record that has a line of its own.
    #[doc(hidden)]
    pub fn new(at: Timestamp, run: Option<RunId>, turn: u32, what: RecordKind) -> Self {
        Self { at, run, turn, what, shares_line: false }
    }
}

/// A part that the model was shown in a message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPart {
    /// The id of the message that shows the part.
    pub entry: EntryId,
    /// The name of the part.
    pub part: String,
    /// Place of its source among the nine, from 0.
    pub source: u8,
    /// Digest of what it showed; zeros: that it is gone.
    pub state: Digest,
    /// Number of characters that the part takes.
    pub chars: u64,
}

/// A change of the view that later turns have of the conversation, until its next compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewChange {
    /// The newest message of the view.
    pub after: EntryId,
    /// First and last of messages in a row that are not shown any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<(EntryId, EntryId)>,
    /// Texts that are shown in part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<CutText>,
    /// Messages whose pictures and documents are left out, whatever is compacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_media: Vec<EntryId>,
}

/// A text of a message that is shown in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutText {
    /// The id of the message that shows the part.
    pub entry: EntryId,
    /// Which of its blocks, from 0.
    pub block: u32,
    /// Bytes of the text as it was shown before with which it still begins.
    pub head: u64,
    /// What is shown between the beginning and the end that stay.
    pub shown: String,
    /// Bytes of the text as it was shown before with which it still ends.
    pub tail: u64,
}

impl ViewChange {
    /// No change yet, of a view whose newest message is this one.
    pub(crate) fn after(after: EntryId) -> Self {
        Self { after, dropped: Vec::new(), cut: Vec::new(), without_media: Vec::new() }
    }
}

/// A prompt that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithdrawnPrompt {
    /// The line of the prompt.
    pub prompt: EntryId,
}

impl RecordKind {
    /// Returns the `kind` on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunStart { .. } => "run_start",
            Self::RunResumed { .. } => "run_resumed",
            Self::TurnStep { .. } => "turn_step",
            Self::SourcesSeen { .. } => "sources_seen",
            Self::ContextAppended { .. } => "context_appended",
            Self::View(_) => "view",
            Self::ShapersPassed { .. } => "shapers_passed",
            Self::Shaper { .. } => "shaper",
            Self::ModelAttempt { .. } => "model_attempt",
            Self::Path { .. } => "path",
            Self::Links { .. } => "links",
            Self::Hook { .. } => "hook",
            Self::Permission { .. } => "permission",
            Self::Question { .. } => "question",
            Self::Passed { .. } => "passed",
            Self::Approval { .. } => "approval",
            Self::Mode(_) => "mode",
            Self::ToolIntent { .. } => "tool_intent",
            Self::ToolEnd { .. } => "tool_end",
            Self::Shell { .. } => "shell",
            Self::BackgroundAgent(_) => "background_agent",
            Self::AgentMessage(_) => "agent_message",
            Self::TurnEnd { .. } => "turn_end",
            Self::RunEnd { .. } => "run_end",
            Self::PromptWithdrawn { .. } => "prompt_withdrawn",
            Self::Alert { .. } => "alert",
            Self::Repair { .. } => "repair",
        }
    }
}
