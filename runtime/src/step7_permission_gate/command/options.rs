//! Options of programs, read as their manuals say.

use super::names::Names;
use crate::step7_permission_gate::shell::word::Word;

/// Returns whether a long option is this one, or may be an abbreviation of it.
pub(crate) fn is_long(arg: &str, option: &str) -> bool {
    // Most words are none, and each is compared with many options.
    if !arg.starts_with("--") {
        return false;
    }
    let name = arg.split_once('=').map_or(arg, |it| it.0);
    name.len() > 2 && option.starts_with(name)
}

/// Returns whether a cluster of short options holds this letter. `valued` are letters whose value is the rest of the
/// cluster.
pub(crate) fn has_letter(arg: &str, letter: char, valued: &str) -> bool {
    let Some(cluster) = arg.strip_prefix('-').filter(|it| !it.starts_with('-')) else {
        return false;
    };
    for c in cluster.chars() {
        if c == letter {
            return true;
        }
        if valued.contains(c) {
            return false;
        }
    }
    false
}

/// Options that a rule with a `*` does not cover.
pub(crate) struct Table {
    /// Name of the program.
    pub(crate) name: &'static str,
    /// Letters of its short options.
    pub(crate) short: &'static str,
    /// Letters that take the rest of a cluster as value.
    pub(crate) valued: &'static str,
    /// Long options, in every abbreviation.
    pub(crate) long: &'static [&'static str],
}

impl Table {
    /// Returns whether one of these arguments is one of the options.
    pub(crate) fn holds(&self, args: &[Word]) -> bool {
        args.iter().take_while(|it| it.text != "--").any(|it| self.has(&it.text))
    }

    /// Returns whether an argument is one of the options.
    pub(crate) fn has(&self, arg: &str) -> bool {
        self.long.iter().any(|it| is_long(arg, it))
            || self.short.chars().any(|it| has_letter(arg, it, self.valued))
    }
}

/// Returns arguments that are not options.
pub(crate) fn operands(args: &[Word]) -> impl Iterator<Item = &Word> {
    let end = args.iter().position(|it| it.text == "--").unwrap_or(args.len());
    let (before, after) = args.split_at(end);
    let is_operand = |it: &&Word| !it.text.starts_with('-') || it.text == "-";
    before.iter().filter(is_operand).chain(after.iter().skip(1))
}

/// Returns the value of a word that is this option with one; `None` if it is not.
pub(crate) fn value_of<'a>(arg: &'a str, option: &str) -> Option<&'a str> {
    arg.strip_prefix(option)?.strip_prefix('=')
}

/// Options whose next word names what is left out.
static LEAVE_OUT: Names = Names::of(&[
    "--exclude",
    "--exclude-dir",
    "--exclude-pattern",
    "--ignore-path",
    "--ignore-pattern",
    "--ignore-glob",
    "--ignore-dir",
    "--skip",
    "--except",
]);

/// Returns the words without the options that leave files out, and without what those name.
pub(crate) fn included(args: &[Word]) -> impl Iterator<Item = &Word> {
    let mut is_left_out = false;
    args.iter().filter(move |it| {
        let text = it.text.as_str();
        let follows = std::mem::replace(&mut is_left_out, LEAVE_OUT.contains(text));
        let leaves_out = LEAVE_OUT.contains(text) || text.contains('=') && names_left_out(text);
        !follows && !leaves_out
    })
}

/// Whether an option names what is left alone.
fn names_left_out(option: &str) -> bool {
    let name = option.split_once('=').map_or(option, |it| it.0);
    name.starts_with("--")
        && ["exclude", "ignore", "skip", "except"].iter().any(|it| name.contains(it))
}

/// Returns whether a word without a dash is a cluster of short options with this letter.
pub(crate) fn is_cluster(text: &str, letter: char) -> bool {
    let is_plain = !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphabetic());
    is_plain && text.contains(letter)
}
