//! A question about a call as a person at a terminal sees it, and what the person types.
//!
//! Pure. What a model wrote is shown without control sequences; the caller writes it as it is.

use ennead::permission::{PermissionAnswer, Question, RuleUpdate};
use ennead_runtime::output::terminal::{clean, clean_line};

/// Characters of an action that are shown; a mark stands for the rest.
const MAX_ACTION: usize = 4_000;

/// What a person typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// The call may run.
    Yes,
    /// The call may not run.
    No,
    /// It may run, and so may others that the first suggested rule covers, for the session.
    Always,
}

/// Writes the question, ended with the words that ask for a key and without a newline.
pub fn question_text(question: &Question) -> String {
    let agent = question.agents.last().map(|it| format!(" of sub-agent {it}"));
    let tool = clean_line(question.call.name.as_str());
    let mut text = format!(
        "May a call{} of {tool} run? {}\n",
        agent.unwrap_or_default(),
        clean_line(&question.reason)
    );
    let action = clean(&action_of(question));
    for line in shortened(&action).lines() {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(&format!("    in {}\n", clean_line(&question.cwd)));
    match rule(question) {
        Some(rule) => text
            .push_str(&format!("[y]es, [n]o, [a]lways in this session ({}): ", clean_line(rule))),
        None => text.push_str("[y]es, [n]o: "),
    }
    text
}

/// Reads what was typed; `None` where it is none of the answers.
pub fn typed(line: &str, question: &Question) -> Option<Typed> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Typed::Yes),
        "n" | "no" => Some(Typed::No),
        "a" | "always" if rule(question).is_some() => Some(Typed::Always),
        _ => None,
    }
}

/// Returns the answer that it means.
pub fn answer(typed: Typed, question: &Question) -> PermissionAnswer {
    match typed {
        Typed::Yes => PermissionAnswer::allow(),
        Typed::No => PermissionAnswer::deny("the user said no"),
        Typed::Always => {
            let allowed = PermissionAnswer::allow();
            match rule(question) {
                Some(rule) => allowed.with_rule(RuleUpdate::allow(rule)),
                None => allowed,
            }
        }
    }
}

fn rule(question: &Question) -> Option<&str> {
    // One that is too long to be read is none to agree to.
    question.suggestions.first().map(String::as_str).filter(|it| it.len() <= 200)
}

/// The command of a shell, the input of any other tool.
fn action_of(question: &Question) -> String {
    let input: serde_json::Value = serde_json::from_str(&question.call.input).unwrap_or_default();
    match input.get("command").and_then(serde_json::Value::as_str) {
        Some(command) if question.class.is_some() => command.to_owned(),
        _ => question.call.input.to_string(),
    }
}

fn shortened(action: &str) -> String {
    match action.char_indices().nth(MAX_ACTION) {
        None => action.to_owned(),
        Some((at, _)) => {
            let more = action[at..].chars().count();
            format!("{}\n[{more} more characters are not shown]", &action[..at])
        }
    }
}
