//! One permission rule as written: its parts, and which tools it names.
//!
//! Settings resolution checks rules with it before the gate receives them.

use std::sync::Arc;

use crate::{
    hook::HookCondition,
    permission::{RuleKind, RuleText, Scope},
    tool::{ASK_USER_QUESTION, ToolSpec},
};

/// Tools that rules may name though a session does not have them, by their current names: settings
/// are shared with other runtimes.
const TOOLS_ELSEWHERE: &[&str] = &[
    "Agent",
    ASK_USER_QUESTION,
    "Bash",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "LSP",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "PowerShell",
    "Read",
    "ReadMcpResourceTool",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// A rule taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What the rule does with a call that it matches.
    pub kind: RuleKind,
    /// Where it comes from.
    pub scope: Scope,
    /// The rule, as it was written.
    pub text: String,
    /// The tool, by its current name, or a glob of names.
    pub tool: String,
    /// What is in the parentheses; `None` for the bare tool and for `*`.
    pub spec: Option<String>,
}

/// Why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRule {
    /// There is no tool name in front.
    #[error("the rule `{0}` names no tool")]
    NoTool(String),
    /// An opening parenthesis without a closing one at the end.
    #[error("the rule `{0}` does not end with its closing parenthesis")]
    Unclosed(String),
    /// Nothing in the parentheses of an allow rule.
    #[error("the allow rule `{0}` has an empty specifier")]
    EmptySpecifier(String),
    /// A glob in an allow rule that is not after a literal `mcp__server__`.
    #[error("the allow rule `{0}` may use `*` only after a literal `mcp__server__`")]
    LooseGlob(String),
}

impl Rule {
    /// Takes a rule apart.
    ///
    /// # Errors
    ///
    /// [`BadRule`] for what must be dropped with a warning.
    pub fn parse(rule: &RuleText) -> Result<Self, BadRule> {
        let text = rule.text.trim();
        let (tool, spec) = match text.split_once('(') {
            None if text.contains(')') => return Err(BadRule::Unclosed(text.into())),
            None => (text, None),
            Some((tool, rest)) => {
                let spec = rest.strip_suffix(')').ok_or_else(|| BadRule::Unclosed(text.into()))?;
                (tool.trim_end(), Some(spec))
            }
        };
        if tool.is_empty() || tool.contains(char::is_whitespace) {
            return Err(BadRule::NoTool(text.into()));
        }
        let allow = rule.kind == RuleKind::Allow;
        if allow && spec.is_some_and(|spec| spec.trim().is_empty()) {
            return Err(BadRule::EmptySpecifier(text.into()));
        }
        if allow && tool.contains('*') && !is_glob_of_one_server(tool) {
            return Err(BadRule::LooseGlob(text.into()));
        }
        // An empty deny is taken for the whole tool: the stricter reading.
        let spec = spec.filter(|spec| !matches!(spec.trim(), "" | "*")).map(str::to_owned);
        Ok(Self {
            kind: rule.kind,
            scope: rule.scope,
            text: text.into(),
            tool: current_name(tool).into(),
            spec,
        })
    }

    /// Takes the rule of a hook's condition apart.
    ///
    /// # Errors
    ///
    /// [`BadRule`]: the condition counts as met, as a guard that does not run is a hole.
    pub(crate) fn of_condition(condition: &HookCondition) -> Result<Self, BadRule> {
        let HookCondition { rule, scope } = condition;
        // The kind for which most texts are rules.
        Self::parse(&RuleText { kind: RuleKind::Ask, scope: *scope, text: rule.clone() })
    }

    /// Returns why a deny or ask rule can match no call of a session with these tools: a name that is not known. Names
    /// with `_` or `*` may be those of servers that are not there yet.
    pub(crate) fn names_nothing(&self, tools: &[Arc<ToolSpec>]) -> Option<String> {
        let (name, text) = (self.tool.as_str(), &self.text);
        let own = tools.iter().map(|it| it.name.as_str());
        let known = || own.clone().chain(TOOLS_ELSEWHERE.iter().copied());
        let is_known = name.contains(['_', '*']) || known().any(|it| it == name);
        if self.kind == RuleKind::Allow || is_known {
            return None;
        }
        let meant = known().find(|it| it.eq_ignore_ascii_case(name));
        let meant = meant.map(|it| format!("; `{it}` is one")).unwrap_or_default();
        Some(format!("the rule `{text}` has no effect: `{name}` is not a tool{meant}"))
    }

    /// Returns whether the rule's name part covers this tool.
    pub fn names(&self, tool: &str) -> bool {
        if self.tool == current_name(tool) {
            return true;
        }
        if self.tool.contains('*') {
            return wildcard(&self.tool, tool);
        }
        // `mcp__server` represents all tools of that server.
        let is_server = self.tool.strip_prefix("mcp__").is_some_and(|it| !it.contains("__"));
        is_server && tool.strip_prefix(self.tool.as_str()).is_some_and(|it| it.starts_with("__"))
    }
}

fn is_glob_of_one_server(tool: &str) -> bool {
    let Some(rest) = tool.strip_prefix("mcp__") else { return false };
    rest.split_once("__").is_some_and(|(server, _)| !server.is_empty() && !server.contains('*'))
}

fn current_name(tool: &str) -> &str {
    match tool {
        "Task" => "Agent",
        "BashOutput" => "TaskOutput",
        "KillShell" | "KillBash" => "TaskStop",
        other => other,
    }
}

/// Returns whether `pattern`, in which `*` matches any characters, covers the whole of `text`. Takes time in the
/// product of the lengths at worst.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            last_star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star, from)) = last_star {
            p = star + 1;
            t = from + 1;
            last_star = Some((star, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(kind: RuleKind, text: &str) -> Result<Rule, BadRule> {
        Rule::parse(&RuleText { kind, scope: Scope::Project, text: text.into() })
    }

    #[track_caller]
    fn check_names(text: &str, tool: &str, expected: bool) {
        let rule = rule(RuleKind::Deny, text).unwrap();
        assert_eq!(rule.names(tool), expected, "{text} on {tool}");
    }

    #[test]
    fn names_match_exactly_or_by_glob_or_by_server() {
        check_names("Bash", "Bash", true);
        check_names("Bash", "BashOutput", false);
        check_names("Task", "Agent", true);
        check_names("mcp__*", "mcp__gh__get_issue", true);
        check_names("mcp__gh", "mcp__gh__get_issue", true);
        check_names("mcp__gh", "mcp__ghost__get", false);
        check_names("Web*", "WebFetch", true);
        check_names("*", "anything", true);
        check_names("toString", "Bash", false);
    }

    // REQ: PRM-3
    #[test]
    fn deny_and_ask_rules_for_tools_that_nobody_knows_are_told() {
        let warns = |kind, text| rule(kind, text).unwrap().names_nothing(&[]);
        for (text, why) in [
            ("Raed", "the rule `Raed` has no effect: `Raed` is not a tool"),
            ("Bsh(x)", "the rule `Bsh(x)` has no effect: `Bsh` is not a tool"),
            ("bash", "the rule `bash` has no effect: `bash` is not a tool; `Bash` is one"),
        ] {
            for kind in [RuleKind::Deny, RuleKind::Ask] {
                assert_eq!(warns(kind, text).as_deref(), Some(why));
            }
            assert_eq!(warns(RuleKind::Allow, text), None, "{text}");
        }
        for known in ["Bash", "Task", "KillShell", "WebFetch(domain:x)", "mcp__gh", "Raed*", "*"] {
            assert_eq!(warns(RuleKind::Deny, known), None, "{known}");
        }
    }

    #[test]
    fn specifier_reaches_to_the_last_parenthesis() {
        let rule = rule(RuleKind::Deny, "Bash(echo (a))").unwrap();
        assert_eq!(rule.spec.as_deref(), Some("echo (a)"));
    }

    // REQ: PRM-3
    #[test]
    fn malformed_rules_are_refused() {
        let allow = |text| rule(RuleKind::Allow, text).unwrap_err();
        assert!(matches!(allow("Bash(ls"), BadRule::Unclosed(_)));
        assert!(matches!(allow("(ls)"), BadRule::NoTool(_)));
        assert!(matches!(allow("Bash()"), BadRule::EmptySpecifier(_)));
        assert!(matches!(allow("mcp__*"), BadRule::LooseGlob(_)));
        assert!(matches!(allow("*"), BadRule::LooseGlob(_)));
        assert_eq!(rule(RuleKind::Deny, "Bash()").unwrap().spec, None);
        assert!(rule(RuleKind::Allow, "mcp__gh__get_*").unwrap().names("mcp__gh__get_issue"));
    }
}
