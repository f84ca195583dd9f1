//! Sub-agents whose session is gone and whose transcript was left open: it is closed in their place.
//!
//! A killed process leaves them, and an agent that crashed. They are not resumed, so their run
//! ends as crashed, and the one that called them learns what became of them. All of this is the work
//! of a leaf: it reads whole files, and waits for writers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::{
    agent_text::{cut, made_safe, quoted},
    block::BlockKind,
    entropy::EntropyStream,
    ids::{AgentId, EntryId, ToolUseId},
    message::Role,
    ports::{
        Clock,
        agents::{BackgroundAgent, BackgroundState, EndedAgent},
    },
    run::RunEnd,
    session::WriteTicket,
    step1_settings_resolution::Durability,
    tool::{ToolErrorKind, ToolOutcome},
    transcript::{
        entry::{Line, LineFrame, Record, RecordKind, StoredText},
        load::{LoadAs, Loaded, OpenRun, UsageTotals},
    },
    turn::{DenialReason, OpenTurn, close},
};
use ractor::ActorRef;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::meta::AgentMeta;
use crate::{
    ports::transcript_store::{TranscriptStore, layout::TranscriptPaths},
    storage::{
        archive::{ArchiveMsg, OpenOutcome, OpenTranscript, WriterHandle},
        redaction::Redaction,
        transcript_index,
        transcript_writer::{Append, Recorded},
    },
};

/// Bytes of an agent's last words that its caller is given; more than a report needs, and less
/// than what a result may hold.
const MAX_WORDS: usize = 20_000;

/// Bytes at the beginning of a transcript in which its first message is.
const MAX_FIRST_LINES: u64 = 1024 * 1024;

/// A sub-agent as its transcript shows it.
pub(in crate::session) struct FoundAgent {
    pub(in crate::session) agent: AgentId,
    file: PathBuf,
    meta: AgentMeta,
    loaded: Loaded,
    /// Where it worked: its lines say so.
    cwd: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct Cwd {
    cwd: Option<Arc<str>>,
}

/// Reads the transcripts of sub-agents, and says which of them cannot be read, in words for people.
/// Blocks.
pub(in crate::session) fn find(
    store: &dyn TranscriptStore,
    files: BTreeMap<AgentId, PathBuf>,
) -> (Vec<FoundAgent>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for (agent, file) in files {
        let first = store.read_range(&file, 0, MAX_FIRST_LINES);
        let loaded = transcript_index::load(store, &file, LoadAs::Sidechain);
        let (first, loaded) = match first.and_then(|first| Ok((first, loaded?))) {
            Ok(read) => read,
            Err(error) => {
                let file = file.display();
                unread.push(format!("what a sub-agent used is not known: {file}: {error}"));
                continue;
            }
        };
        let cwd = first
            .split(|it| *it == b'\n')
            .find_map(|line| serde_json::from_slice::<Cwd>(line).ok().and_then(|it| it.cwd));
        found.push(FoundAgent { agent, meta: AgentMeta::read(store, &file), loaded, cwd, file });
    }
    (found, unread)
}

impl FoundAgent {
    pub(in crate::session) fn used(&self) -> UsageTotals {
        self.loaded.used().clone()
    }

    /// Returns whether a message for it is on record, shown or not.
    fn has_message(&self, message: &EntryId) -> bool {
        self.loaded.recorded.iter().any(|it| it.id == *message)
            || self.loaded.unread().iter().any(|it| it.message == *message)
    }

    /// The text of its last answer that has one.
    fn last_words(&self) -> String {
        let answers = self.loaded.recorded.iter().rev().filter(|it| it.role == Role::Assistant);
        let texts = answers.map(|answer| {
            let texts = answer.blocks.iter().filter_map(|it| match it.kind() {
                BlockKind::Text(text) => Some(text.as_ref()),
                _ => None,
            });
            texts.collect::<Vec<&str>>().join("\n")
        });
        let words = texts.map(|it| it.trim().to_owned()).find(|it| !it.is_empty());
        let mut words = words.unwrap_or_default();
        cut(&mut words, MAX_WORDS, "…");
        words
    }

    /// The text that its caller receives.
    fn outcome(&self) -> ToolOutcome {
        let fate = match &self.loaded.open_run {
            Some(_) => {
                "The sub-agent was cut off when its process ended. It was not started again; what it \
                 did before is done."
            }
            None => {
                "The sub-agent had ended, but the process ended before its report was recorded. It \
                 was not started again."
            }
        };
        let text = match self.last_words() {
            words if words.is_empty() => fate.to_owned(),
            words => format!("{fate} The last that it said:\n{words}"),
        };
        ToolOutcome::failed(ToolErrorKind::Interrupted, text)
    }
}

/// Returns what became of the calls of an agent (`None`: the top session) that were not answered, by the agents that
/// they started.
pub(in crate::session) fn outcomes(
    found: &[FoundAgent],
    caller: Option<&AgentId>,
    of: &Loaded,
) -> BTreeMap<ToolUseId, ToolOutcome> {
    let outcome = |call: &ToolUseId| {
        let is_meant = |it: &&FoundAgent| {
            it.meta.tool_use_id.as_ref() == Some(call) && it.meta.parent_agent_id.as_ref() == caller
        };
        // Some servers give the ids of calls again: the newest is of this one.
        let newest = found.iter().filter(is_meant).max_by_key(|it| it.loaded.used().began)?;
        if let Some(run) = &newest.meta.part_of {
            let of_call = found.iter().filter(is_meant);
            let all = of_call.filter(|it| it.meta.part_of.as_ref() == Some(run));
            return Some((call.clone(), outcome_of_several(all)));
        }
        let outcome = match of.background.agents.get(&newest.agent) {
            // What became of it is reported with the next turn.
            Some(_) => ToolOutcome::ok(format!(
                "The agent {} was started in the background. Its end is reported.",
                newest.agent
            )),
            None => newest.outcome(),
        };
        Some((call.clone(), outcome))
    };
    let sent = |call: &ToolUseId| {
        outcome_of_send(found, call, of).filter(|_| caller.is_none()).map(|it| (call.clone(), it))
    };
    of.open.iter().filter_map(|it| sent(&it.call).or_else(|| outcome(&it.call))).collect()
}

/// What the caller of several sub-agents receives: what became of each, in the order in which they began.
fn outcome_of_several<'a>(all: impl Iterator<Item = &'a FoundAgent>) -> ToolOutcome {
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|it| it.loaded.used().began);
    let most = MAX_WORDS / all.len().max(1);
    let each = |it: &FoundAgent| {
        let description = it.meta.description.as_deref().unwrap_or_default();
        let mut text = made_safe(&it.outcome().text);
        cut(&mut text, most, " … (its transcript has the rest)");
        format!("## {} ({description})\n\n{}", it.agent, quoted(&text))
    };
    let texts: Vec<_> = all.into_iter().map(each).collect();
    ToolOutcome::failed(ToolErrorKind::Interrupted, texts.join("\n\n"))
}

/// The tool that sends messages.
const SEND_MESSAGE: &str = "SendMessage";

/// What a call that sends a message says.
#[derive(Deserialize)]
struct SendInput {
    to: AgentId,
}

/// Returns what became of a call that sent a message and was not answered, by the transcript of the agent.
fn outcome_of_send(found: &[FoundAgent], call: &ToolUseId, of: &Loaded) -> Option<ToolOutcome> {
    let uses = of.recorded.iter().flat_map(|it| it.tool_uses());
    let (_, tool, input) = uses.into_iter().find(|(id, ..)| *id == call)?;
    let run = &of.open_run.as_ref()?.run;
    if tool.as_str() != SEND_MESSAGE {
        return None;
    }
    let SendInput { to } = serde_json::from_str(input).ok()?;
    let agent = found.iter().find(|it| it.agent == to)?;
    let id = EntryId::of_message(&to, run, call);
    Some(ToolOutcome::ok(match agent.has_message(&id) {
        true => format!(
            "The agent {to} has the message. It was cut off when the process ended, and goes on when it is sent \
             another message."
        ),
        false => format!("The agent {to} does not have the message: the process ended before."),
    }))
}

/// Returns how the agents ended that worked in the background and of whose end the model has not learned, as their
/// transcripts show it.
pub(in crate::session) fn ended(found: &[FoundAgent], of: &Loaded) -> Vec<EndedAgent> {
    let ended = |agent: &BackgroundAgent| {
        let found = found.iter().find(|it| it.agent == agent.agent);
        let by_transcript = || match found.and_then(|it| it.loaded.last_end()) {
            Some(end) if found.is_some_and(|it| it.loaded.open_run.is_none()) => {
                BackgroundState::Ended(end.agent_status())
            }
            _ => BackgroundState::Lost,
        };
        let state = match agent.state {
            BackgroundState::Running => by_transcript(),
            ended => ended,
        };
        let words = found.map(FoundAgent::last_words).unwrap_or_default();
        EndedAgent::new(agent.clone(), state, &words)
    };
    of.background.agents.values().map(ended).collect()
}

/// With what sidechains are closed.
pub(in crate::session) struct Closer {
    pub(in crate::session) archive: ActorRef<ArchiveMsg>,
    /// Of the session; agents are named in it one by one.
    pub(in crate::session) frame: LineFrame,
    pub(in crate::session) redaction: Redaction,
    pub(in crate::session) directory: PathBuf,
    pub(in crate::session) durability: Durability,
    pub(in crate::session) clock: Arc<dyn Clock>,
    pub(in crate::session) stream: EntropyStream,
}

impl Closer {
    /// Closes all that were left open. Returns what could not be closed, in words for people.
    pub(in crate::session) async fn close_all(&self, found: &[FoundAgent]) -> Vec<String> {
        let mut problems = Vec::new();
        for it in found {
            let Some((lines, stored)) = self.closing(it, found) else { continue };
            if let Err(why) = self.append(it, lines, stored).await {
                let file = it.file.display();
                problems.push(format!("the sidechain {file} cannot be closed: {why}"));
            }
        }
        problems
    }

    /// The lines that are missing, if any are.
    fn closing(
        &self,
        it: &FoundAgent,
        found: &[FoundAgent],
    ) -> Option<(Vec<Line>, Vec<StoredText>)> {
        let at = self.clock.now();
        let Some(open_run) = &it.loaded.open_run else {
            // The first line is torn: a whole one after it has the writer name those bytes.
            let what =
                RecordKind::Alert { what: "the sub-agent was cut off before it began".into() };
            let line = Line::Harness(Box::new(Record::new(at, None, 0, what)));
            return it.loaded.tail.torn.map(|_| (vec![line], Vec::new()));
        };
        let OpenRun { run, turn, step, ended, asked, .. } = open_run;
        let closing = close(
            OpenTurn {
                run: run.clone(),
                number: *turn,
                stream: self.stream.child(it.agent.as_str()).child(run.as_str()),
                at_step: *step,
                history: it.loaded.recorded.iter().cloned().collect(),
                last_entry: it.loaded.last.clone(),
                committed: outcomes(found, Some(&it.agent), &it.loaded),
                ended: ended.clone(),
                asked: asked.as_ref().map(|it| it.0.clone()),
                // A sub-agent does not go on after its process.
                denial: DenialReason::NobodyLeft,
                in_doubt: None,
            },
            at,
            RunEnd::Crashed,
        );
        let what = RecordKind::RunEnd {
            reason: RunEnd::Crashed.code().into(),
            turns: *turn,
            usage: it.loaded.used().usage,
            head: None,
        };
        let mut lines = closing.append.lines;
        let record = Record::new(at, Some(run.clone()), 0, what);
        lines.push(Line::Harness(Box::new(record)));
        Some((lines, closing.append.stored))
    }

    async fn append(
        &self,
        it: &FoundAgent,
        lines: Vec<Line>,
        stored: Vec<StoredText>,
    ) -> Result<(), String> {
        let (tell, mut received) = mpsc::unbounded_channel();
        let cwd = it.cwd.clone().unwrap_or_else(|| Arc::clone(&self.frame.cwd));
        let open = OpenTranscript {
            paths: TranscriptPaths { file: it.file.clone(), directory: self.directory.clone() },
            frame: LineFrame { agent: Some(it.agent.clone()), cwd, ..self.frame.clone() },
            durability: self.durability,
            meta: None,
            redaction: self.redaction.clone(),
            owner: None,
            reply: Arc::new(move |opened| {
                // The one that waits may have been ended.
                let _gone = tell.send(opened);
            }),
        };
        let gone = || "the archive is gone".to_owned();
        self.archive.cast(ArchiveMsg::Open(open)).map_err(|_| gone())?;
        let writer = match received.recv().await {
            Some(OpenOutcome::Ready { handle, .. } | OpenOutcome::Restarted { handle }) => handle,
            Some(OpenOutcome::Failed(error)) => return Err(error.to_string()),
            None => return Err(gone()),
        };
        let _closing = CloseOnDrop { archive: self.archive.clone(), file: &it.file };
        write(&writer, lines, stored).await
    }
}

async fn write(
    writer: &WriterHandle,
    lines: Vec<Line>,
    stored: Vec<StoredText>,
) -> Result<(), String> {
    let (tell, mut received) = mpsc::unbounded_channel::<Recorded>();
    let reply = Arc::new(move |recorded| {
        let _gone = tell.send(recorded);
    });
    let append = Append {
        lines: Arc::new(lines),
        stored,
        title: None,
        sync: true,
        ticket: WriteTicket::default(),
        reply,
    };
    writer.append(append).map_err(|it| it.to_string())?;
    match received.recv().await {
        Some(Recorded { result, .. }) => result.map(|_| ()).map_err(|it| it.to_string()),
        None => Err("its writer has ended".into()),
    }
}

/// Has the archive close a transcript, also when the leaf is ended.
struct CloseOnDrop<'a> {
    archive: ActorRef<ArchiveMsg>,
    file: &'a Path,
}

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        let close = ArchiveMsg::Close { file: self.file.to_owned(), done: None };
        // An archive that is gone has closed it.
        let _gone = self.archive.cast(close);
    }
}
