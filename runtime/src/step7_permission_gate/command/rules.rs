//! Rules against parts (cases A4 to A6).

use super::{
    CommandContext, Part, ShellCommand,
    escapes::{call, escapes},
    part::{base, canonical},
    programs::OPAQUE,
    read_only::{enters_workspace, has_harmless_assignments},
    scripts::is_interpreter,
};
use crate::step7_permission_gate::{
    rule::wildcard,
    shell::{self, tree::Kind, word::Word},
};

/// What is in the brackets of a rule.
#[derive(Clone, Debug)]
pub(in super::super) struct Pattern {
    /// As written, one blank between words.
    text: String,
    /// Its words as the shell would read them.
    words: Option<String>,
}

impl Pattern {
    pub(in super::super) fn read(text: &str) -> Self {
        let text = text.trim();
        let text = match text.strip_suffix(":*") {
            Some(prefix) => format!("{prefix} *"),
            None => text.to_owned(),
        };
        let words = words(&text).map(|it| canonical(&it));
        let text = match text.contains(['"', '\'', '\\', '\n']) {
            true => text,
            false => text.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Self { words: words.filter(|it| *it != text), text }
    }

    fn forms(&self) -> impl Iterator<Item = &str> {
        [Some(self.text.as_str()), self.words.as_deref()].into_iter().flatten()
    }

    /// Whether it names no program.
    pub(in super::super) fn is_open(&self) -> bool {
        self.text.starts_with('*')
    }

    /// Whether it is this text word for word.
    fn equals(&self, text: &str) -> bool {
        self.forms().any(|it| it == text)
    }

    /// Whether it covers this text.
    fn covers(&self, text: &str) -> bool {
        self.forms().any(|it| covers(it, text))
    }

    /// Whether a deny or ask rule with it is about any part; of a command that cannot be read also
    /// whether it is about the text as given.
    pub(in super::super) fn is_about(&self, command: &ShellCommand) -> bool {
        let is_unread = command.fault().is_some() && self.covers(command.raw().trim());
        is_unread || command.parts().iter().any(|it| self.names(it))
    }

    fn names(&self, part: &Part) -> bool {
        part.called.iter().any(|it| self.covers(it))
    }
}

/// The texts by which deny and ask rules know a part: its words, without what is in front of them, and
/// by the name of each program that it may run.
pub(super) fn called(part: &Part) -> Vec<String> {
    let mut found = vec![part.whole.clone()];
    if part.start > 0 {
        found.push(part.text.clone());
    }
    if !part.assignments.is_empty() && !part.words.is_empty() {
        let mut with = String::new();
        for it in &part.assignments {
            with.push_str(&it.name);
            with.push('=');
            it.value.write_canonical(&mut with);
            with.push(' ');
        }
        with.push_str(&part.whole);
        found.push(with);
    }
    for start in &part.starts {
        let words = &part.words[*start..];
        if *start > part.start {
            found.push(canonical(words));
        }
        found.extend(called_by_name(words));
    }
    found
}

/// The words of a text that is one simple command.
fn words(text: &str) -> Option<Vec<Word>> {
    if text.contains('#') {
        return None;
    }
    let script = shell::read(text);
    let [item] = &script.list.0[..] else { return None };
    let [command] = &item.first.commands[..] else { return None };
    let Kind::Simple(simple) = &command.kind else { return None };
    let is_whole = script.fault.is_none()
        && item.rest.is_empty()
        && !item.is_background
        && simple.assignments.is_empty()
        && simple.redirections.is_empty();
    is_whole.then(|| simple.words.clone())
}

/// `/bin/rm x` as `rm x`, and `git -C d push` as `git push`; `None` where it is called so already.
fn called_by_name(words: &[Word]) -> Option<String> {
    let (name, args) = words.split_first()?;
    let base = base(&name.text);
    let args = match base {
        "git" => {
            let call = call(args);
            if call.command.is_empty() { args } else { &args[call.global.len()..] }
        }
        _ => args,
    };
    let is_same = base == name.text && args.len() + 1 == words.len();
    (!is_same).then(|| {
        let mut text = Word::plain(base).canonical();
        for arg in args {
            text.push(' ');
            arg.write_canonical(&mut text);
        }
        text
    })
}

/// The pattern against a text: `*` matches anything, a ` *` at the end also nothing.
fn covers(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix(" *") {
        Some(prefix) => {
            let has_star = prefix.contains('*');
            let begins = text.strip_prefix(prefix);
            if !has_star {
                return begins.is_some_and(|it| it.is_empty() || it.starts_with(' '));
            }
            wildcard(prefix, text) || wildcard(pattern, text)
        }
        None => wildcard(pattern, text),
    }
}

/// Whether an allow rule with this pattern covers a part; without one it is about the whole tool.
pub(in super::super) fn covered_by(
    pattern: Option<&Pattern>,
    part: &Part,
    around: &CommandContext,
) -> bool {
    let Some(pattern) = pattern else { return true };
    // Of many rules few are about a part at all, and the rest is dear.
    let is_equal = pattern.equals(&part.whole) || pattern.equals(&part.text);
    let is_named = is_equal || pattern.covers(&part.text);
    let is_git = part.name() == "git";
    if !is_named && !is_git || part.words.is_empty() || part.fault.is_some() || part.is_function {
        return false;
    }
    if !has_harmless_assignments(part) {
        return false;
    }
    let name = base(part.name());
    let moves = matches!(name, "cd" | "pushd") && !enters_workspace(part, around);
    let is_elsewhere = name == "git" && (part.has_moved || part.dirs.is_unknown());
    if moves || is_elsewhere {
        return false;
    }
    if is_equal {
        return true;
    }
    let covers =
        || is_named || git_in_workspace(part, around).is_some_and(|it| pattern.covers(&it));
    covers() && !is_confined(part)
}

/// Whether only a rule for the whole tool, or one that is the part word for word, covers it.
pub(in super::super) fn is_confined(part: &Part) -> bool {
    let name = base(part.name());
    OPAQUE.contains(&name) || is_interpreter(name, part.args()) || escapes(part)
}

/// A call of git without the options that change nothing about what runs.
fn git_in_workspace(part: &Part, around: &CommandContext) -> Option<String> {
    let args = part.args();
    if part.name() != "git" {
        return None;
    }
    let call = call(args);
    let mut global = call.global.iter();
    while let Some(option) = global.next() {
        match option.text.as_str() {
            "--no-pager" | "-P" => {}
            "-C" => {
                let to = global.next()?;
                super::files::named(to, part, around).is_inside(&part.dirs, around).then_some(())?;
            }
            _ => return None,
        }
    }
    if call.global.is_empty() || call.command.is_empty() {
        return None;
    }
    Some(format!("git {}", canonical(&args[call.global.len()..])))
}

/// Rules that would cover a part, the narrowest first.
pub(super) fn suggested(part: &Part) -> Vec<String> {
    let words = part.inner();
    if words.is_empty() || part.fault.is_some() || !has_harmless_assignments(part) {
        return Vec::new();
    }
    let mut rules = vec![part.text.clone()];
    if is_confined(part) {
        return rules;
    }
    let is_plain = |it: &&Word| {
        it.is_bare()
            && !it.text.starts_with('-')
            && it.text.bytes().all(|it| it.is_ascii_alphabetic() || it == b'-')
    };
    let name = Word::canonical(&words[0]);
    match words.get(1).filter(is_plain) {
        Some(sub) => rules.push(format!("{name} {} *", sub.text)),
        None => rules.push(format!("{name} *")),
    }
    rules
}
