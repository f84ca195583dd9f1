//! Hooks: what users have run at fixed points of a turn, and what their answers mean.
//!
//! Deciding which handlers match and reading what they answered is here; running them is not.

mod action;
mod agent_hook;
mod answer;
mod condition;
mod detached;
mod exports;
mod firing;
mod input;
mod matcher;
mod mcp_hook;
mod prompt_hook;
mod session_title;
mod stop_hold;
mod table;
mod verdict;
mod watch;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use action::{HookAction, HttpHook};
pub(crate) use agent_hook::LABEL_OF_AGENTS;
use agent_hook::verdict_in;
pub use answer::{HandlerEnd, HandlerOutput, HookAnswer, read_answer};
pub use condition::HookCondition;
pub(crate) use detached::MAX_DETACHED_MS;
pub use detached::{EndedHook, HookWait, says_detached};
pub use exports::{
    ExportRun, ExportingHandler, ExportsRefused, HookExports, MAX_EXPORT_BYTES, ShellExports,
};
pub use firing::{AnsweredCall, Firing, LoadedInstructions};
pub use input::{HookContext, HookInput, update_of};
pub use matcher::BadMatcher;
pub(crate) use matcher::{matching, matching_commands};
pub use mcp_hook::McpHook;
pub use prompt_hook::PromptHook;
pub(crate) use prompt_hook::{MAX_JUDGEMENT_TOKENS, judging_instructions};
pub(crate) use stop_hold::{MAX_STOP_HOLDS, may_hold};
pub(crate) use table::DEFAULT_TIMEOUT_MS;
pub(crate) use table::{merge_tables, read_table};
#[cfg(test)]
pub(crate) use verdict::MAX_SHOWN_CHARS;
pub use verdict::{HookDecision, HookPermission, HookVerdict, Overlong, merge};
pub use watch::{FileChange, FileChangeKind, WatchReach, WatchedFile};
pub(crate) use watch::{MAX_WATCHED, MAX_WATCHED_PATH, NotWatched};

use crate::permission::Scope;

/// A point at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HookEvent {
    /// Before permission evaluation of a call.
    PreToolUse,
    /// After a call succeeded.
    PostToolUse,
    /// Before the conversation is compacted.
    PreCompact,
    /// Before a run ends by itself.
    Stop,
    /// Before the first prompt that a session answers in a process.
    SessionStart,
    /// Before a prompt is answered.
    UserPromptSubmit,
    /// Before anybody is asked about a call.
    PermissionRequest,
    /// After a call ran and failed.
    PostToolUseFailure,
    /// Before a sub-agent begins.
    SubagentStart,
    /// Before a sub-agent ends by itself.
    SubagentStop,
    /// After the conversation was compacted.
    PostCompact,
    /// Before a person or a program is asked for attention.
    Notification,
    /// When a session in which something was asked is closed.
    SessionEnd,
    /// After the model that decides about calls has denied one.
    PermissionDenied,
    /// After a run that the failure of a model server ended.
    StopFailure,
    /// When an instruction file has entered the context.
    InstructionsLoaded,
    /// After a call that has moved the working directory.
    CwdChanged,
    /// Before a changed settings file holds.
    ConfigChange,
    /// After a watched file has changed.
    FileChanged,
    /// After all calls of an answer, before the model is asked again.
    PostToolBatch,
}

impl HookEvent {
    /// All events, in the order of a turn.
    pub const ALL: [HookEvent; 20] = [
        HookEvent::ConfigChange,
        HookEvent::SessionStart,
        HookEvent::UserPromptSubmit,
        HookEvent::SubagentStart,
        HookEvent::InstructionsLoaded,
        HookEvent::PreCompact,
        HookEvent::PostCompact,
        HookEvent::PreToolUse,
        HookEvent::PermissionRequest,
        HookEvent::PermissionDenied,
        HookEvent::Notification,
        HookEvent::PostToolUse,
        HookEvent::PostToolUseFailure,
        HookEvent::CwdChanged,
        HookEvent::FileChanged,
        HookEvent::PostToolBatch,
        HookEvent::Stop,
        HookEvent::StopFailure,
        HookEvent::SubagentStop,
        HookEvent::SessionEnd,
    ];

    /// Returns the name in settings files and inputs.
    pub fn name(self) -> &'static str {
        match self {
            HookEvent::PreToolUse => "PreToolUse",
            HookEvent::PostToolUse => "PostToolUse",
            HookEvent::PreCompact => "PreCompact",
            HookEvent::Stop => "Stop",
            HookEvent::SessionStart => "SessionStart",
            HookEvent::UserPromptSubmit => "UserPromptSubmit",
            HookEvent::PermissionRequest => "PermissionRequest",
            HookEvent::PostToolUseFailure => "PostToolUseFailure",
            HookEvent::SubagentStart => "SubagentStart",
            HookEvent::SubagentStop => "SubagentStop",
            HookEvent::PostCompact => "PostCompact",
            HookEvent::Notification => "Notification",
            HookEvent::SessionEnd => "SessionEnd",
            HookEvent::PermissionDenied => "PermissionDenied",
            HookEvent::StopFailure => "StopFailure",
            HookEvent::InstructionsLoaded => "InstructionsLoaded",
            HookEvent::CwdChanged => "CwdChanged",
            HookEvent::ConfigChange => "ConfigChange",
            HookEvent::FileChanged => "FileChanged",
            HookEvent::PostToolBatch => "PostToolBatch",
        }
    }

    /// Returns whether it is about one call of a tool.
    pub fn is_of_call(self) -> bool {
        matches!(
            self,
            HookEvent::PreToolUse
                | HookEvent::PermissionRequest
                | HookEvent::PermissionDenied
                | HookEvent::PostToolUse
                | HookEvent::PostToolUseFailure
        )
    }

    /// Returns whether a handler that denies stops what the event is about. A sub-agent and a session begin and end
    /// whatever the hook answers, as does a notification, and of what is over nothing can be stopped.
    pub fn can_block(self) -> bool {
        !matches!(
            self,
            HookEvent::SessionStart
                | HookEvent::SubagentStart
                | HookEvent::PostCompact
                | HookEvent::Notification
                | HookEvent::SessionEnd
                | HookEvent::PermissionDenied
                | HookEvent::StopFailure
                | HookEvent::InstructionsLoaded
                | HookEvent::CwdChanged
                | HookEvent::FileChanged
        )
    }

    /// Returns whether the plain output of a command is context for the model.
    pub(crate) fn reads_plain_text(self) -> bool {
        matches!(self, HookEvent::SessionStart | HookEvent::UserPromptSubmit)
    }
}

/// The key of a handler that can deny, ask and add context, and nothing else.
pub(crate) const ONLY_RESTRICTS: &str = "onlyRestricts";

/// One handler of a settings file, with the matcher it is under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookHandler {
    /// Matches the subjects that the hook runs for.
    pub matcher: Matcher,
    /// Of the calls that the matcher covers, those that it runs for (`if`); `None`: for all of them.
    pub condition: Option<HookCondition>,
    /// What is done for those that it runs for.
    pub action: HookAction,
    /// Milliseconds; 600,000 by default.
    pub timeout_ms: u64,
    /// What a failing handler means.
    pub on_failure: OnFailure,
    /// Whether what fires it waits for it.
    pub wait: HookWait,
    /// Where it was configured.
    pub scope: Scope,
    /// It can deny, ask and add context; it can neither allow a call nor change its input.
    pub only_restricts: bool,
}

/// What a handler that fails (exit other than 0 and 2, timeout, crash) means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// No decision; the failure is shown.
    #[default]
    Ignore,
    /// A hook that fails denies what it was asked about.
    Block,
}

/// Which subjects (tool names, mostly) a handler is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Omitted, empty or `*`.
    Any,
    /// Only letters, digits, `_-`, blanks, commas and bars: a list of exact names.
    Names(Vec<String>),
    /// Anything else: a regular expression, searched anywhere in the subject.
    Pattern(String),
}

/// Handlers by event, in configuration order, duplicates removed.
pub type HookTable = BTreeMap<HookEvent, Vec<HookHandler>>;

impl HookHandler {
    /// Reads what it answered, by this revision of the rules. `fail_closed` is the setting `hooks.fail_closed`.
    pub(crate) fn answer(
        &self,
        event: HookEvent,
        output: &HandlerOutput,
        fail_closed: bool,
        revision: u32,
    ) -> HookAnswer {
        match (&self.action, output.ended) {
            (HookAction::Prompt(prompt), HandlerEnd::Exited(_)) => {
                prompt.answer(event, &output.stdout, self.on_failure, fail_closed)
            }
            // What an agent reads to verify is not kept from it by the handler that it verifies for.
            (HookAction::Agent(_), HandlerEnd::Cycle) => {
                read_answer(event, output, OnFailure::Ignore, false, revision)
            }
            (HookAction::Agent(_), HandlerEnd::Exited(_)) if !output.is_short() => {
                let (ended, why) = (HandlerEnd::Unusable, "the answer is too long".to_owned());
                let unusable = HandlerOutput::new(ended, String::new(), why, output.duration_ms);
                read_answer(event, &unusable, self.on_failure, fail_closed, revision)
            }
            (HookAction::Agent(prompt), HandlerEnd::Exited(_)) => {
                let verdict = verdict_in(&output.stdout);
                prompt.answer(event, verdict, self.on_failure, fail_closed)
            }
            _ => read_answer(event, output, self.on_failure, fail_closed, revision),
        }
    }

    /// Returns what is run, for the record: at most 200 characters.
    pub fn label(&self) -> String {
        self.action.label().chars().take(200).collect()
    }
}
