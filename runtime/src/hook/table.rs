//! The `hooks` key of a settings file.

use serde_json::Value;

use super::{
    HookAction, HookCondition, HookEvent, HookHandler, HookTable, HookWait, Matcher,
    ONLY_RESTRICTS, OnFailure, agent_hook::AGENT_TIMEOUT_MS, detached::MAX_DETACHED_MS,
    prompt_hook::PROMPT_TIMEOUT_MS,
};
use crate::permission::Scope;

/// Milliseconds a handler may take if its entry sets none.
pub(crate) const DEFAULT_TIMEOUT_MS: u64 = 600_000;

/// Reads the `hooks` value of one layer. A bad entry is dropped with a warning, the others hold.
pub(crate) fn read_table(hooks: &Value, scope: Scope, warnings: &mut Vec<String>) -> HookTable {
    let mut table = HookTable::new();
    let Some(events) = hooks.as_object() else {
        warnings.push("`hooks` is not an object; it is ignored".into());
        return table;
    };
    for (name, groups) in events {
        let Some(event) = HookEvent::ALL.into_iter().find(|it| it.name() == name) else {
            warnings.push(format!("hooks for `{name}` never run: this event is not known"));
            continue;
        };
        let Some(groups) = groups.as_array() else {
            warnings.push(format!("`hooks.{name}` is not a list; it is ignored"));
            continue;
        };
        for (i, group) in groups.iter().enumerate() {
            let place = format!("hooks.{name}[{i}]");
            match read_group(group, event, scope, &place, warnings) {
                Ok(handlers) => table.entry(event).or_default().extend(handlers),
                Err(why) => warnings.push(format!("`{place}` is ignored: {why}")),
            }
        }
    }
    table
}

fn read_group(
    group: &Value,
    event: HookEvent,
    scope: Scope,
    place: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<HookHandler>, String> {
    let matcher = match group.get("matcher") {
        None | Some(Value::Null) => Matcher::Any,
        Some(Value::String(text)) if event == HookEvent::FileChanged => {
            Matcher::parse_files(Some(text))?
        }
        Some(Value::String(text)) => Matcher::parse(Some(text)).map_err(|it| it.to_string())?,
        Some(_) => return Err("its matcher is not a text".into()),
    };
    let entries = group.get("hooks").and_then(Value::as_array).ok_or("it has no list `hooks`")?;
    let mut handlers = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        match read_handler(entry, &matcher, event, scope) {
            Ok((handler, notes)) => {
                let place = format!("{place}.hooks[{i}]");
                warnings.extend(notes.into_iter().map(|it| format!("`{place}`: {it}")));
                handlers.push(handler);
            }
            Err(why) => warnings.push(format!("`{place}.hooks[{i}]` is ignored: {why}")),
        }
    }
    Ok(handlers)
}

fn read_handler(
    entry: &Value,
    matcher: &Matcher,
    event: HookEvent,
    scope: Scope,
) -> Result<(HookHandler, Vec<String>), String> {
    let action = HookAction::read(entry, event, scope)?;
    let timeout_ms = match entry.get("timeout") {
        None | Some(Value::Null) => match action {
            HookAction::Prompt(_) => PROMPT_TIMEOUT_MS,
            HookAction::Agent(_) => AGENT_TIMEOUT_MS,
            _ => DEFAULT_TIMEOUT_MS,
        },
        Some(seconds) => milliseconds(seconds).ok_or("its timeout is not a positive number")?,
    };
    let on_failure = match entry.get("onFailure").and_then(Value::as_str) {
        Some("block") => OnFailure::Block,
        _ => OnFailure::Ignore,
    };
    let mut notes = Vec::new();
    let condition = match entry.get("if") {
        None | Some(Value::Null) => None,
        Some(_) if !event.is_of_call() => return Err("`if` never holds for this event".into()),
        Some(Value::String(rule)) => Some(HookCondition { rule: rule.clone(), scope }),
        Some(_) => {
            // A guard that runs too often is a nuisance, one that does not run is a hole.
            notes.push("`if` is not a text, the handler always runs".to_owned());
            None
        }
    };
    let is_set = |key| entry.get(key).and_then(Value::as_bool) == Some(true);
    let mut wait = match (is_set("asyncRewake"), is_set("async")) {
        (true, _) => HookWait::Rewaking,
        (false, true) => HookWait::Detached,
        (false, false) => HookWait::Waited,
    };
    if wait == HookWait::Rewaking && is_set(ONLY_RESTRICTS) {
        // To have a session go on is more than to restrict it.
        wait = HookWait::Detached;
    }
    if wait != HookWait::Waited && !matches!(action, HookAction::Command { .. }) {
        notes.push("`async` is for commands, the handler is waited for".to_owned());
        wait = HookWait::Waited;
    }
    let limit = if wait == HookWait::Waited { u64::MAX } else { MAX_DETACHED_MS };
    let handler = HookHandler {
        matcher: matcher.clone(),
        condition,
        action,
        timeout_ms: timeout_ms.min(limit),
        on_failure,
        wait,
        scope,
        only_restricts: is_set(ONLY_RESTRICTS),
    };
    Ok((handler, notes))
}

/// Seconds, whole or not, as milliseconds.
fn milliseconds(seconds: &Value) -> Option<u64> {
    if let Some(whole) = seconds.as_u64() {
        return whole.checked_mul(1000).filter(|it| *it > 0);
    }
    let text = seconds.as_f64().filter(|it| *it > 0.0).map(|it| format!("{it:.3}"))?;
    text.replace('.', "").parse().ok().filter(|it| *it > 0)
}

/// Merges all handlers of all layers, in the order given; an exact repetition is left out. Of two of which one only
/// restricts, the other one is kept.
pub(crate) fn merge_tables(tables: impl IntoIterator<Item = HookTable>) -> HookTable {
    let mut merged = HookTable::new();
    for (event, handlers) in tables.into_iter().flatten() {
        let list: &mut Vec<HookHandler> = merged.entry(event).or_default();
        for handler in handlers {
            let HookHandler { scope, only_restricts, .. } = handler;
            let same =
                |it: &HookHandler| HookHandler { scope, only_restricts, ..it.clone() } == handler;
            match list.iter_mut().find(|it| it.scope != scope && same(it)) {
                Some(known) => {
                    known.only_restricts &= only_restricts;
                    // A repository cannot have a guard of the user or the organisation confined as its own.
                    if known.scope.is_of_repository() {
                        known.scope = scope;
                    }
                }
                None => list.push(handler),
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn bad_entries_are_dropped_and_the_rest_holds() {
        let hooks = serde_json::json!({
            "PreToolUse": [
                {"matcher": "(", "hooks": [{"type": "command", "command": "never"}]},
                {"matcher": "Bash", "hooks": [
                    {"type": "oracle", "prompt": "p"},
                    {"type": "command"},
                    {"type": "command", "command": "c", "timeout": 1.5, "onFailure": "block"},
                ]},
                "nonsense",
            ],
            "NoSuchEvent": [],
        });
        let mut warnings = Vec::new();
        let table = read_table(&hooks, Scope::User, &mut warnings);
        assert_eq!(warnings.len(), 5, "{warnings:?}");
        let [handler] = &table[&HookEvent::PreToolUse][..] else { panic!("{table:?}") };
        assert_eq!(handler.label(), "c");
        assert_eq!(handler.timeout_ms, 1500);
        assert_eq!(handler.on_failure, OnFailure::Block);
        assert_eq!(handler.matcher, Matcher::Names(vec!["Bash".into()]));
    }

    // REQ: HKS-1
    #[test]
    fn handler_in_the_process_comes_from_options_alone_and_hides_behind_no_command() {
        let table = |kind: &str, scope| {
            let handler = serde_json::json!({"type": kind, "command": "hook-0"});
            let hooks = serde_json::json!({"Stop": [{"hooks": [handler]}]});
            let mut warnings = Vec::new();
            (read_table(&hooks, scope, &mut warnings), warnings)
        };
        let (files, warnings) = table("in_process", Scope::Project);
        assert!(files.values().all(Vec::is_empty) && warnings.len() == 1, "{files:?} {warnings:?}");
        // A command of a repository that has the name of the code does not take its place.
        let merged = merge_tables([
            table("command", Scope::Project).0,
            table("in_process", Scope::CliArg).0,
        ]);
        let is_own = |it: &HookHandler| matches!(it.action, HookAction::InProcess { .. });
        let kinds: Vec<bool> = merged[&HookEvent::Stop].iter().map(is_own).collect();
        assert_eq!(kinds, [false, true]);
    }
}
