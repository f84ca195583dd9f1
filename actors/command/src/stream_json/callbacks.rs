//! Approvals and hooks that the program answers.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ennead::{
    data::{RuleDestination, ToolName},
    permission::{
        Approver, Hook, HookInput, HookReply, PermissionAnswer, PermissionMode, Question,
        RuleUpdate,
    },
    tool::BoxFuture,
};
use ennead_runtime::{hook::update_of, permission::RuleKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use super::{fit::question_of, host::Host};

/// How long a question about a call waits for the line that shows the call. It is on its way already.
const LINE_IN_FRONT: Duration = Duration::from_secs(2);

/// Where the output of a hook has what is of its event alone, and in it another input of the call.
const SPECIFIC: &str = "/hookSpecificOutput";
const CHANGED_INPUT: &str = "/hookSpecificOutput/updatedInput";

/// The calls that the program has been shown. A question about a call is asked after the line that shows it.
#[derive(Clone, Debug)]
pub(crate) struct ShownCalls(Option<Arc<watch::Sender<BTreeSet<String>>>>);

impl Default for ShownCalls {
    fn default() -> Self {
        Self(Some(Arc::new(watch::Sender::new(BTreeSet::new()))))
    }
}

impl ShownCalls {
    /// Returns calls that nobody is shown, so that none is waited for.
    pub(super) fn unwatched() -> Self {
        Self(None)
    }

    /// Adds a call that was shown.
    pub(crate) fn add(&self, call: &str) {
        if let Some(calls) = &self.0 {
            calls.send_modify(|calls| _ = calls.insert(call.to_owned()));
        }
    }

    /// Forgets all calls, since no call of the run is asked about any more.
    pub(crate) fn clear(&self) {
        if let Some(calls) = &self.0 {
            calls.send_modify(BTreeSet::clear);
        }
    }

    pub(super) async fn wait(&self, call: &str) {
        let Some(calls) = &self.0 else { return };
        let mut calls = calls.subscribe();
        // A question without the line in front of it is better than none.
        let _late = timeout(LINE_IN_FRONT, calls.wait_for(|it| it.contains(call))).await;
    }
}

/// Asks the program whether a call may run (`can_use_tool`).
#[derive(Clone, Debug)]
pub(crate) struct HostApprover {
    host: Host,
    shown: ShownCalls,
    modes: mpsc::UnboundedSender<PermissionMode>,
}

impl HostApprover {
    /// Asks this program, after the calls were shown to it. Modes that its answers change to are sent.
    pub(crate) fn new(
        host: Host,
        shown: ShownCalls,
        modes: mpsc::UnboundedSender<PermissionMode>,
    ) -> Self {
        Self { host, shown, modes }
    }
}

impl Approver for HostApprover {
    fn answer(&self, question: Question) -> BoxFuture<'static, PermissionAnswer> {
        let Self { host, shown, modes } = self.clone();
        Box::pin(async move {
            shown.wait(question.call.id.as_str()).await;
            let (request, is_cut) = question_of(request_of(&question));
            let shown = ShownInput { value: request["input"].clone(), is_cut };
            match host.ask(request).await {
                Ok(answer) => {
                    let given = read_answer(&answer, &shown);
                    with_mode(given, mode_of(&answer), &question.call.name, &modes)
                }
                Err(error) => PermissionAnswer::deny(format!("no permission was given: {error}")),
            }
        })
    }
}

fn request_of(question: &Question) -> Value {
    let input: Value = serde_json::from_str(&question.call.input).unwrap_or_default();
    let suggestions: Vec<Value> = question.suggestions.iter().map(|it| update_of(it)).collect();
    let mut request = json!({
        "subtype": "can_use_tool",
        "tool_name": question.call.name,
        "input": input,
        "permission_suggestions": suggestions,
        "blocked_path": question.blocked_path,
        "tool_use_id": question.call.id,
        "decision_reason": question.reason,
    });
    if let Some(agent) = question.agents.last() {
        request["agent_id"] = agent.as_str().into();
    }
    request
}

/// The input of a call as the program was shown it.
pub(super) struct ShownInput {
    /// As it was shown.
    pub(super) value: Value,
    /// Its texts were too long to be shown whole.
    pub(super) is_cut: bool,
}

impl ShownInput {
    /// The input that the program wants instead; `None` where it gave back what it was shown.
    ///
    /// # Errors
    ///
    /// A part of an input cannot be changed: the rest of it would be lost.
    fn changed<'a>(&self, after: Option<&'a Value>) -> Result<Option<&'a Value>, &'static str> {
        let after = after.filter(|it| it.is_object() && **it != self.value);
        match after {
            Some(_) if self.is_cut => Err("it changed an input that is too long to be shown whole"),
            after => Ok(after),
        }
    }
}

/// Reads what the program answered about a call with this input.
pub(super) fn read_answer(answer: &Value, shown: &ShownInput) -> PermissionAnswer {
    match answer["behavior"].as_str() {
        Some("allow") => {
            let mut allowed = PermissionAnswer::allow();
            allowed.reason = "the program allowed it".into();
            // It is always there, changed or not.
            match shown.changed(answer.get("updatedInput")) {
                Ok(after) => allowed.input = after.map(|it| it.to_string().into()),
                Err(why) => return PermissionAnswer::deny(why),
            }
            allowed.rules = rules_of(&answer["updatedPermissions"]).unwrap_or_default();
            allowed
        }
        Some("deny") => {
            let reason = answer["message"].as_str().filter(|it| !it.is_empty());
            let mut denied = PermissionAnswer::deny(reason.unwrap_or("the program denied it"));
            denied.interrupt = answer["interrupt"] == true;
            denied
        }
        _ => PermissionAnswer::deny("the program gave no answer that can be read"),
    }
}

/// The changes that updates of permissions make, in their order; `None` when one of the updates is no such
/// thing, since a set is taken as a whole.
fn rules_of(updates: &Value) -> Option<Vec<RuleUpdate>> {
    let mut found = Vec::new();
    for update in updates.as_array().into_iter().flatten() {
        let kind = update["type"].as_str()?;
        if kind == "setMode" {
            PermissionMode::deserialize(&update["mode"]).ok()?;
            continue;
        }
        let destination = match &update["destination"] {
            Value::Null => RuleDestination::Session,
            named => RuleDestination::deserialize(named).ok()?,
        };
        match kind {
            "addRules" | "replaceRules" | "removeRules" => {}
            "addDirectories" | "removeDirectories" => {
                for directory in update["directories"].as_array()? {
                    let added = RuleUpdate::directory(directory.as_str()?).kept_in(destination);
                    found.push(if kind == "addDirectories" { added } else { added.removed() });
                }
                continue;
            }
            _ => return None,
        }
        let kind_of_rule = RuleKind::deserialize(&update["behavior"]).ok()?;
        let new = |rule: String| {
            let mut made = RuleUpdate::allow(rule).kept_in(destination);
            made.kind = kind_of_rule;
            made
        };
        if kind == "replaceRules" {
            found.push(new(String::new()).cleared());
        }
        for rule in update["rules"].as_array()? {
            let tool = rule["toolName"].as_str()?;
            let rule = match rule["ruleContent"].as_str() {
                Some(content) => format!("{tool}({content})"),
                None => tool.to_owned(),
            };
            let added = new(rule);
            found.push(if kind == "removeRules" { added.removed() } else { added });
        }
    }
    Some(found)
}

/// The answer with the mode in which a plan is carried out. With other answers the mode is set.
pub(super) fn with_mode(
    given: PermissionAnswer,
    mode: Option<PermissionMode>,
    tool: &ToolName,
    modes: &mpsc::UnboundedSender<PermissionMode>,
) -> PermissionAnswer {
    match mode {
        Some(mode) if tool.as_str() == "ExitPlanMode" => given.in_mode(mode),
        Some(mode) => {
            // A loop that has ended changes no mode any more.
            let _gone = modes.send(mode);
            given
        }
        None => given,
    }
}

/// Returns the mode that an answer changes to.
pub(super) fn mode_of(answer: &Value) -> Option<PermissionMode> {
    let updates = answer["updatedPermissions"].as_array()?;
    let update = updates.iter().find(|it| it["type"] == "setMode")?;
    PermissionMode::deserialize(&update["mode"]).ok()
}

/// A hook of the program (`hook_callback`).
#[derive(Clone, Debug)]
pub(crate) struct HostHook {
    host: Host,
    shown: ShownCalls,
    callback: String,
}

impl HostHook {
    /// Makes the hook of the callback of this name.
    pub(crate) fn new(host: Host, shown: ShownCalls, callback: &str) -> Self {
        Self { host, shown, callback: callback.into() }
    }
}

impl Hook for HostHook {
    fn run(&self, input: HookInput) -> BoxFuture<'static, HookReply> {
        let hook = self.clone();
        Box::pin(async move {
            let call = input.json()["tool_use_id"].as_str().map(str::to_owned);
            if let Some(call) = &call {
                hook.shown.wait(call).await;
            }
            let request = json!({
                "subtype": "hook_callback",
                "callback_id": hook.callback,
                "input": input.json(),
                "tool_use_id": call,
            });
            let (request, is_cut) = question_of(request);
            let shown = ShownInput { value: request["input"]["tool_input"].clone(), is_cut };
            match hook.host.ask(request).await {
                Ok(mut answer @ Value::Object(_)) => {
                    let changed =
                        shown.changed(answer.pointer(CHANGED_INPUT)).map(|it| it.is_some());
                    match (changed, answer.pointer_mut(SPECIFIC).and_then(Value::as_object_mut)) {
                        (Err(why), _) => return HookReply::failed(why),
                        // What was shown is not what the call has.
                        (Ok(false), Some(fields)) if is_cut => drop(fields.remove("updatedInput")),
                        _ => {}
                    }
                    HookReply::json(answer)
                }
                Ok(_) => HookReply::failed("its answer is not an object"),
                Err(error) => HookReply::failed(error.to_string()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use ennead_runtime::approval::UpdateAct;

    use super::*;

    fn answered(answer: &Value, input: Value) -> PermissionAnswer {
        read_answer(answer, &ShownInput { value: input, is_cut: false })
    }

    // REQ: PRM-3
    #[test]
    fn suggestions_are_updates_that_sdks_parse() {
        let update = update_of("Bash(git log *)");
        assert_eq!(update["rules"], json!([{"toolName": "Bash", "ruleContent": "git log *"}]));
        assert_eq!(update_of("Read")["rules"], json!([{"toolName": "Read"}]));
        assert_eq!(update["type"], "addRules");
    }

    // REQ: PRM-5
    #[test]
    fn answer_that_cannot_be_read_is_a_denial() {
        for odd in [json!({}), json!(null), json!({"behavior": "maybe"})] {
            assert!(!answered(&odd, json!({})).allowed);
        }
        let denied = answered(&json!({"behavior": "deny", "message": "not today"}), json!({}));
        assert_eq!((denied.allowed, &*denied.reason), (false, "not today"));
    }

    // REQ: PRM-9
    #[test]
    fn answer_changes_an_input_only_where_it_differs_and_adds_whole_sets_of_rules() {
        let allow = |input: Value, updates: Value| json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": updates});
        let same = answered(&allow(json!({"b": 1, "a": 2}), json!(null)), json!({"a": 2, "b": 1}));
        assert!(same.allowed && same.input.is_none());
        let other = answered(&allow(json!({"a": 3}), json!(null)), json!({"a": 2}));
        assert_eq!(other.input.as_deref(), Some(r#"{"a":3}"#));
        let update = update_of("Bash(ls *)");
        let added = answered(&allow(json!({}), json!([update])), json!({}));
        assert_eq!(added.rules, [RuleUpdate::allow("Bash(ls *)")]);
        let other = json!([update, {"type": "addDirectories", "directories": ["/d"]}]);
        assert_eq!(answered(&allow(json!({}), other), json!({})).rules.len(), 2);
        let rules = json!([{"toolName": "Bash", "ruleContent": "make"}]);
        let of = |kind: &str| json!({"type": kind, "rules": rules, "behavior": "deny", "destination": "localSettings"});
        let directories =
            json!({"type": "addDirectories", "directories": ["/x"], "destination": "session"});
        let many = json!([of("removeRules"), of("replaceRules"), directories, {"type": "setMode", "mode": "plan"}]);
        let many = answered(&allow(json!({}), many), json!({})).rules;
        let acts: Vec<_> = many.iter().map(|it| (it.act, it.rule.as_str())).collect();
        let expected = [
            (UpdateAct::Remove, "Bash(make)"),
            (UpdateAct::Clear, ""),
            (UpdateAct::Add, "Bash(make)"),
            (UpdateAct::AddDirectory, "/x"),
        ];
        assert_eq!(acts, expected);
        assert!(many[..3].iter().all(|it| it.kind == RuleKind::Deny));
        let odd = json!([update, {"type": "addWings"}]);
        assert_eq!(answered(&allow(json!({}), odd), json!({})).rules, []);
    }

    // REQ: PRM-9
    #[test]
    fn input_that_was_shown_cut_stays_whole_and_is_not_changed_by_a_part() {
        let long = "x".repeat(2_000_000);
        let (shown, is_cut) = question_of(json!({"input": {"content": long}}));
        let shown = ShownInput { value: shown["input"].clone(), is_cut };
        let allow = |input: &Value| json!({"behavior": "allow", "updatedInput": input});
        let same = read_answer(&allow(&shown.value), &shown);
        assert!(same.allowed && same.input.is_none());
        let changed = read_answer(&allow(&json!({"content": "y"})), &shown);
        assert!(!changed.allowed && changed.reason.contains("too long"), "{}", changed.reason);
    }
}
