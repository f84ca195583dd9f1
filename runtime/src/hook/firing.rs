//! The events that fire hooks, with what their handlers read about them.

use std::{borrow::Cow, sync::Arc};

use super::{FileChangeKind, HookEvent};
use crate::ids::{ToolName, ToolUseId};

/// The event that fires a hook, with its particulars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Firing<'a> {
    /// A call is about to be decided about.
    PreToolUse {
        /// Id of the tool use, as the model issued it.
        id: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Input of the call, as JSON text.
        input: Cow<'a, str>,
    },
    /// A tool call ended without an error.
    PostToolUse {
        /// Id of the tool use, as the model issued it.
        id: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// JSON text, as it was run.
        input: Cow<'a, str>,
        /// The structured result as JSON text; a text that is not JSON is given as a string.
        response: Cow<'a, str>,
        /// Wall-clock time of the call, in milliseconds.
        duration_ms: u64,
    },
    /// A compaction is about to begin.
    PreCompact {
        /// What caused the compaction: `manual` or `auto`.
        trigger: Cow<'a, str>,
        /// What the user wants kept.
        custom_instructions: Cow<'a, str>,
    },
    /// A compaction is over.
    PostCompact {
        /// What caused the compaction: `manual` or `auto`.
        trigger: Cow<'a, str>,
        /// What is in place of what was summed up.
        summary: Cow<'a, str>,
    },
    /// A session is about to answer its first prompt in this process, or goes on after a compaction.
    SessionStart {
        /// `startup`, `resume` where it goes on with an earlier conversation, or `compact` after a
        /// compaction.
        source: Cow<'a, str>,
        /// The model that is asked.
        model: Cow<'a, str>,
    },
    /// A prompt is about to be answered.
    UserPromptSubmit {
        /// The text of the prompt, in one piece.
        prompt: Cow<'a, str>,
    },
    /// A sub-agent is about to begin; the context names it.
    SubagentStart,
    /// A sub-agent is about to end by itself; the context names it.
    SubagentStop {
        /// A hook has already held this agent.
        active: bool,
        /// The text of the last answer.
        last_assistant_message: Cow<'a, str>,
    },
    /// Somebody is about to be asked about a call.
    PermissionRequest {
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Input of the call, as JSON text.
        input: Cow<'a, str>,
        /// Rules that would settle it for the future.
        suggestions: Cow<'a, [String]>,
    },
    /// Somebody is about to be asked for attention.
    Notification {
        /// What is wanted, in words.
        message: Cow<'a, str>,
        /// What it is about; `permission_prompt`.
        kind: Cow<'a, str>,
    },
    /// A session is being closed.
    SessionEnd {
        /// Why; always `other`, since no reason is known.
        reason: Cow<'a, str>,
    },
    /// A tool call ran and failed.
    PostToolUseFailure {
        /// Id of the tool use, as the model issued it.
        id: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// JSON text, as it was run.
        input: Cow<'a, str>,
        /// What the model would read.
        error: Cow<'a, str>,
        /// Whether it was stopped from outside.
        is_interrupt: bool,
        /// Wall-clock time of the call, in milliseconds.
        duration_ms: u64,
    },
    /// The model that decides about calls has denied one.
    PermissionDenied {
        /// Id of the tool use, as the model issued it.
        id: ToolUseId,
        /// Name of the tool that the call uses.
        tool: ToolName,
        /// Input of the call, as JSON text.
        input: Cow<'a, str>,
        /// Why it was denied.
        reason: Cow<'a, str>,
    },
    /// The failure of a model server has ended a run.
    StopFailure {
        /// The kind of the failure.
        error: Cow<'a, str>,
        /// The failure in words.
        details: Cow<'a, str>,
        /// The text of the last answer.
        last_assistant_message: Cow<'a, str>,
    },
    /// An instruction file has entered the context.
    InstructionsLoaded(LoadedInstructions),
    /// A call has moved the working directory.
    CwdChanged {
        /// The directory before; absolute.
        old: Cow<'a, str>,
        /// The directory now; absolute.
        new: Cow<'a, str>,
    },
    /// A settings file has changed.
    ConfigChange {
        /// Whose it is: `user_settings`, `project_settings`, `local_settings` or `policy_settings`.
        source: Cow<'a, str>,
        /// Absolute path of the file.
        file: Cow<'a, str>,
    },
    /// All calls of an answer have their results.
    PostToolBatch {
        /// The calls, in the order of the answer.
        calls: Vec<AnsweredCall>,
    },
    /// A watched file has changed.
    FileChanged {
        /// Absolute path of the file.
        path: Cow<'a, str>,
        /// What has become of it.
        kind: FileChangeKind,
    },
    /// A run is about to end by itself.
    Stop {
        /// A Stop hook has already held this run.
        active: bool,
        /// The text of the last answer.
        last_assistant_message: Cow<'a, str>,
    },
}

/// A call with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredCall {
    /// Id of the tool use, as the model issued it.
    pub id: ToolUseId,
    /// Name of the tool that the call uses.
    pub tool: ToolName,
    /// JSON text, as the gate decided about it.
    pub input: Arc<str>,
    /// The text of the result, as the model reads it.
    pub result: String,
}

/// An instruction file that has entered the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedInstructions {
    /// Absolute path of the file.
    pub path: String,
    /// Whose it is: `User`, `Project`, `Local` or `Managed`.
    pub memory_type: &'static str,
    /// Why: `session_start`, `nested_traversal`, `path_glob_match` or `compact`.
    pub reason: &'static str,
    /// The globs of a rule that is for certain files.
    pub globs: Vec<String>,
}

impl Firing<'_> {
    /// Returns the event that is fired.
    pub fn event(&self) -> HookEvent {
        match self {
            Firing::PreToolUse { .. } => HookEvent::PreToolUse,
            Firing::PostToolUse { .. } => HookEvent::PostToolUse,
            Firing::PreCompact { .. } => HookEvent::PreCompact,
            Firing::Stop { .. } => HookEvent::Stop,
            Firing::PostCompact { .. } => HookEvent::PostCompact,
            Firing::SessionStart { .. } => HookEvent::SessionStart,
            Firing::UserPromptSubmit { .. } => HookEvent::UserPromptSubmit,
            Firing::SubagentStart => HookEvent::SubagentStart,
            Firing::SubagentStop { .. } => HookEvent::SubagentStop,
            Firing::PermissionRequest { .. } => HookEvent::PermissionRequest,
            Firing::PostToolUseFailure { .. } => HookEvent::PostToolUseFailure,
            Firing::Notification { .. } => HookEvent::Notification,
            Firing::SessionEnd { .. } => HookEvent::SessionEnd,
            Firing::PermissionDenied { .. } => HookEvent::PermissionDenied,
            Firing::StopFailure { .. } => HookEvent::StopFailure,
            Firing::InstructionsLoaded(_) => HookEvent::InstructionsLoaded,
            Firing::CwdChanged { .. } => HookEvent::CwdChanged,
            Firing::ConfigChange { .. } => HookEvent::ConfigChange,
            Firing::FileChanged { .. } => HookEvent::FileChanged,
            Firing::PostToolBatch { .. } => HookEvent::PostToolBatch,
        }
    }

    /// Copies the texts that are borrowed.
    pub fn into_owned(self) -> Firing<'static> {
        let own = |it: Cow<'_, str>| Cow::Owned(it.into_owned());
        match self {
            Firing::PreToolUse { id, tool, input } => {
                Firing::PreToolUse { id, tool, input: own(input) }
            }
            Firing::PostToolUse { id, tool, input, response, duration_ms } => Firing::PostToolUse {
                id,
                tool,
                input: own(input),
                response: own(response),
                duration_ms,
            },
            Firing::PreCompact { trigger, custom_instructions } => Firing::PreCompact {
                trigger: own(trigger),
                custom_instructions: own(custom_instructions),
            },
            Firing::PostCompact { trigger, summary } => {
                Firing::PostCompact { trigger: own(trigger), summary: own(summary) }
            }
            Firing::SessionStart { source, model } => {
                Firing::SessionStart { source: own(source), model: own(model) }
            }
            Firing::UserPromptSubmit { prompt } => Firing::UserPromptSubmit { prompt: own(prompt) },
            Firing::SubagentStart => Firing::SubagentStart,
            Firing::SubagentStop { active, last_assistant_message } => {
                Firing::SubagentStop { active, last_assistant_message: own(last_assistant_message) }
            }
            Firing::PermissionRequest { tool, input, suggestions } => Firing::PermissionRequest {
                tool,
                input: own(input),
                suggestions: Cow::Owned(suggestions.into_owned()),
            },
            Firing::PostToolUseFailure { id, tool, input, error, is_interrupt, duration_ms } => {
                Firing::PostToolUseFailure {
                    id,
                    tool,
                    input: own(input),
                    error: own(error),
                    is_interrupt,
                    duration_ms,
                }
            }
            Firing::Notification { message, kind } => {
                Firing::Notification { message: own(message), kind: own(kind) }
            }
            Firing::SessionEnd { reason } => Firing::SessionEnd { reason: own(reason) },
            Firing::PermissionDenied { id, tool, input, reason } => {
                Firing::PermissionDenied { id, tool, input: own(input), reason: own(reason) }
            }
            Firing::StopFailure { error, details, last_assistant_message } => Firing::StopFailure {
                error: own(error),
                details: own(details),
                last_assistant_message: own(last_assistant_message),
            },
            Firing::InstructionsLoaded(loaded) => Firing::InstructionsLoaded(loaded),
            Firing::CwdChanged { old, new } => Firing::CwdChanged { old: own(old), new: own(new) },
            Firing::ConfigChange { source, file } => {
                Firing::ConfigChange { source: own(source), file: own(file) }
            }
            Firing::FileChanged { path, kind } => Firing::FileChanged { path: own(path), kind },
            Firing::PostToolBatch { calls } => Firing::PostToolBatch { calls },
            Firing::Stop { active, last_assistant_message } => {
                Firing::Stop { active, last_assistant_message: own(last_assistant_message) }
            }
        }
    }

    /// Returns the subject that matchers are tested with, in an agent of this type; `None` means that every handler
    /// runs.
    pub(crate) fn subject<'a>(&'a self, agent_type: &'a str) -> Option<&'a str> {
        match self {
            Firing::PreToolUse { tool, .. }
            | Firing::PermissionRequest { tool, .. }
            | Firing::PermissionDenied { tool, .. }
            | Firing::PostToolUseFailure { tool, .. }
            | Firing::PostToolUse { tool, .. } => Some(tool.as_str()),
            Firing::PreCompact { trigger, .. } | Firing::PostCompact { trigger, .. } => {
                Some(trigger)
            }
            Firing::SessionStart { source, .. } | Firing::ConfigChange { source, .. } => {
                Some(source)
            }
            Firing::Notification { kind, .. } => Some(kind),
            Firing::SessionEnd { reason } => Some(reason),
            Firing::SubagentStart | Firing::SubagentStop { .. } => Some(agent_type),
            Firing::StopFailure { error, .. } => Some(error),
            Firing::InstructionsLoaded(loaded) => Some(loaded.reason),
            Firing::FileChanged { path, .. } => path.rsplit('/').next(),
            Firing::UserPromptSubmit { .. }
            | Firing::PostToolBatch { .. }
            | Firing::Stop { .. }
            | Firing::CwdChanged { .. } => None,
        }
    }
}
