//! Whether the condition of a hook (`if`) holds for a call.
//!
//! In doubt it does: a guard that runs too often is a nuisance, one that does not run is a hole. A command is looked
//! through as deny rules do, paths are where allow rules have them.

use std::sync::Arc;

use super::{
    GateSetup,
    call_input::CallInput,
    command::{CommandPattern, Follower, ShellCommand},
    path_resolution::lexical,
    path_rule::PathPattern,
    rule::Rule,
    rule_book::{CallFields, Match, host, specifier},
};
use crate::{
    hook::HookCondition,
    ids::ToolName,
    permission::RuleKind,
    tool::{Access, ToolSpec},
};

/// A call, as conditions are held against it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CallOfHook {
    tool: ToolName,
    access: Access,
    input: Arc<str>,
    setup: Arc<GateSetup>,
}

impl CallOfHook {
    /// Makes the call of a tool with this input: JSON text of an object.
    pub(crate) fn new(spec: &ToolSpec, input: Arc<str>, setup: Arc<GateSetup>) -> Self {
        Self { tool: spec.name.clone(), access: spec.access.clone(), input, setup }
    }

    /// Returns the bytes that are read to hold a condition against it.
    pub fn n_bytes(&self) -> usize {
        self.input.len()
    }

    /// Returns whether a handler with this condition runs. Takes time as the gate does to judge the call.
    pub fn meets(&self, condition: &HookCondition) -> bool {
        let Ok(rule) = &Rule::of_condition(condition) else { return true };
        let tool = self.tool.as_str();
        let input = CallInput::new(Arc::clone(&self.input));
        let text = |field: &str| input.get(field).and_then(serde_json::Value::as_str);
        let field = |name: &str| input.get(name);
        let call = CallFields { tool, field: &field };
        let of_input = |pattern: &str| specifier(pattern, RuleKind::Ask, &call);
        match (&self.access, &rule.spec) {
            (Access::ReadPath { field } | Access::WritePath { field }, Some(pattern)) => {
                let reads = matches!(self.access, Access::ReadPath { .. });
                let governs = if reads { rule.tool == "Read" } else { rule.tool == "Edit" };
                (governs || rule.names(tool)) && self.lies_in(pattern, rule, text(field))
                    || rule.names(tool) && of_input(pattern) == Match::Yes
            }
            (Access::ReadPath { .. }, None) => rule.names(tool) || rule.tool == "Read",
            (Access::WritePath { .. }, None) => rule.names(tool) || rule.tool == "Edit",
            _ if !rule.names(tool) => false,
            (_, None) => true,
            (Access::Command { field }, Some(pattern)) => {
                self.runs(pattern, text(field).unwrap_or_default())
                    || of_input(pattern) == Match::Yes
            }
            (_, Some(pattern)) => {
                let is_uncertain =
                    tool == "WebFetch" && text("url").is_some_and(|it| host(it).is_none());
                is_uncertain || of_input(pattern) != Match::No
            }
        }
    }

    /// Whether a path lies where a pattern of an allow rule has it. A call without a path is about the working
    /// directory.
    fn lies_in(&self, pattern: &str, rule: &Rule, given: Option<&str>) -> bool {
        let anchors = self.setup.anchors();
        let pattern = PathPattern::of_rule(pattern, RuleKind::Allow, rule.scope, &anchors);
        let (cwd, home) = (self.setup.cwd(), &anchors.home);
        let path = lexical(given.unwrap_or("."), cwd, home);
        // Of a pattern that cannot be read nobody knows what it leaves out.
        pattern.map_or(true, |it| it.matches(&path))
    }

    /// Whether a command may run what a pattern names.
    fn runs(&self, pattern: &str, command: &str) -> bool {
        let read = ShellCommand::read(command, self.setup.surroundings(Follower::default()));
        let names_more =
            pattern.trim_end_matches(['*', ':', ' ']).split_whitespace().nth(1).is_some();
        read.fault().is_some()
            || read.is_unseen()
            || read.parts().iter().any(|it| it.fault.is_some())
            || CommandPattern::read(pattern).is_about(&read)
            || names_more && is_expanded(command)
    }
}

/// Whether some text of a command is known when it runs only: `$NAME`, `$(…)`, backticks.
fn is_expanded(command: &str) -> bool {
    let starts = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'{' | b'(' | b'@' | b'*');
    let bytes = command.as_bytes();
    bytes.contains(&b'`') || bytes.windows(2).any(|it| it[0] == b'$' && starts(it[1]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{
        hook::{HookEvent, HookTable},
        permission::{PermissionMode, Scope},
        step1_settings_resolution::{LayerText, Settings, merge},
        step7_permission_gate::{Handler, Places},
    };

    fn hooks(event: HookEvent, condition: &str) -> (HookTable, Vec<String>) {
        let handler = json!({"type": "command", "command": "c", "if": condition});
        let text = json!({"hooks": {event.name(): [{"hooks": [handler]}]}}).to_string();
        let layer = LayerText { scope: Scope::Project, source: "s".into(), text };
        let merged = merge(&[layer]);
        (merged.settings.hooks.clone(), merged.warnings)
    }

    #[track_caller]
    fn check(condition: &str, tool: &str, access: Access, input: serde_json::Value, runs: bool) {
        let (table, warnings) = hooks(HookEvent::PreToolUse, condition);
        assert_eq!(warnings, [] as [&str; 0]);
        let condition = table[&HookEvent::PreToolUse][0].condition.clone().unwrap();
        let (workspace, home, real) = ("/w".into(), "/h".into(), BTreeMap::new());
        let places = Places { workspace, home, project_root: None, real };
        let settings = Arc::new(Settings::default());
        let setup = GateSetup::new(settings, PermissionMode::Default, places, Handler::None);
        let (tool, input) = (tool.into(), input.to_string().into());
        let call = CallOfHook { tool, access, input, setup: Arc::new(setup) };
        assert_eq!(call.meets(&condition), runs, "{condition:?} on {call:?}");
    }

    // REQ: HKS-1
    #[test]
    fn command_meets_a_condition_when_any_part_of_it_may_be_what_the_rule_names() {
        for (condition, command, runs) in [
            ("Bash(git *)", "X=1 git push", true),
            ("Bash(git *)", "ls; cd /tmp && git status", true),
            ("Bash(git *)", "ls 'unclosed", true),
            ("Bash(git *)", "eval \"$it\"", true),
            ("Bash(git *)", "ls", false),
            ("Bash(rm *)", "echo $(date)", false),
            ("Bash(rm *)", "echo $(rm x)", true),
            ("Bash(rm *)", "echo `rm x`", true),
            ("Bash(git push *)", "echo $(date)", true),
            ("Bash(git push *)", "echo $HOME", true),
            ("Bash(git push *)", "echo '5 $'", false),
            ("Bash(git push *)", "git pull", false),
            ("Bash(git push *)", "set -- push; git \"$@\"", true),
            ("Bash(git push *)", "echo push origin | xargs git", true),
            ("Bash(rm *)", "cat f | sh", true),
            ("Bash(rm *)", "bash x.sh", true),
            ("Bash(git-lfs *)", "/usr/bin/git-lfs push", true),
            ("Bash(git lfs *)", "/usr/bin/git-lfs push", true),
            ("Bash", "ls", true),
            ("Edit", "ls", false),
        ] {
            let access = Access::Command { field: "command".into() };
            check(condition, "Bash", access, json!({ "command": command }), runs);
        }
    }

    // REQ: HKS-1
    #[test]
    fn path_meets_a_condition_where_an_allow_rule_would_cover_it() {
        let write = || Access::WritePath { field: "file_path".into() };
        let read = || Access::ReadPath { field: "file_path".into() };
        for (condition, path, runs) in [
            ("Edit(src/**)", "src/a.rs", true),
            ("Edit(src/**)", "/w/src/deep/a.rs", true),
            ("Edit(src/**)", "x/../src/a.rs", true),
            ("Edit(src/**)", "deep/src/a.rs", false),
            ("Edit(src/**)", "/other/src/a.rs", false),
            ("Write(*.md)", "a.md", true),
            ("Edit", "anything", true),
            ("Read(src/**)", "src/a.rs", false),
        ] {
            check(condition, "Write", write(), json!({ "file_path": path }), runs);
        }
        check("Read(~/.ssh/**)", "Read", read(), json!({"file_path": "~/.ssh/id"}), true);
        check("Edit(src/**)", "Read", read(), json!({"file_path": "src/a.rs"}), false);
    }

    // REQ: HKS-1
    #[test]
    fn other_tools_meet_a_condition_by_name_and_field() {
        let url = json!({"url": "https://docs.example.com/x"});
        check("WebFetch(domain:*.example.com)", "WebFetch", Access::Ask, url.clone(), true);
        check("WebFetch(domain:other.org)", "WebFetch", Access::Ask, url, false);
        let uncertain = json!({"url": "https://x@docs.example.com/"});
        check("WebFetch(domain:*.example.com)", "WebFetch", Access::Ask, uncertain, true);
        let leaves = json!({"command": "ls", "dangerouslyDisableSandbox": true});
        let command = || Access::Command { field: "command".into() };
        check("Bash(dangerouslyDisableSandbox:true)", "Bash", command(), leaves.clone(), true);
        check("Bash(dangerouslyDisableSandbox:false)", "Bash", command(), leaves, false);
        let search = json!({"pattern": "a secret", "path": "src"});
        let path = || Access::ReadPath { field: "path".into() };
        check("Grep(pattern:*secret*)", "Grep", path(), search.clone(), true);
        check("Grep(pattern:other)", "Grep", path(), search, false);
        check("mcp__memory", "mcp__memory__create", Access::Ask, json!({}), true);
        check("mcp__memory", "mcp__other__create", Access::Ask, json!({}), false);
    }

    // REQ: HKS-1
    #[test]
    fn condition_is_for_calls_alone_and_one_that_is_no_rule_does_not_silence_a_handler() {
        let (table, warnings) = hooks(HookEvent::Stop, "Bash(git *)");
        assert!(table.values().all(Vec::is_empty) && warnings.len() == 1, "{warnings:?}");
        let (table, warnings) = hooks(HookEvent::PreToolUse, "Bash(git");
        assert_eq!(table[&HookEvent::PreToolUse].len(), 1);
        assert!(warnings[0].contains("always met"), "{warnings:?}");
    }
}
