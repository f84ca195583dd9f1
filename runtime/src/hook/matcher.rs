//! Which handlers a firing is for.

use fancy_regex::{Regex, RegexBuilder};

use super::{HookAction, HookEvent, HookHandler, HookTable, HookWait, Matcher};

/// Steps a pattern may take on one subject. A tool name is short; whatever needs more is a
/// pattern that was built to hang.
const BACKTRACK_LIMIT: usize = 100_000;

/// Bytes of the name of a file at most.
const MAX_NAME: usize = 255;

/// The matcher is not a regular expression.
#[derive(Debug, thiserror::Error)]
#[error("the matcher `{text}` is not a regular expression")]
#[non_exhaustive]
pub struct BadMatcher {
    /// The matcher, as it was written.
    pub text: String,
    /// What is wrong with it.
    #[source]
    cause: Box<fancy_regex::Error>,
}

impl Matcher {
    /// Reads a matcher as it is in a settings file.
    ///
    /// # Errors
    ///
    /// [`BadMatcher`]; the entry it belongs to is invalid.
    pub fn parse(text: Option<&str>) -> Result<Self, BadMatcher> {
        let text = text.unwrap_or_default();
        if matches!(text, "" | "*") {
            return Ok(Self::Any);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_- ,|".contains(c);
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(|it| it.trim().to_owned());
            return Ok(Self::Names(names.filter(|it| !it.is_empty()).collect()));
        }
        let pattern = |cause| BadMatcher { text: text.into(), cause };
        compile(text).map_err(pattern)?;
        Ok(Self::Pattern(text.into()))
    }

    /// Reads the names of the files that it has watched: plain names of files of the working directory, with bars
    /// between them. Nothing, and `*`, is for every file that is watched, and has none watched.
    ///
    /// # Errors
    ///
    /// The first name that is no plain name of a file.
    pub(super) fn parse_files(text: Option<&str>) -> Result<Self, String> {
        let text = text.unwrap_or_default();
        if matches!(text, "" | "*") {
            return Ok(Self::Any);
        }
        let names = text.split('|').map(str::trim).filter(|it| !it.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_plain = |it: &&String| {
            !matches!(it.as_str(), "." | "..") && !it.contains(['/', '\0']) && it.len() <= MAX_NAME
        };
        match names.iter().find(|it| !is_plain(it)) {
            Some(name) => Err(format!("`{name}` is not a name of a file in the working directory")),
            None => Ok(Self::Names(names)),
        }
    }

    /// Returns the matcher as a settings file has it; `None` if it covers everything.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Any => None,
            Self::Names(names) => Some(names.join("|")),
            Self::Pattern(pattern) => Some(pattern.clone()),
        }
    }

    /// Returns whether it covers this subject. A pattern that takes too many steps counts as covering it: a hook that
    /// guards something must not be talked out of running.
    pub fn matches(&self, subject: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Names(names) => names.iter().any(|it| it == subject),
            Self::Pattern(pattern) => {
                compile(pattern).is_ok_and(|it| it.is_match(subject).unwrap_or(true))
            }
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, Box<fancy_regex::Error>> {
    RegexBuilder::new(pattern).backtrack_limit(BACKTRACK_LIMIT).build().map_err(Box::new)
}

/// Returns the handlers that run, in configuration order. `subject` is `None` for events that have none (Stop): then
/// every handler runs. The same from two settings files runs once: not as a repository has it, if another has it, too.
pub(crate) fn matching<'a>(
    table: &'a HookTable,
    event: HookEvent,
    subject: Option<&str>,
) -> Vec<&'a HookHandler> {
    let mut found: Vec<&HookHandler> = Vec::new();
    let is_guard = |it: &HookHandler| it.wait == HookWait::Waited && !it.scope.is_of_repository();
    for handler in of_subject(table, event, subject) {
        let same = |it: &&&mut &HookHandler| {
            it.scope != handler.scope
                && it.action == handler.action
                && it.condition == handler.condition
        };
        match found.iter_mut().find(|it| same(&it)) {
            Some(known) if known.scope.is_of_repository() => *known = handler,
            // A handler that is not waited for cannot deny anything.
            Some(known) if known.wait != HookWait::Waited && is_guard(handler) => *known = handler,
            Some(_) => {}
            None => found.push(handler),
        }
    }
    found
}

/// Returns those that ran before handlers had conditions and asked servers: of one command from two files the first.
pub(crate) fn matching_commands<'a>(
    table: &'a HookTable,
    event: HookEvent,
    subject: Option<&str>,
) -> Vec<&'a HookHandler> {
    let mut found: Vec<&HookHandler> = Vec::new();
    let handlers = of_subject(table, event, subject);
    let is_other = |it: &HookAction| {
        matches!(
            it,
            HookAction::Http(_)
                | HookAction::McpTool(_)
                | HookAction::Prompt(_)
                | HookAction::Agent(_)
        )
    };
    for handler in handlers.filter(|it| !is_other(&it.action)) {
        let same = |it: &&HookHandler| it.scope != handler.scope && it.action == handler.action;
        if !found.iter().any(same) {
            found.push(handler);
        }
    }
    found
}

fn of_subject<'a>(
    table: &'a HookTable,
    event: HookEvent,
    subject: Option<&str>,
) -> impl Iterator<Item = &'a HookHandler> {
    let handlers = table.get(&event).into_iter().flatten();
    handlers.filter(move |it| subject.is_none_or(|subject| it.matcher.matches(subject)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hook::{HookAction, HookCondition, OnFailure},
        permission::Scope,
    };

    // REQ: HKS-5
    #[test]
    fn matchers_are_lists_of_exact_names_or_patterns() {
        for (matcher, subject, expected) in [
            ("", "Bash", true),
            ("*", "Bash", true),
            ("mcp__memory", "mcp__memory__create", false),
            ("mcp__memory__.*", "mcp__memory__create", true),
            ("Edit|Write", "NotebookEdit", false),
            ("Edit.*", "NotebookEdit", true),
            ("bash", "Bash", false),
            ("Bash", "BashOutput", false),
            ("Bash,PowerShell", "PowerShell", true),
            ("Bash, PowerShell", "PowerShell", true),
            ("code-reviewer", "my-code-reviewer", false),
            ("mcp__brave-search", "mcp__brave-search", true),
            ("^(?!Bash)", "Read", true),
            ("^(?!Bash)", "Bash", false),
        ] {
            let parsed = Matcher::parse(Some(matcher)).unwrap();
            assert_eq!(parsed.matches(subject), expected, "{matcher} on {subject}");
        }
        assert!(Matcher::parse(Some("(unclosed")).is_err());
        assert_eq!(Matcher::parse(None).unwrap(), Matcher::Any);
    }

    // REQ: HKS-1
    #[test]
    fn matchers_of_watched_files_are_plain_names() {
        let files = |text| Matcher::parse_files(Some(text));
        let names = |names: &[&str]| Matcher::Names(names.iter().map(|it| (*it).into()).collect());
        assert_eq!(files(".envrc|.env"), Ok(names(&[".envrc", ".env"])));
        assert_eq!(files("a.* | b,c"), Ok(names(&["a.*", "b,c"])));
        for all in ["", "*"] {
            assert_eq!(files(all), Ok(Matcher::Any));
        }
        let long = "x".repeat(MAX_NAME + 1);
        for bad in ["..", "a|../b", "/etc/passwd", ".", "a/b", "a\0", &long] {
            assert!(files(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pattern_built_to_hang_still_runs_the_hook() {
        let matcher = Matcher::parse(Some(r"^(a|aa)+(?=b)\1$")).unwrap();
        assert!(matcher.matches(&"a".repeat(64)));
    }
    #[test]
    fn same_command_from_two_files_runs_once() {
        let handler = |scope, command: &str| HookHandler {
            matcher: Matcher::Any,
            condition: None,
            action: HookAction::Command { command: command.into(), args: None },
            timeout_ms: 1,
            on_failure: OnFailure::Ignore,
            wait: HookWait::Waited,
            scope,
            only_restricts: false,
        };
        let table = HookTable::from([(
            HookEvent::Stop,
            vec![
                handler(Scope::User, "a"),
                handler(Scope::Project, "a"),
                handler(Scope::Project, "b"),
            ],
        )]);
        let commands: Vec<_> =
            matching(&table, HookEvent::Stop, None).iter().map(|it| it.label()).collect();
        assert_eq!(commands, ["a", "b"]);
    }

    // REQ: HKS-1
    #[test]
    fn copy_of_a_repository_does_not_take_the_place_of_a_guard() {
        let handler = |scope, rule: &str| HookHandler {
            matcher: Matcher::Any,
            condition: Some(HookCondition { rule: rule.into(), scope }),
            action: HookAction::Command { command: "guard".into(), args: None },
            timeout_ms: 1,
            on_failure: OnFailure::Ignore,
            wait: HookWait::Waited,
            scope,
            only_restricts: false,
        };
        let check = |rule: &str, expected: &[Scope]| {
            let handlers = [Scope::Project, Scope::Policy].map(|it| handler(it, rule)).to_vec();
            let table = HookTable::from([(HookEvent::PreToolUse, handlers)]);
            let found = matching(&table, HookEvent::PreToolUse, Some("Bash"));
            assert_eq!(found.iter().map(|it| it.scope).collect::<Vec<_>>(), expected, "{rule}");
            // Before there were conditions the first one ran.
            let before = matching_commands(&table, HookEvent::PreToolUse, Some("Bash"));
            assert_eq!(before.iter().map(|it| it.scope).collect::<Vec<_>>(), [Scope::Project]);
        };
        check("Bash(rm *)", &[Scope::Policy]);
        // From another place it is another condition.
        check("Edit(/src/**)", &[Scope::Project, Scope::Policy]);
    }
}
