//! Texts that a shell runs, and those that its builtins run in it.

use super::nested::{NestedScripts, ScriptText, joined, values};
use crate::step7_permission_gate::{
    command::{
        CommandPart,
        options::has_letter,
        shells::{self, ShellInput},
    },
    shell::word::Word,
};

/// Adds what a shell with these arguments runs.
pub(super) fn shell(args: &[Word], part: &CommandPart, found: &mut NestedScripts) {
    match shells::program(args) {
        ShellInput::Text(script) => found.word(&script.text, script),
        ShellInput::Input => from_input(part, false, found),
        ShellInput::File => found.is_unseen = true,
        ShellInput::Nothing => {}
    }
}

/// The texts that come as input.
fn from_input(part: &CommandPart, is_own: bool, found: &mut NestedScripts) {
    let (texts, is_unseen) = shells::input(part);
    found.texts.extend(texts.into_iter().map(|text| ScriptText::here(text, is_own)));
    found.is_unseen |= is_unseen;
}

pub(super) fn source(args: &[Word], part: &CommandPart, is_own: bool, found: &mut NestedScripts) {
    match args.first() {
        Some(file) if shells::is_input(&file.text) => from_input(part, is_own, found),
        _ => found.is_unseen = true,
    }
}

pub(super) fn eval(args: &[Word], is_own: bool, found: &mut NestedScripts) {
    let is_end = args.first().is_some_and(|it| it.text == "--");
    let text = joined(&args[usize::from(is_end)..]);
    found.texts.push(ScriptText::here(text, is_own));
    found.is_unseen |= !args.iter().all(Word::is_literal);
}

pub(super) fn trap(args: &[Word], found: &mut NestedScripts) {
    // A dash alone takes what was set back.
    if args.iter().find(|it| it.text != "--").is_some_and(|it| it.text == "-") {
        return;
    }
    let mut words = args.iter().skip_while(|it| it.text.starts_with('-'));
    let Some(action) = words.next() else { return };
    let text = action.text.clone();
    // At its end a shell moves for nobody else.
    let is_later = !words.all(|it| matches!(&*it.text, "EXIT" | "0"));
    found.texts.push(ScriptText { text, is_own: false, is_later, is_elsewhere: true });
    found.is_unseen |= !action.is_known();
}

/// Adds what `complete` and `compgen` run: commands, and a list of words, which is expanded.
pub(super) fn completion(args: &[Word], found: &mut NestedScripts) {
    found.add_values(args, 'C', "--none");
    for words in values(args, 'W', "--none") {
        found.text(&format!(": {words}"));
    }
}

/// Notes what `fc` runs: it was typed before, here or in another shell.
pub(super) fn history(args: &[Word], found: &mut NestedScripts) {
    found.is_unseen |= !args.iter().any(|it| has_letter(&it.text, 'l', "e"));
}

/// Notes builtins that bind a name or a key to something that runs later.
pub(super) fn binding(args: &[Word], found: &mut NestedScripts) {
    let sets = |it: &Word| it.text.starts_with('-') && it.text.contains(['f', 'p', 'x']);
    found.is_unseen |= args.iter().any(sets);
}

/// Adds the rest of the words of `jobs -x`, which it runs.
pub(super) fn jobs(args: &[Word], found: &mut NestedScripts) {
    if let Some(at) = args.iter().position(|it| it.text == "-x") {
        found.text(&joined(&args[at + 1..]));
    }
}

pub(super) fn alias(args: &[Word], found: &mut NestedScripts) {
    for arg in args {
        if let Some((_, text)) = arg.text.split_once('=') {
            found.word(text, arg);
        }
    }
}
