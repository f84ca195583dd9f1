//! The reader of shell commands: a text becomes a tree, as bash would take it apart.
//!
//! The only one there is; rules, worktrees, classes and the Bash tool all look at what it found. It
//! never expands anything: what the shell has yet to work out is marked as open. Everything is read
//! in one pass with a bound on its depth, so the work is linear in the bytes of the text. What it
//! cannot read is a fault, and it goes on after it: what may be denied is still to be found.

mod ansi_c;
pub(crate) mod arithmetic;
pub(crate) mod braces;
mod compound;
mod here_document;
mod outline;
mod parameter;
mod quoting;
mod reader;
mod simple;
pub(crate) mod tree;
pub(crate) mod word;

pub use outline::{Outlined, outline};

use reader::ShellReader;
use tree::List;
use word::Word;

/// Bytes that are read; of a longer text only the beginning.
pub(crate) const MAX_BYTES: usize = 32 * 1024;

/// Constructions within each other that are read.
pub(crate) const MAX_DEPTH: usize = 64;

/// Why the gate cannot read a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not follow bash's grammar.
    Syntax,
    /// There is more of it than is read.
    TooLong,
    /// It is nested more deeply than is read.
    TooDeep,
    /// It holds a control character, or one that cannot be seen or looks like a blank.
    Invisible,
    /// Arithmetic may evaluate text that is not known.
    Arithmetic,
    /// An expansion evaluates what another one gives.
    Indirection,
    /// The name of a command is not known before it runs.
    Name,
    /// A function in it calls itself.
    Endless,
    /// An option of a program that runs another one is not known.
    Option,
}

impl Fault {
    /// Returns the fault in words, after "the command cannot be judged: ".
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Syntax => "it does not follow the shell's grammar",
            Self::TooLong => "it is too long",
            Self::TooDeep => "it is nested too deeply",
            Self::Invisible => "it holds a character that cannot be seen",
            Self::Arithmetic => "its arithmetic may evaluate unknown text",
            Self::Indirection => "an expansion in it evaluates unknown text",
            Self::Name => "the name of a program in it is not known before it runs",
            Self::Endless => "a function in it calls itself",
            Self::Option => "an option of a program that runs another one is not known",
        }
    }
}

/// A text that was read.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// The commands of the script.
    pub(crate) list: List,
    /// Here-documents, in the order in which they are announced.
    pub(crate) documents: Vec<Word>,
    /// The first thing that was wrong.
    pub(crate) fault: Option<Fault>,
    /// Names in arithmetic, whose values bash evaluates.
    pub(crate) names: Vec<String>,
    /// Variables that are set, but not by an assignment.
    pub(crate) set: Vec<String>,
    /// Those of them whose values are not known.
    pub(crate) unknown: Vec<String>,
}

/// Reads a text as a shell script.
pub(crate) fn read(text: &str) -> Script {
    let (read, fault) = if text.len() > MAX_BYTES {
        (&text[..text.floor_char_boundary(MAX_BYTES)], Some(Fault::TooLong))
    } else {
        (text, None)
    };
    let mut reader = ShellReader::new(read);
    let list = reader.script();
    let fault = fault.or(forbidden(text)).or(reader.fault);
    let ShellReader { documents, names, set, unknown, .. } = reader;
    Script { list, documents, fault, names, set, unknown }
}

/// Characters that may not be anywhere, in quotes or not.
fn forbidden(text: &str) -> Option<Fault> {
    let is_bad = |c: char| match c {
        '\t' | '\n' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        c => c.is_control() && c != '\u{85}',
    };
    text.chars().any(is_bad).then_some(Fault::Invisible)
}

/// Returns whether a character may not be outside quotes: it looks like a blank or like nothing.
pub(crate) fn is_invisible(c: char) -> bool {
    !c.is_ascii()
        && (c.is_whitespace()
            || matches!(
                c,
                '\u{85}' | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            )
            || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}')
            || matches!(c, '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'))
}

#[cfg(test)]
mod tests;
