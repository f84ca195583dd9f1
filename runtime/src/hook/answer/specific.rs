//! What `hookSpecificOutput` of an answer means, event by event.

use serde_json::{Map, Value};

use super::field::{boolean, text};
use crate::hook::{
    HookDecision, HookEvent, HookPermission, HookVerdict, MAX_WATCHED, MAX_WATCHED_PATH,
    WatchReach, WatchedFile,
    session_title::{HOOKS_NAME_SESSIONS, session_title},
};

/// The first revision of the rules in which a hook at the start of a session adds words of the user's.
pub(super) const HOOKS_ADD_MESSAGES: u32 = 26;

/// Applies `hookSpecificOutput`, or says which field does not fit.
pub(super) fn apply(
    event: HookEvent,
    specific: &Map<String, Value>,
    verdict: &mut HookVerdict,
    revision: u32,
) -> Result<(), String> {
    if text(specific, "hookEventName")?.as_deref() != Some(event.name()) {
        return Err(format!("`hookEventName` is not `{}`", event.name()));
    }
    if event != HookEvent::PreCompact {
        verdict.additional_context.extend(text(specific, "additionalContext")?);
    }
    let names = matches!(event, HookEvent::SessionStart | HookEvent::UserPromptSubmit);
    if names && HOOKS_NAME_SESSIONS <= revision {
        verdict.title = text(specific, "sessionTitle")?.as_deref().and_then(session_title);
    }
    if event == HookEvent::SessionStart && HOOKS_ADD_MESSAGES <= revision {
        let message = text(specific, "initialUserMessage")?;
        verdict.initial_message = message.filter(|it| !it.trim().is_empty());
    }
    match event {
        HookEvent::PreToolUse => apply_decision(specific, verdict),
        HookEvent::PostToolUse => {
            let field = |name| specific.get(name).filter(|it| !it.is_null()).map(text_for_model);
            verdict.updated_output = field("updatedToolOutput");
            verdict.updated_mcp_output = field("updatedMCPToolOutput");
            Ok(())
        }
        HookEvent::PermissionRequest => apply_permission(specific, verdict),
        HookEvent::SessionStart | HookEvent::CwdChanged | HookEvent::FileChanged => {
            verdict.watches = watched(specific);
            Ok(())
        }
        HookEvent::PermissionDenied => {
            verdict.retry = boolean(specific, "retry")? == Some(true);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The files that are to be watched. What is no path is among them, and is named when it is not watched.
fn watched(specific: &Map<String, Value>) -> Option<Vec<WatchedFile>> {
    let paths = match specific.get("watchPaths")? {
        Value::Null => return None,
        Value::Array(paths) => &paths[..],
        other => std::slice::from_ref(other),
    };
    let path = |it: &Value| match it.as_str() {
        Some(path) if path.len() <= MAX_WATCHED_PATH => path.to_owned(),
        Some(path) => path[..path.floor_char_boundary(MAX_WATCHED_PATH + 1)].to_owned(),
        None => "something that is not a text".to_owned(),
    };
    // One more than there may be, so that it is known that there are too many.
    let paths = paths.iter().take(MAX_WATCHED + 1);
    Some(paths.map(|it| WatchedFile { path: path(it), reach: WatchReach::Nothing }).collect())
}

/// What PermissionRequest hooks alone may say.
fn apply_permission(
    specific: &Map<String, Value>,
    verdict: &mut HookVerdict,
) -> Result<(), String> {
    let decision = match specific.get("decision") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(decision)) => decision,
        Some(_) => return Err("`decision` is no object".into()),
    };
    let input = match decision.get("updatedInput") {
        None | Some(Value::Null) => None,
        Some(input @ Value::Object(_)) => Some(input.to_string()),
        Some(_) => return Err("`updatedInput` is no object".into()),
    };
    let message = text(decision, "message")?;
    let denies = match text(decision, "behavior")?.as_deref() {
        Some("allow") => None,
        Some("deny") => Some(message.unwrap_or_else(|| "a PermissionRequest hook said so".into())),
        other => return Err(format!("`behavior` is `{}`", other.unwrap_or_default())),
    };
    let interrupts = boolean(decision, "interrupt")? == Some(true);
    verdict.permission = Some(HookPermission { denies, input, interrupts });
    Ok(())
}

/// An output as the model sees it: texts and blocks of text as they read, anything else as JSON.
fn text_for_model(output: &Value) -> String {
    let block = |it: &Value| match it.get("type").and_then(Value::as_str) {
        Some("text") => it.get("text").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let texts = |blocks: &Vec<Value>| blocks.iter().map(block).collect::<Option<Vec<_>>>();
    match output {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => texts(blocks).map(|it| it.join("\n")),
        _ => None,
    }
    .unwrap_or_else(|| output.to_string())
}

/// What PreToolUse hooks alone may say.
fn apply_decision(specific: &Map<String, Value>, verdict: &mut HookVerdict) -> Result<(), String> {
    let reason = text(specific, "permissionDecisionReason")?;
    let reason = || reason.clone().unwrap_or_else(|| "a PreToolUse hook said so".into());
    match text(specific, "permissionDecision")?.as_deref() {
        None => {}
        Some("allow") => verdict.decision = Some(HookDecision::Allow { reason: reason() }),
        Some("deny") => verdict.decision = Some(HookDecision::Deny { reason: reason() }),
        Some("ask") => verdict.decision = Some(HookDecision::Ask { reason: reason() }),
        Some("defer") => verdict.decision = Some(HookDecision::Defer { reason: reason() }),
        Some(other) => return Err(format!("`permissionDecision` is `{other}`")),
    }
    match specific.get("updatedInput") {
        None | Some(Value::Null) => {}
        Some(input @ Value::Object(_)) => verdict.updated_input = Some(input.to_string()),
        Some(_) => return Err("`updatedInput` is no object".into()),
    }
    Ok(())
}
