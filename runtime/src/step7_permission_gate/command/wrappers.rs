//! Programs that run another one and change nothing about what it does.
//!
//! Sources: the manual pages of coreutils 9 (`timeout`, `nice`, `nohup`, `stdbuf`), of findutils
//! (`xargs`) and of bash (`time`, `command`, `builtin`).

use crate::step7_permission_gate::shell::{Fault, word::Word};

/// A program that runs the command that follows it.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Options without a value.
    pub(super) flags: &'static [&'static str],
    /// Options with one: the next word, the rest of a short one, or after `=`.
    pub(super) valued: &'static [&'static str],
    /// Words in front of the command.
    pub(super) n_operands: usize,
}

/// All wrappers that the gate looks through.
pub(super) const WRAPPERS: [Wrapper; 8] = [
    Wrapper {
        name: "timeout",
        flags: &["-v", "--verbose", "-f", "--foreground", "-p", "--preserve-status"],
        valued: &["-k", "--kill-after", "-s", "--signal"],
        n_operands: 1,
    },
    Wrapper { name: "time", flags: &["-p"], valued: &[], n_operands: 0 },
    Wrapper { name: "nice", flags: &[], valued: &["-n", "--adjustment"], n_operands: 0 },
    Wrapper { name: "nohup", flags: &[], valued: &[], n_operands: 0 },
    Wrapper {
        name: "stdbuf",
        flags: &[],
        valued: &["-i", "-o", "-e", "--input", "--output", "--error"],
        n_operands: 0,
    },
    Wrapper { name: "command", flags: &["-p"], valued: &[], n_operands: 0 },
    Wrapper { name: "builtin", flags: &[], valued: &[], n_operands: 0 },
    Wrapper { name: "xargs", flags: &[], valued: &[], n_operands: 0 },
];

/// What is left when wrappers are taken away.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stripped {
    /// Where the inner command begins.
    pub(crate) start: usize,
    /// More words come from the input.
    pub(crate) is_fed: bool,
    pub(crate) fault: Option<Fault>,
}

/// Skips the wrappers in front of a command.
pub(crate) fn strip(words: &[Word]) -> Stripped {
    let mut found = Stripped::default();
    loop {
        let name = words.get(found.start).and_then(Word::literal).unwrap_or_default();
        let Some(wrapper) = WRAPPERS.iter().find(|it| it.name == name) else { return found };
        let next = words.get(found.start + 1).map_or("", |it| it.text.as_str());
        // These ask about a command; and with options of its own `xargs` is another program.
        let asks = name == "command" && next.starts_with('-') && next.contains(['v', 'V']);
        if asks || name == "xargs" && next.starts_with('-') {
            return found;
        }
        match inner(wrapper, &words[found.start + 1..]) {
            Ok(Some(n_words)) => {
                found.start += 1 + n_words;
                found.is_fed |= name == "xargs";
            }
            Ok(None) => return found,
            Err(fault) => {
                found.fault = Some(fault);
                return found;
            }
        }
    }
}

/// How many words are in front of the inner command; `None` when there is none.
fn inner(wrapper: &Wrapper, words: &[Word]) -> Result<Option<usize>, Fault> {
    let mut at = 0;
    let mut n_operands = 0;
    while let Some(word) = words.get(at) {
        let is_operand = !word.text.starts_with('-') || word.text == "-";
        if is_operand && n_operands == wrapper.n_operands {
            return Ok(Some(at));
        }
        let text = word.literal().ok_or(Fault::Option)?;
        at += 1;
        if is_operand {
            n_operands += 1;
        } else if text == "--" {
            at += wrapper.n_operands - n_operands;
            return Ok((at < words.len()).then_some(at));
        } else if !is_flag(wrapper, text) {
            if value(wrapper, text).ok_or(Fault::Option)? {
            } else {
                words.get(at).and_then(Word::literal).ok_or(Fault::Option)?;
                at += 1;
            }
        }
    }
    Ok(None)
}

fn is_flag(wrapper: &Wrapper, text: &str) -> bool {
    // `nice -5`.
    let is_number = wrapper.name == "nice"
        && text.trim_start_matches('-').bytes().all(|it| it.is_ascii_digit());
    is_number || wrapper.flags.contains(&text)
}

/// Whether an option has its value in the same word; `None` for one that is not known.
fn value(wrapper: &Wrapper, text: &str) -> Option<bool> {
    wrapper.valued.iter().find_map(|it| match text.strip_prefix(it)? {
        "" => Some(false),
        rest if it.starts_with("--") => rest.starts_with('=').then_some(true),
        _ => Some(true),
    })
}
