//! What is on a line: a [`ConversationLine`], or [`Record`]s of what else the harness did, `{"type":"ennead","kind":…,"v":3,"at":…,"run":…,"turn":…,…}`, each at most 4 KiB and several on a line (`codec/joined.rs`). They hold foreign JSON only as digest or escaped text, and none of the keys that text-scanning readers look for (`timestamp`, `cwd`, `summary`, `customTitle`, …).

mod conversation_line;
mod line;
mod own_words;
mod parts;
mod step_detail;
pub(crate) mod stored;

use serde::{Deserialize, Serialize};

use crate::{
    approval::{AnsweredBy, RuleUpdate},
    digest::Digest,
    ids::{AgentId, ApprovalId, EntryId, ToolName, ToolUseId},
    permission::PermissionMode,
    step::Step,
    step5_model_call::cache_watch::PromptCacheEvent,
    step7_permission_gate::{CommandClass, Decision, ResolvedPath},
    time::Timestamp,
    tokens::{Tokens, Usage},
    tool::{ToolEffect, ToolErrorKind, Truncation},
};

pub use conversation_line::{
    AnswerFields, Boundary, ConversationLine, LineFrame, ToolResultFields,
};
pub use line::Line;
pub use parts::{
    BackgroundRecord, CutText, DiscardedAnswer, LinksRecord, MessageRecord, ModeChange,
    PassedStage, Record, ShellRecord, ShownPart, SidechainHead, SkippedBytes, UnconfirmedUsage,
    ViewChange, WithdrawnPrompt,
};
pub use step_detail::StepDetail;
pub use stored::{Repeated, Stored, StoredText, TextFolder};

/// The kinds of harness records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecordKind {
    /// A run began with a prompt.
    RunStart {
        /// The line of its prompt.
        prompt: EntryId,
        /// Where it came from.
        origin: String,
        /// The key of all draws of the session, in hexadecimal, so that ids can be made again.
        stream: String,
        /// What was fixed when the session was opened, JSON text.
        setup: Stored,
        /// It is the first since the opening: what is known between turns was made anew.
        first: bool,
        /// What follows the system prompt in its turns; absent when nothing does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<Stored>,
        /// It sums up the conversation and answers nothing: what to keep in mind. Absent of other runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compacts: Option<String>,
        /// Who asked for it; absent when the request names no sender.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sender: Option<crate::run::Sender>,
        /// When the prompt was accepted, where that was earlier: it waited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Timestamp>,
        /// How long the run may take, in milliseconds; absent when the request did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_limit_ms: Option<u64>,
    },
    /// A run goes on in another process: its turn is given up before any call ran, and the next one takes them.
    RunResumed {
        /// The line of its prompt.
        prompt: EntryId,
        /// As in the record of a run's beginning.
        stream: String,
        /// What was fixed when the session was opened again, JSON text.
        setup: Stored,
        /// What follows the system prompt in its turns; absent when nothing does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<Stored>,
    },
    /// A step of a turn, once per step.
    TurnStep {
        /// Number of the step, 1 to 9.
        number: u8,
        /// Name of the step, as in [`Step::name`].
        step: Step,
        /// What it found or decided; one shape per step.
        detail: StepDetail,
    },
    /// The sources were looked at again and are not as they were.
    SourcesSeen {
        /// What they hold now, JSON text of a [`SourcesSeen`](crate::step3_context_assembly::SourcesSeen).
        seen: Stored,
    },
    /// A message that follows shows the model a part of the context that became due.
    ContextAppended {
        /// Which part, in which message.
        part: ShownPart,
    },
    /// Later turns are shown less of the conversation.
    View(ViewChange),
    /// Shaper stages whose triggers did not hold, so that none ran; in most turns all five, so one line.
    ShapersPassed {
        /// The context that they left as it was.
        tokens: Tokens,
        /// The stages that were passed by, in order.
        stages: Vec<PassedStage>,
    },
    /// A shaper stage ran.
    Shaper {
        /// Name of the stage.
        stage: String,
        /// Whether it changed something.
        fired: bool,
        /// Estimated tokens of the conversation before the stage.
        tokens_before: Tokens,
        /// Estimated tokens of the conversation after the stage.
        tokens_after: Tokens,
        /// How long it took, in microseconds.
        elapsed_us: u64,
        /// Why it fired or did not.
        why: String,
        /// Model attempt that it belongs to, when it ran inside step 5.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// The failure that made it run again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
        /// From how many messages on there is a summary again, where the last one did not help.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<std::num::NonZeroUsize>,
    },
    /// A model call has ended.
    ModelAttempt {
        /// From 1 within the turn, over both purposes.
        attempt: u32,
        /// Purpose of the call: `turn` or `compaction`.
        purpose: String,
        /// The failure that made it necessary; `None` for the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
        /// The provider that was asked, by name, where it was not the first of the chain.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// Model that was asked, where it was not the first of the chain.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Whether it was streamed.
        streamed: bool,
        /// Output ceiling asked for, in tokens.
        max_tokens: u32,
        /// Digest chain of the request.
        request: Digest,
        /// Bytes of the request.
        request_bytes: u64,
        /// `ok`, or the code of the failure.
        outcome: String,
        /// The provider's message about a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Milliseconds that it asked to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// HTTP status of a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Of the answer, or of the failed call as far as the provider reported it.
        usage: Usage,
        /// Its worst case, where its use is not known and the tree of agents set something aside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_doubt: Option<UnconfirmedUsage>,
        /// What that cost; `None` when the price is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<crate::catalogue::Money>,
        /// Milliseconds to the first token, and in all.
        first_token_ms: Option<u64>,
        /// Milliseconds from the request to the end of the answer.
        duration_ms: u64,
        /// Milliseconds queued in the rate limiter, not part of `duration_ms`. `None` if it was not queued.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked_ms: Option<std::num::NonZeroU32>,
        /// The answer, where no line of the conversation holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unsaid: Option<Box<DiscardedAnswer>>,
        /// Cached tokens that it should have read and did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_drop: Option<Box<PromptCacheEvent>>,
    },
    /// A path of a call was looked at.
    Path {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// What the path was resolved to.
        path: ResolvedPath,
        /// The same as JSON text, when this record cannot hold all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<Stored>,
    },
    /// The paths of a shell command lead through links.
    Links(LinksRecord),
    /// A hook handler has ended.
    Hook {
        /// The event that the hooks run on.
        event: crate::hook::HookEvent,
        /// The call, for tool events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<ToolUseId>,
        /// Its place among the handlers of this firing, from 0.
        index: u32,
        /// The command or the address that ran.
        handler: String,
        /// The matcher by which it was chosen; absent for one of everything, and in sessions of revisions before 28.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matcher: Option<String>,
        /// The file that has changed, for FileChanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The exit code; `None` when it did not exit by itself.
        exit: Option<i32>,
        /// `exited`, `timed_out`, `crashed`, or `refused` when the harness could not run it; `detached`: its end follows.
        ended: String,
        /// Wall-clock time of the handler, in milliseconds.
        duration_ms: u64,
        /// What came of it.
        effect: String,
        /// Its message to the user (`systemMessage`); absent without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Stored>,
        /// Its outputs as escaped text when short, else as digests of stored texts.
        stdout: Stored,
        /// The same of its standard error.
        stderr: Stored,
        /// Of one that was not waited for, at its end: the message that shows the model what it adds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shows: Option<EntryId>,
        /// Head of the sidechain, when the handler was an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sidechain: Option<SidechainHead>,
    },
    /// A call was decided about; exactly one per tool use.
    Permission {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Of the call as it will be run.
        digest: Digest,
        /// The input as changed by hooks; `None` means as the model wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Stored>,
        /// The mode in force.
        mode: PermissionMode,
        /// The decision, with its stage and its reason.
        decision: Decision,
    },
    /// Somebody is to decide about a call. An `approval` of it ends that, or a `mode`; then it may be asked again.
    Question {
        /// Names the question, until it is answered or expires.
        id: ApprovalId,
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// The sub-agents from the top of the tree down to the one that asks; absent for none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<AgentId>,
        /// The input, where the harness completed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Stored>,
        /// The digest of tool, input and working directory.
        digest: Digest,
        /// Of the rules and the mode that hold.
        epoch: Digest,
        /// What a shell command needs at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<CommandClass>,
        /// Why it is asked.
        reason: String,
        /// Rules that would settle it for the future.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        suggestions: Vec<String>,
        /// When answers stop being taken.
        expires: Timestamp,
    },
    /// A handler was asked about a call and left it to the next.
    Passed {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// The handler that left the call to the next.
        by: AnsweredBy,
        /// Why, in words; absent where no reason was given.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// A question about a call was answered, or will not be.
    Approval {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Whether the call may run.
        allowed: bool,
        /// The reason, in words; the model reads that of a refusal.
        reason: String,
        /// Who or what decided; absent in transcripts of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AnsweredBy>,
        /// The name of the surface, where one answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        surface: Option<String>,
        /// The input to run with instead, JSON text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Stored>,
        /// Rules that it added.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<RuleUpdate>,
        /// Whether it ends the run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupt: bool,
    },
    /// The session was put into another permission mode. Outside of turns its turn is 0.
    Mode(ModeChange),
    /// A call is about to run.
    ToolIntent {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Of the call as it will be run.
        digest: Digest,
        /// What it can change.
        effect: ToolEffect,
    },
    /// A call has ended; is in front of its result line.
    ToolEnd {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// The failure, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolErrorKind>,
        /// Exit code of the process; `None` if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Wall-clock time, in milliseconds.
        duration_ms: u64,
        /// What the session remembers of it, JSON text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Stored>,
        /// What the model does not see of its output, if that is not all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncation: Option<Truncation>,
        /// Head of the sidechain, when the call was a sub-agent; with those of others, when it was several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sidechain: Option<SidechainHead>,
    },
    /// A command goes on in the background, or has ended there and the model is notified. Its turn is always 0.
    Shell(ShellRecord),
    /// A sub-agent works in the background, or has ended there and the model is notified. Its turn is always 0.
    BackgroundAgent(BackgroundRecord),
    /// A sub-agent at work was sent a message, which is shown to it before its next turn. Its turn is always 0.
    AgentMessage(MessageRecord),
    /// A turn ended before its ninth step, or outside it.
    TurnEnd {
        /// Why; the code of a run's end.
        reason: String,
        /// The step that the turn had reached; `None` where it ended outside its steps.
        at_step: Option<Step>,
        /// Its model call that was under way, where the tree of agents had something set aside for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_doubt: Option<UnconfirmedUsage>,
    },
    /// A run ended; its last record.
    RunEnd {
        /// Stable code of the reason for the end.
        reason: String,
        /// Turns that the run took.
        turns: u32,
        /// The usage of this run, sub-agents included.
        usage: Usage,
        /// Hash of the record before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Digest>,
    },
    /// A hook refused the prompt of the run: no model was asked, and no later request holds it.
    PromptWithdrawn(WithdrawnPrompt),
    /// Something an operator should look at.
    Alert {
        /// What happened, in words.
        what: String,
    },
    /// Bytes that are not a line were found and passed over.
    Repair(SkippedBytes),
}
