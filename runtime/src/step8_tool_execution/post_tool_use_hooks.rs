//! What PostToolUse hooks add to a result, or to what one of them put in its place. They change what
//! the model sees; they undo nothing, since the tool has run.

use crate::{
    hook::{HookEvent, HookVerdict},
    run::facts::NAMES_HOOKS,
    step3_context_assembly::{of_hook, reminder},
    tool::ToolErrorKind,
};

/// Returns the event that fires after a call that ended with this error, or without one.
pub(crate) fn event_after(error: Option<ToolErrorKind>) -> HookEvent {
    match error {
        None => HookEvent::PostToolUse,
        Some(_) => HookEvent::PostToolUseFailure,
    }
}

/// Returns the text of a result as the model sees it. `event` is that of the hooks; in a session of an earlier
/// `revision` what they add does not name it.
pub(crate) fn with_context(
    text: &str,
    event: HookEvent,
    verdict: &HookVerdict,
    revision: u32,
) -> String {
    let mut shown = text.to_owned();
    let added = verdict.block_reason.iter().chain(&verdict.additional_context);
    for text in added {
        shown.push_str("\n\n");
        shown.push_str(&of_hook(event, revision, text));
    }
    shown
}

/// Joins what the model is to read after the results of all calls of an answer: texts of the harness, and of hooks at
/// an event. In sessions of an earlier `revision` all of them have one frame.
pub(crate) fn all_of(texts: &[(Option<HookEvent>, String)], revision: u32) -> String {
    if revision < NAMES_HOOKS {
        let texts: Vec<&str> = texts.iter().map(|it| it.1.as_str()).collect();
        return reminder(&texts.join("\n\n"));
    }
    let framed = texts.iter().map(|(event, text)| match event {
        Some(event) => of_hook(*event, revision, text),
        None => reminder(text),
    });
    framed.collect::<Vec<_>>().join("\n\n")
}
