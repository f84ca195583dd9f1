//! Stage 4: what no rule decided is asked, or denied where there is no handler to ask.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Decision, GateStage, ResolvedPath, RuleRef,
    call_input::CallInput,
    path_rule::escape,
    web_hosts::{WEB_FETCH, suggested},
};
use crate::{
    approval::PermissionAnswer,
    tool::{Access, ToolCall},
};

/// Returns the decision about a call where there is no handler to ask.
pub(super) fn without_handler(reason: &str, rule: Option<RuleRef>) -> Decision {
    let (stage, reason) = (GateStage::PermissionHandler, no_handler_reason(reason));
    Decision { allowed: false, stage, rule, reason, class: None }
}

/// Returns why a call is denied where there is no handler to ask.
pub(crate) fn no_handler_reason(reason: &str) -> String {
    format!("permission was needed ({reason}) and nobody can be asked for it")
}

/// Turns an answer into a decision.
pub(super) fn answered(answer: PermissionAnswer, rule: Option<RuleRef>) -> Decision {
    let reason = match (answer.allowed, answer.reason.is_empty()) {
        (_, false) => answer.reason,
        (true, true) => "allowed when asked".into(),
        (false, true) => "denied when asked".into(),
    };
    Decision {
        allowed: answer.allowed,
        stage: GateStage::PermissionHandler,
        rule,
        reason,
        class: None,
    }
}

/// Suggests allow rules that would let the call pass next time, narrowest first. None for a call that no rule can let
/// pass.
pub(super) fn suggestions(
    call: &ToolCall,
    access: &Access,
    path: Option<&ResolvedPath>,
) -> Vec<String> {
    let tool = call.name.as_str();
    match (access, path) {
        (Access::ReadPath { .. }, Some(path)) => path_rules("Read", path),
        (Access::WritePath { .. }, Some(path)) => path_rules("Edit", path),
        (Access::Person, _) => Vec::new(),
        _ if tool == WEB_FETCH => {
            let input = CallInput::new(Arc::clone(&call.input));
            input.get("url").and_then(Value::as_str).and_then(suggested).into_iter().collect()
        }
        _ => vec![tool.to_owned()],
    }
}

fn path_rules(tool: &str, path: &ResolvedPath) -> Vec<String> {
    // A rule must cover the path as written and as reached; one rule can do so only if they agree.
    if path.lexical != path.real {
        return Vec::new();
    }
    let mut rules = vec![format!("{tool}(/{})", escape(&path.real))];
    match path.real.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => {
            rules.push(format!("{tool}(/{}/**)", escape(parent)));
        }
        _ => {}
    }
    rules
}
