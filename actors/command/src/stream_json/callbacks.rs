//! Approvals and hooks that the program answers.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ennead::{
    permission::{
        Approver, Hook, HookInput, HookReply, PermissionAnswer, PermissionMode, Question,
        RuleDestination, RuleUpdate, UpdateAct,
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

use super::host::Host;

/// How long a question about a call waits for the line that shows the call. It is on its way already.
const LINE_IN_FRONT: Duration = Duration::from_secs(2);

/// The calls that the program has been shown. A question about a call is asked after the line that shows it.
#[derive(Clone, Debug)]
pub struct ShownCalls(Arc<watch::Sender<BTreeSet<String>>>);

impl Default for ShownCalls {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(BTreeSet::new())))
    }
}

impl ShownCalls {
    /// A call was shown.
    pub fn add(&self, call: &str) {
        self.0.send_modify(|calls| _ = calls.insert(call.to_owned()));
    }

    /// No call of the run is asked about any more.
    pub fn clear(&self) {
        self.0.send_modify(BTreeSet::clear);
    }

    async fn wait(&self, call: &str) {
        let mut calls = self.0.subscribe();
        // A question without the line in front of it is better than none.
        let _late = timeout(LINE_IN_FRONT, calls.wait_for(|it| it.contains(call))).await;
    }
}

/// Asks the program whether a call may run (`can_use_tool`).
#[derive(Clone, Debug)]
pub struct HostApprover {
    host: Host,
    shown: ShownCalls,
    modes: mpsc::UnboundedSender<PermissionMode>,
}

impl HostApprover {
    /// Asks this program, after the calls were shown to it. Modes that its answers change to are sent.
    pub fn new(
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
            let (input, request) = (question.call.input.clone(), request_of(&question));
            match host.ask(request).await {
                Ok(answer) => {
                    if let Some(mode) = mode_of(&answer) {
                        // A loop that has ended changes no mode any more.
                        let _gone = modes.send(mode);
                    }
                    read_answer(&answer, &input)
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
        "blocked_path": null,
        "tool_use_id": question.call.id,
        "decision_reason": question.reason,
    });
    if let Some(agent) = question.agents.last() {
        request["agent_id"] = agent.as_str().into();
    }
    request
}

/// What the program answered about a call with this input.
fn read_answer(answer: &Value, input: &str) -> PermissionAnswer {
    match answer["behavior"].as_str() {
        Some("allow") => {
            let mut allowed = PermissionAnswer::allow();
            allowed.reason = "the program allowed it".into();
            let before: Value = serde_json::from_str(input).unwrap_or_default();
            // It is always there, changed or not.
            let after = answer.get("updatedInput").filter(|it| it.is_object() && **it != before);
            allowed.input = after.map(|it| it.to_string().into());
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
        let new = |rule: String, act| RuleUpdate::allow(rule).kept_in(destination).with_act(act);
        let act = match kind {
            "addRules" | "replaceRules" => UpdateAct::Add,
            "removeRules" => UpdateAct::Remove,
            "addDirectories" | "removeDirectories" => {
                let adds = kind == "addDirectories";
                let act = if adds { UpdateAct::AddDirectory } else { UpdateAct::RemoveDirectory };
                for directory in update["directories"].as_array()? {
                    found.push(new(directory.as_str()?.to_owned(), act));
                }
                continue;
            }
            _ => return None,
        };
        let kind_of_rule = RuleKind::deserialize(&update["behavior"]).ok()?;
        let with_kind = |mut it: RuleUpdate| {
            it.kind = kind_of_rule;
            it
        };
        if kind == "replaceRules" {
            found.push(with_kind(new(String::new(), UpdateAct::Clear)));
        }
        for rule in update["rules"].as_array()? {
            let tool = rule["toolName"].as_str()?;
            let rule = match rule["ruleContent"].as_str() {
                Some(content) => format!("{tool}({content})"),
                None => tool.to_owned(),
            };
            found.push(with_kind(new(rule, act)));
        }
    }
    Some(found)
}

/// The mode that an answer changes to.
fn mode_of(answer: &Value) -> Option<PermissionMode> {
    let updates = answer["updatedPermissions"].as_array()?;
    let update = updates.iter().find(|it| it["type"] == "setMode")?;
    PermissionMode::deserialize(&update["mode"]).ok()
}

/// A hook of the program (`hook_callback`).
#[derive(Clone, Debug)]
pub struct HostHook {
    host: Host,
    shown: ShownCalls,
    callback: String,
}

impl HostHook {
    /// The callback of this name.
    pub fn new(host: Host, shown: ShownCalls, callback: &str) -> Self {
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
            match hook.host.ask(request).await {
                Ok(answer @ Value::Object(_)) => HookReply::json(answer),
                Ok(_) => HookReply::failed("its answer is no object"),
                Err(error) => HookReply::failed(error.to_string()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(!read_answer(&odd, "{}").allowed);
        }
        let denied = read_answer(&json!({"behavior": "deny", "message": "not today"}), "{}");
        assert_eq!((denied.allowed, &*denied.reason), (false, "not today"));
    }

    // REQ: PRM-9
    #[test]
    fn answer_changes_an_input_only_where_it_differs_and_adds_whole_sets_of_rules() {
        let allow = |input: Value, updates: Value| json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": updates});
        let same = read_answer(&allow(json!({"b": 1, "a": 2}), json!(null)), r#"{"a":2,"b":1}"#);
        assert!(same.allowed && same.input.is_none());
        let other = read_answer(&allow(json!({"a": 3}), json!(null)), r#"{"a":2}"#);
        assert_eq!(other.input.as_deref(), Some(r#"{"a":3}"#));
        let update = update_of("Bash(ls *)");
        let added = read_answer(&allow(json!({}), json!([update])), "{}");
        assert_eq!(added.rules, [RuleUpdate::allow("Bash(ls *)")]);
        let other = json!([update, {"type": "addDirectories", "directories": ["/d"]}]);
        assert_eq!(read_answer(&allow(json!({}), other), "{}").rules.len(), 2);
        let rules = json!([{"toolName": "Bash", "ruleContent": "make"}]);
        let of = |kind: &str| json!({"type": kind, "rules": rules, "behavior": "deny", "destination": "localSettings"});
        let directories =
            json!({"type": "addDirectories", "directories": ["/x"], "destination": "session"});
        let many = json!([of("removeRules"), of("replaceRules"), directories, {"type": "setMode", "mode": "plan"}]);
        let many = read_answer(&allow(json!({}), many), "{}").rules;
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
        assert_eq!(read_answer(&allow(json!({}), odd), "{}").rules, []);
    }
}
