//! What the listeners of a run receive, in order, numbered by the hub that carries it.

mod numbered;
mod recorded_message;
mod weight;

use std::sync::Arc;

use serde::Serialize;

use crate::{
    approval::{AnsweredBy, QuestionKey},
    governor::ParkReason,
    hook::HookEvent,
    ids::{AgentId, ApprovalId, RunId, ToolName, ToolUseId},
    mcp::state::ServerState,
    permission::PermissionMode,
    step::Step,
    step5_model_call::cache_watch::PromptCacheEvent,
    time::Timestamp,
    tokens::{Tokens, Usage},
};
pub use numbered::Numbered;
pub use recorded_message::RecordedMessage;
pub use weight::Weight;

/// Something that happened in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A run began. Exactly one of `RunFinished` and `RunLost` follows.
    RunStarted {
        /// Id of the run that began.
        run: RunId,
        /// Whether the session began it by itself, since a sub-agent in the background has ended. Its outcome is that of a
        /// request of the same id.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        woken: bool,
    },
    /// A turn of the run began.
    TurnStarted {
        /// Counted from 1 within the run.
        turn: u32,
    },
    /// A step of the turn began.
    StepStarted {
        /// Number of the turn, counted from 1 within the run.
        turn: u32,
        /// The step that the turn has reached.
        step: Step,
    },
    /// The nine sources were put in place.
    ContextAssembled {
        /// The estimate for the whole request.
        tokens: Tokens,
        /// The estimates for the nine sources, in their order: system prompt, environment, instructions,
        /// path rules, memory, tools, history, results of tools, summaries.
        sources: [Tokens; 9],
    },
    /// A file of instructions or a rule became a part of what the model reads.
    InstructionsLoaded {
        /// Its absolute path.
        path: Arc<str>,
        /// Whose it is: `User`, `Project`, `Local` or `Managed`.
        memory_type: &'static str,
        /// Why it is read now: `session_start`, `nested_traversal`, `path_glob_match` or `compact`.
        reason: &'static str,
        /// The estimate for its text.
        tokens: Tokens,
    },
    /// A shaper stage ran.
    ShaperApplied {
        /// Name of the stage, as in the transcript.
        stage: &'static str,
        /// Whether it changed something.
        fired: bool,
        /// Estimated tokens of the conversation before the stage.
        tokens_before: Tokens,
        /// Estimated tokens of the conversation after the stage.
        tokens_after: Tokens,
    },
    /// The next piece of the text of an answer.
    TextDelta {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// The next piece of the answer, as it arrived.
        text: Arc<str>,
    },
    /// The model is thinking this.
    ReasoningDelta {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// The next piece of the reasoning, as it arrived.
        text: Arc<str>,
    },
    /// The model is writing the input of a call.
    ToolInputPreview {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// The input so far, completed to valid JSON.
        input: Arc<str>,
    },
    /// The model has answered.
    MessageCompleted {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// Text of the whole answer; empty if it has none.
        text: Arc<str>,
        /// Tokens of the call, as the provider reported them.
        usage: Usage,
    },
    /// Calls for no answer have used tokens: to decide about a call, to judge for a hook, to put findings together, to read a page.
    TokensUsed {
        /// Tokens of the calls, as the provider reported them.
        usage: Usage,
    },
    /// An event of the model's answer as the Messages API streams it. Only for listeners that ask, not of sub-agents.
    ModelStreamed {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// The event, JSON text.
        json: Arc<str>,
    },
    /// A message was handed to the transcript: a prompt, an answer, the result of a call, or a text of the
    /// harness. Only for listeners that asked for it.
    MessageRecorded {
        /// The message, with what its line in the transcript holds next to it.
        message: Arc<RecordedMessage>,
    },
    /// What was shown of this attempt does not count.
    Withdrawn {
        /// Model attempt within the turn, from 1.
        attempt: u32,
    },
    /// The model asked for a tool.
    ToolRequested {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
    },
    /// Somebody must decide about a call.
    PermissionAsked {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Its input, JSON text.
        input: Arc<str>,
        /// Why it is asked.
        reason: Arc<str>,
        /// What an answer names.
        key: QuestionKey,
        /// Rules that would settle it for the future, narrowest first.
        suggestions: Arc<[String]>,
        /// When answers stop being taken, in milliseconds since 1970.
        expires: Timestamp,
    },
    /// A call has put the session into another permission mode.
    ModeChanged {
        /// The mode that holds now.
        mode: PermissionMode,
    },
    /// A question that was asked is open no longer.
    PermissionSettled {
        /// The id of the question, as in `PermissionAsked`.
        id: ApprovalId,
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Whether the call may run, as far as the answer says.
        allowed: bool,
        /// Who or what ended the question.
        by: AnsweredBy,
    },
    /// A call was allowed or denied.
    PermissionDecided {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Whether it may run.
        allowed: bool,
        /// The reason of the decision, in words.
        reason: Arc<str>,
        /// Allow rules of which any one would have let a denied call pass, narrowest first. Empty
        /// when it was allowed, or when no allow rule would have helped.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        allow_rules: Arc<[String]>,
    },
    /// A call began to run.
    ToolStarted {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
    },
    /// A call that runs says how far it is. The next one of the call replaces it.
    ToolProgress {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// The share that is done, 0 to 100; `None` where the whole is not known.
        percent: Option<u8>,
        /// For people, on one line, at most 500 characters.
        text: Arc<str>,
    },
    /// A call has ended.
    ToolFinished {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Whether the call failed.
        is_error: bool,
        /// What the model reads.
        text: Arc<str>,
    },
    /// A hook was started.
    HookStarted {
        /// The event that the hook runs on.
        hook: HookEvent,
        /// The firing, counted from 0 within the turn.
        firing: u32,
        /// Its place among the handlers of this firing, from 0.
        index: u32,
        /// The command that runs, at most 200 characters.
        label: Arc<str>,
    },
    /// A hook has ended.
    HookFinished {
        /// The event that the hook runs on.
        hook: HookEvent,
        /// The firing, counted from 0 within the turn.
        firing: u32,
        /// Its place among the handlers of this firing, from 0.
        index: u32,
        /// What came of it.
        effect: Arc<str>,
        /// The exit code; `None` when it did not exit by itself.
        exit: Option<i32>,
        /// Its standard output, at most 10,000 bytes; the transcript has all of it.
        stdout: Arc<str>,
        /// Its standard error, cut in the same way.
        stderr: Arc<str>,
    },
    /// A hook has a message for the user (its `systemMessage`).
    HookMessage {
        /// The event of the hook.
        hook: HookEvent,
        /// The text, at most 10,000 characters; a longer one is its beginning and the path of the
        /// file that holds all of it. It comes from a program, so a terminal must not be shown it
        /// as it is.
        text: Arc<str>,
    },
    /// A remedy was chosen after a failure of the model.
    RecoveryTaken {
        /// Stable code of the failure.
        cause: &'static str,
        /// Stable code of the remedy.
        remedy: &'static str,
        /// The model that is asked next, where it is another one.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
    },
    /// The same is asked again after a wait.
    ModelRetry {
        /// Which retry of this model it is, from 1.
        attempt: u32,
        /// The most that there may be.
        max_retries: u32,
        /// The wait, in milliseconds.
        delay_ms: u64,
        /// HTTP status of the failure, if there was an answer.
        status: Option<u16>,
        /// Stable code of the failure.
        error: &'static str,
        /// The failure in words, as the provider or the connection gave it.
        cause: Arc<str>,
    },
    /// A request read clearly less from the provider's cache than lay there.
    PromptCacheDropped {
        /// How much, and why.
        #[serde(flatten)]
        event: PromptCacheEvent,
    },
    /// A call of the model is not sent yet: something that all sessions of this provider and key
    /// share is in the way. Sent again when the reason changes; `Unparked` follows.
    Parked {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// Name of the provider, as configured.
        provider: Arc<str>,
        /// Why the call waits.
        reason: ParkReason,
        /// Until when at least, in milliseconds since 1970; `None`: until another call ends.
        until_ms: Option<u64>,
    },
    /// A parked call waits no longer: it is sent, or it was given up.
    Unparked {
        /// Model attempt within the turn, from 1.
        attempt: u32,
    },
    /// A sub-agent began. Its own events come wrapped in `Agent`.
    AgentStarted {
        /// Id of the sub-agent.
        agent: AgentId,
        /// The call that asked for it.
        call: ToolUseId,
        /// A few words for people.
        description: Arc<str>,
        /// Whether it works in the background, so that its call ends before it does.
        in_background: bool,
    },
    /// Something happened in a sub-agent.
    Agent {
        /// Id of the sub-agent in which it happened.
        agent: AgentId,
        /// The event of the sub-agent.
        event: Arc<Event>,
    },
    /// A turn has ended. Its last lines are written with the next ones of the run.
    TurnFinished {
        /// Counted from 1 within the run.
        turn: u32,
    },
    /// A run has ended and left an outcome.
    RunFinished {
        /// Id of the run that ended.
        run: RunId,
        /// Stable code of the reason for the end.
        reason: &'static str,
    },
    /// A run was lost: its turn crashed, or its session ended while it was under way. Its name in JSON is
    /// `run_failed`. A run that ended in another way finished, without success perhaps, which is what
    /// [`RunFailed`](crate::run::answer::RunFailed) is about.
    #[serde(rename = "run_failed")]
    RunLost {
        /// Id of the run that was lost.
        run: RunId,
        /// What went wrong, in words.
        reason: Arc<str>,
    },
    /// This listener was so slow that its stream has a hole here. What happened in it is in the
    /// transcript; what follows is sent as it happens.
    Lagged {
        /// Events in the gap.
        missed: u64,
        /// The run active after the gap. If it is not the run you were following, that run ended inside the gap.
        run: Option<RunId>,
    },
    /// An MCP server that was starting when the session was opened is ready, and its tools join with
    /// the next turn; or it cannot be had.
    McpServer {
        /// Its name in the configuration.
        server: Arc<str>,
        /// What became of it.
        state: ServerState,
        /// Why it cannot be had, in words.
        error: Option<Arc<str>>,
    },
    /// Something an operator should look at.
    Alert {
        /// What to look at, in words.
        what: Arc<str>,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lost_run_keeps_its_name_in_json() {
        let lost = Event::RunLost { run: RunId::new("r"), reason: "x".into() };
        let expected = json!({ "type": "run_failed", "run": "r", "reason": "x" });
        assert_eq!(serde_json::to_value(lost).unwrap(), expected);
    }
}
