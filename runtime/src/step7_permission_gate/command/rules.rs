//! Rules against parts (cases A4 to A6).

use std::cell::OnceCell;

use super::{
    CommandContext, CommandPart, ShellCommand,
    escapes::{call, escapes},
    part::{base, canonical, places},
    read_only::{enters_workspace, has_harmless_assignments},
    runners::OPAQUE,
    scripts::is_interpreter,
};
use crate::step7_permission_gate::{
    rule::wildcard,
    shell::{self, tree::CommandKind, word::Word},
};

/// What is in the brackets of a rule.
#[derive(Clone, Debug)]
pub(in super::super) struct CommandPattern {
    /// As written, one blank between words; and its words as the shell would read them, where that differs.
    forms: Vec<PatternForm>,
}

/// One text of a pattern, read once: rules are compared with every part of every command.
#[derive(Clone, Debug)]
struct PatternForm {
    text: String,
    /// Bytes in front of the first `*`; all of them if there is none.
    n_plain: usize,
    /// What is in front of a ` *` at the end that need not match, if there is one.
    n_before_end: Option<usize>,
}

impl PatternForm {
    fn of(text: String) -> Self {
        let n_before_end = text.strip_suffix(" *").map(str::len);
        let n_plain = text.bytes().position(|it| it == b'*').unwrap_or(text.len());
        Self { text, n_plain, n_before_end }
    }

    /// Against a text: `*` matches anything, a ` *` at the end also nothing.
    fn covers(&self, text: &str) -> bool {
        let (pattern, bytes) = (self.text.as_bytes(), text.as_bytes());
        let n_fixed = self.n_before_end.map_or(self.n_plain, |it| it.min(self.n_plain));
        if !bytes.starts_with(&pattern[..n_fixed]) {
            return false;
        }
        match self.n_before_end {
            Some(n_before) if n_fixed == n_before => {
                bytes.len() == n_before || bytes[n_before] == b' '
            }
            Some(n_before) => wildcard(&self.text[..n_before], text) || wildcard(&self.text, text),
            None => wildcard(&self.text, text),
        }
    }
}

impl CommandPattern {
    pub(in super::super) fn read(text: &str) -> Self {
        let text = text.trim();
        let text = match text.strip_suffix(":*") {
            Some(prefix) => format!("{prefix} *"),
            None => text.to_owned(),
        };
        let words = words(&text).map(|it| canonical(&it));
        let text = if text.contains(['"', '\'', '\\', '\n']) {
            text
        } else {
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let words = words.filter(|it| *it != text);
        Self { forms: [text].into_iter().chain(words).map(PatternForm::of).collect() }
    }

    /// Returns whether it names no program.
    pub(in super::super) fn is_open(&self) -> bool {
        self.forms.first().is_some_and(|it| it.text.starts_with('*'))
    }

    /// Whether it is this text word for word.
    fn equals(&self, text: &str) -> bool {
        self.forms.iter().any(|it| it.text == text)
    }

    /// Whether it covers this text.
    fn covers(&self, text: &str) -> bool {
        self.forms.iter().any(|it| it.covers(text))
    }

    /// Returns whether a deny or ask rule with it is about any part; of a command that cannot be read also whether it
    /// is about the text as given.
    pub(in super::super) fn is_about(&self, command: &ShellCommand) -> bool {
        let is_unread = command.fault().is_some() && self.covers(command.raw().trim());
        is_unread || command.parts().iter().any(|it| self.names(it))
    }

    /// Returns whether a deny or ask rule with it may be about a part once the shell has expanded that.
    pub(in super::super) fn may_be_about(&self, command: &ShellCommand) -> bool {
        let is_met = |form: &PatternForm| {
            let short = form.n_before_end.map(|it| &form.text[..it]);
            command
                .vague()
                .iter()
                .any(|it| it.may_meet(&form.text) || short.is_some_and(|short| it.may_meet(short)))
        };
        self.forms.iter().any(is_met)
    }

    fn names(&self, part: &CommandPart) -> bool {
        part.called.iter().any(|it| self.covers(it))
            || part.ends.iter().any(|it| part.whole.get(*it..).is_some_and(|it| self.covers(it)))
    }
}

/// Finds the texts by which deny and ask rules know a part: its words, without what is in front of them, and
/// by the name of each program that it may run.
pub(super) fn recognise(part: &mut CommandPart) {
    let mut called = Vec::new();
    if !part.assignments.is_empty() && !part.words.is_empty() {
        let mut with = String::new();
        for it in &part.assignments {
            with.push_str(&it.name);
            with.push('=');
            it.value.write_canonical(&mut with);
            with.push(' ');
        }
        with.push_str(&part.whole);
        called.push(with);
    }
    called.extend(part.starts.iter().filter_map(|it| called_by_name(&part.words[*it..])));
    called.extend(part.starts.iter().filter_map(|it| called_by_git(&part.words[*it..])));
    part.called = called;
    part.ends = match part.starts[..] {
        [] | [0] => vec![0],
        _ => {
            let places = places(&part.words);
            let starts = part.starts.iter().filter_map(|it| places.get(*it)).copied();
            [0].into_iter().chain(starts.filter(|it| *it > 0)).collect()
        }
    };
}

/// The words of a text that is one simple command.
fn words(text: &str) -> Option<Vec<Word>> {
    if text.contains('#') {
        return None;
    }
    let script = shell::read(text);
    let [item] = &script.list.0[..] else { return None };
    let [command] = &item.first.commands[..] else { return None };
    let CommandKind::Simple(simple) = &command.kind else { return None };
    let is_whole = script.fault.is_none()
        && item.rest.is_empty()
        && !item.is_background
        && simple.assignments.is_empty()
        && simple.redirections.is_empty();
    is_whole.then(|| simple.words.clone())
}

/// `/usr/lib/git-core/git-push x` as `git push x`: a program of git's own directory, called by its path.
fn called_by_git(words: &[Word]) -> Option<String> {
    let (name, args) = words.split_first()?;
    let base = base(&name.text);
    let command = base.strip_prefix("git-").filter(|_| base.len() < name.text.len())?;
    Some(format!("git {command} {}", canonical(args)))
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

/// What allow rules look at in one part, found once for all of them.
#[derive(Debug)]
pub(in super::super) struct Ruled<'a> {
    part: &'a CommandPart,
    around: &'a CommandContext,
    /// Whether rules with words may cover it at all.
    is_fit: OnceCell<bool>,
    /// Whether only a rule that equals it covers it.
    is_confined: OnceCell<bool>,
    /// A call of git without the options that change nothing about what runs.
    git: OnceCell<Option<String>>,
}

impl<'a> Ruled<'a> {
    pub(in super::super) fn of(part: &'a CommandPart, around: &'a CommandContext) -> Self {
        let (is_fit, is_confined, git) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { part, around, is_fit, is_confined, git }
    }

    /// Returns whether an allow rule with this pattern covers the part.
    pub(in super::super) fn is_covered_by(&self, pattern: &CommandPattern) -> bool {
        let part = self.part;
        let is_equal = pattern.equals(&part.whole) || pattern.equals(&part.text);
        let is_named = is_equal
            || pattern.covers(&part.text)
            || self.git().is_some_and(|it| pattern.covers(it));
        // Of many rules few are about a part at all, and the rest is dear.
        is_named && self.is_fit() && (is_equal || !self.is_confined())
    }

    fn git(&self) -> Option<&str> {
        self.git.get_or_init(|| git_in_workspace(self.part, self.around)).as_deref()
    }

    fn is_confined(&self) -> bool {
        let leads_out = || goes_elsewhere(self.part, self.around);
        *self.is_confined.get_or_init(|| is_confined(self.part) || leads_out())
    }

    fn is_fit(&self) -> bool {
        *self.is_fit.get_or_init(|| {
            let part = self.part;
            if part.words.is_empty() || part.fault.is_some() || part.is_function {
                return false;
            }
            let name = base(part.name());
            let moves = matches!(name, "cd" | "pushd") && !enters_workspace(part, self.around);
            let is_elsewhere = name == "git" && (part.has_moved || part.dirs.is_unknown());
            has_harmless_assignments(part) && !moves && !is_elsewhere
        })
    }
}

/// Returns whether only a rule for the whole tool, or one that is the part word for word, covers it.
pub(in super::super) fn is_confined(part: &CommandPart) -> bool {
    let name = base(part.name());
    OPAQUE.contains(name) || is_interpreter(name, part.args()) || escapes(part)
}

/// Whether git is led to a directory outside the workspace, or to one that is not known: what is configured there may
/// run programs.
fn goes_elsewhere(part: &CommandPart, around: &CommandContext) -> bool {
    let is_git = base(part.name()) == "git";
    let global = if is_git { call(part.args()).global } else { &[] };
    global.windows(2).any(|it| {
        it[0].text == "-C"
            && !super::named::named(&it[1], part, around).is_inside(&part.dirs, around)
    })
}

/// A call of git without the options that change nothing about what runs.
fn git_in_workspace(part: &CommandPart, around: &CommandContext) -> Option<String> {
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
                super::named::named(to, part, around).is_inside(&part.dirs, around).then_some(())?;
            }
            _ => return None,
        }
    }
    if call.global.is_empty() || call.command.is_empty() {
        return None;
    }
    Some(format!("git {}", canonical(&args[call.global.len()..])))
}

/// Suggests rules that would cover a part, the narrowest first.
pub(super) fn suggested(part: &CommandPart) -> Vec<String> {
    let words = part.inner();
    let is_nameable = part.fault.is_none() && !part.is_function;
    if words.is_empty() || !is_nameable || !has_harmless_assignments(part) {
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
