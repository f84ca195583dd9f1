//! What all handlers of one firing mean together.

use super::{HookAnswer, HookEvent, WatchReach, WatchedFile};
use crate::{ids::ToolName, mcp::names::is_of_server};

/// Characters of one text of a hook that reach the model or the user; longer ones are stored by
/// the caller and shown as a preview.
pub(crate) const MAX_SHOWN_CHARS: usize = 10_000;

/// Characters of the preview of a longer text.
const PREVIEW_CHARS: usize = 2_000;

/// What hooks want of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookDecision {
    /// Let it pass, unless a rule says otherwise.
    Allow {
        /// The reason, which the user sees.
        reason: String,
    },
    /// The user is asked about the call.
    Ask {
        /// The reason, which the user sees.
        reason: String,
    },
    /// The run ends, and the call waits until the session is resumed.
    Defer {
        /// The reason, which the user sees.
        reason: String,
    },
    /// The call is refused.
    Deny {
        /// The reason, which the model reads.
        reason: String,
    },
}

impl HookDecision {
    fn strictness(&self) -> u8 {
        match self {
            HookDecision::Allow { .. } => 0,
            HookDecision::Ask { .. } => 1,
            HookDecision::Defer { .. } => 2,
            HookDecision::Deny { .. } => 3,
        }
    }

    fn reason_mut(&mut self) -> &mut String {
        match self {
            HookDecision::Allow { reason }
            | HookDecision::Ask { reason }
            | HookDecision::Defer { reason }
            | HookDecision::Deny { reason } => reason,
        }
    }
}

/// What a `PermissionRequest` hook answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookPermission {
    /// Why the call is denied; `None` if it may run.
    pub denies: Option<String>,
    /// The input to run with instead. JSON text of an object.
    pub input: Option<String>,
    /// Whether a denial ends the run.
    pub interrupts: bool,
}

/// What all handlers of one firing mean together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookVerdict {
    /// The decision of a `PreToolUse` hook; `None` if it has none.
    pub decision: Option<HookDecision>,
    /// The answer to the question, from hooks of PermissionRequest.
    pub permission: Option<HookPermission>,
    /// Of PreToolUse: replaces the whole input. JSON text of an object.
    pub updated_input: Option<String>,
    /// Of PreToolUse: whether the hook whose input holds allowed the call, too.
    pub answers: bool,
    /// Of PostToolUse: what the model sees in place of the result.
    pub updated_output: Option<String>,
    /// The same, if the tool is one of a server.
    pub updated_mcp_output: Option<String>,
    /// For the model, in configuration order.
    pub additional_context: Vec<String>,
    /// `continue: false`: the run ends, for this reason, which the user sees.
    pub stop: Option<String>,
    /// Blocked: the reason for the model (PostToolUse), the next instruction (Stop), or why there
    /// is not a compaction (PreCompact).
    pub block_reason: Option<String>,
    /// The files that are watched from now on in place of those that hooks had named before.
    pub watches: Option<Vec<WatchedFile>>,
    /// What the session is known by from now on; one line.
    pub title: Option<String>,
    /// Of SessionStart: what is read with the first prompt, as the user's words.
    pub initial_message: Option<String>,
    /// Of PermissionDenied: whether the model may try the call again.
    pub retry: bool,
    /// What went wrong, for the user.
    pub errors: Vec<String>,
    /// What handlers want to say to the user.
    pub messages: Vec<String>,
    /// Texts above that represent longer ones.
    pub overlong: Vec<Overlong>,
}

/// A text that was too long to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlong {
    /// What is in its place.
    pub preview: String,
    /// The whole text, before it was cut.
    pub whole: String,
}

impl HookVerdict {
    /// Returns what the model sees in place of the result of this tool.
    pub(crate) fn output_of(&self, tool: &ToolName) -> Option<&str> {
        let of_server = self.updated_mcp_output.as_deref().filter(|_| is_of_server(tool));
        self.updated_output.as_deref().or(of_server)
    }

    /// Adds the place where a long text was stored after its preview, wherever that is.
    pub fn stored(&mut self, overlong: &Overlong, path: &str) {
        let shown = format!("{}\n(all of it: {path})", overlong.preview);
        for text in self.texts() {
            if text.contains(&overlong.preview) {
                *text = text.replace(&overlong.preview, &shown);
            }
        }
    }

    /// Notes which files the handler may have watched.
    pub(super) fn watching(&mut self, reach: WatchReach) {
        self.watches.iter_mut().flatten().for_each(|it| it.reach = reach);
    }

    /// Cuts every text that is too long.
    pub(super) fn capped(mut self) -> Self {
        let mut overlong = Vec::new();
        for text in self.texts() {
            let n_chars = text.chars().count();
            if n_chars > MAX_SHOWN_CHARS {
                let start: String = text.chars().take(PREVIEW_CHARS).collect();
                let preview =
                    format!("{start}\n[cut: the first {PREVIEW_CHARS} of {n_chars} characters]");
                let whole = std::mem::replace(text, preview.clone());
                overlong.push(Overlong { preview, whole });
            }
        }
        self.overlong.append(&mut overlong);
        self
    }

    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        self.additional_context
            .iter_mut()
            .chain(self.stop.iter_mut())
            .chain(self.block_reason.iter_mut())
            .chain(self.errors.iter_mut())
            .chain(self.messages.iter_mut())
            .chain(self.decision.iter_mut().map(HookDecision::reason_mut))
            .chain(self.permission.iter_mut().filter_map(|it| it.denies.as_mut()))
            .chain(self.initial_message.iter_mut())
            .chain(self.updated_output.iter_mut())
            .chain(self.updated_mcp_output.iter_mut())
    }
}

/// Joins the answers of one firing, given in configuration order. `continue: false` of any ends the
/// run; deny wins over ask over allow; of several new inputs or outputs the last one holds, and the
/// user receives an alert.
pub fn merge(event: HookEvent, answers: Vec<HookAnswer>) -> HookVerdict {
    let mut merged = HookVerdict::default();
    let (mut n_inputs, mut n_outputs) = (0, 0);
    for HookAnswer { verdict } in answers {
        let allows = matches!(verdict.decision, Some(HookDecision::Allow { .. }));
        merged.decision = stricter(merged.decision, verdict.decision);
        merged.permission = match (merged.permission, verdict.permission) {
            (Some(first), Some(next)) if first.denies.is_none() && next.denies.is_some() => {
                Some(next)
            }
            (first, next) => first.or(next),
        };
        if verdict.updated_input.is_some() {
            n_inputs += 1;
            merged.updated_input = verdict.updated_input;
            merged.answers = allows;
        }
        n_outputs += u32::from(verdict.updated_output.is_some());
        merged.updated_output = verdict.updated_output.or(merged.updated_output);
        merged.updated_mcp_output = verdict.updated_mcp_output.or(merged.updated_mcp_output);
        if let Some(watches) = verdict.watches {
            merged.watches.get_or_insert_default().extend(watches);
        }
        merged.additional_context.extend(verdict.additional_context);
        merged.title = verdict.title.or(merged.title);
        merged.retry |= verdict.retry;
        merged.stop = merged.stop.or(verdict.stop);
        merged.block_reason = joined(merged.block_reason, verdict.block_reason, "\n");
        merged.initial_message = joined(merged.initial_message, verdict.initial_message, "\n\n");
        merged.errors.extend(verdict.errors);
        merged.messages.extend(verdict.messages);
        merged.overlong.extend(verdict.overlong);
    }
    for (n, what) in [(n_inputs, "input"), (n_outputs, "output")] {
        if n > 1 {
            let name = event.name();
            merged.errors.push(format!("{n} {name} hooks changed the {what}; the last one holds"));
        }
    }
    merged
}

fn joined(first: Option<String>, second: Option<String>, gap: &str) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}{gap}{second}")),
        (first, second) => first.or(second),
    }
}

/// The first of the strictest.
fn stricter(first: Option<HookDecision>, second: Option<HookDecision>) -> Option<HookDecision> {
    match (first, second) {
        (Some(first), Some(second)) if second.strictness() > first.strictness() => Some(second),
        (None, second) => second,
        (first, _) => first,
    }
}
