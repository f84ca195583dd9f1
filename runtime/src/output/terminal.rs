//! Text that somebody else wrote, made fit for a terminal.
//!
//! A terminal obeys what it is sent: escape sequences move the cursor, recolour, rewrite the title
//! and the clipboard, and can make it type an answer; a carriage return lets later words cover
//! earlier ones; directional controls show words in another order than they have. Models, servers,
//! tools, file names and transcripts can hold all of it, so the command passes everything that it
//! did not write itself through [`Cleaner`]. What a person reads is kept, letter by letter.
//!
//! Linear: each character is looked at once, and a sequence that is cut anywhere, at the end of a
//! delta too, is recognised in its next piece. A sequence that is not ended hides no more than the
//! rest of its line, and no more than `MAX_SEQUENCE` characters of that.

use std::borrow::Cow;

/// Characters of an escape sequence at most; what follows them is text. The longest in common use,
/// a link with its address, has about 2,100.
pub(crate) const MAX_SEQUENCE: usize = 4096;

/// Where the text goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputTarget {
    /// A screen: of controls, only line feeds and tabs are kept. A carriage return, with the line
    /// feed after it if there is one, and every other line separator become a line feed.
    #[default]
    Terminal,
    /// A file or another program: carriage returns and separators, which text may need, are kept;
    /// escape sequences, directional and invisible controls and all others are not, since what is in
    /// a file comes to a screen in the end.
    Pipe,
}

/// Takes control sequences out of a text that comes in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaner {
    place: OutputTarget,
    state: EscapeState,
    /// Characters of the sequence so far.
    n_chars: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After a carriage return that became a line feed: a line feed now is the same line end.
    Return,
    /// After ESC, which begins a sequence.
    Escape,
    /// After ESC and at least one intermediate character.
    Intermediate,
    /// In a control sequence (CSI), until its final character.
    Control,
    /// In a string (OSC, DCS, SOS, PM, APC), until BEL, ST or the end of the line.
    Str,
}

impl Cleaner {
    /// Makes a cleaner at the beginning of a text that goes to `place`.
    pub fn new(place: OutputTarget) -> Self {
        Self { place, ..Self::default() }
    }

    /// Takes the next piece of the text; appends what is kept of it.
    pub fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.state == EscapeState::Text {
                let n_plain = rest.find(is_special).unwrap_or(rest.len());
                out.push_str(&rest[..n_plain]);
                rest = &rest[n_plain..];
            }
            let mut chars = rest.chars();
            if let Some(c) = chars.next() {
                self.take(c, out);
                rest = chars.as_str();
            }
        }
    }

    fn take(&mut self, c: char, out: &mut String) {
        match (self.state, c) {
            (EscapeState::Text, c) => self.special(c, out),
            (EscapeState::Return, '\n') => self.state = EscapeState::Text,
            // A sequence of its own begins, whatever came before.
            (_, '\u{1b}') => self.enter(EscapeState::Escape),
            (EscapeState::Escape, '[') => self.enter(EscapeState::Control),
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => self.enter(EscapeState::Str),
            (EscapeState::Escape | EscapeState::Intermediate, ' '..='/') => {
                self.go_on(EscapeState::Intermediate, c, out)
            }
            (EscapeState::Escape | EscapeState::Intermediate, '0'..='~') => {
                self.state = EscapeState::Text
            }
            (EscapeState::Control, ' '..='?') => self.go_on(EscapeState::Control, c, out),
            (EscapeState::Control, '@'..='~') => self.state = EscapeState::Text,
            (EscapeState::Str, '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}') => {
                self.state = EscapeState::Text
            }
            (EscapeState::Str, c) if !matches!(c, '\n' | '\r') => {
                self.go_on(EscapeState::Str, c, out)
            }
            (_, c) => self.text(c, out),
        }
    }

    fn enter(&mut self, state: EscapeState) {
        (self.state, self.n_chars) = (state, 0);
    }

    /// One more character of the sequence, if it may still be one.
    fn go_on(&mut self, state: EscapeState, c: char, out: &mut String) {
        self.state = state;
        self.n_chars += 1;
        if MAX_SEQUENCE < self.n_chars {
            self.text(c, out);
        }
    }

    /// The sequence is over without its end, and this is not part of it.
    fn text(&mut self, c: char, out: &mut String) {
        self.state = EscapeState::Text;
        if is_special(c) { self.special(c, out) } else { out.push(c) }
    }

    fn special(&mut self, c: char, out: &mut String) {
        let is_terminal = self.place == OutputTarget::Terminal;
        match c {
            '\u{1b}' => self.enter(EscapeState::Escape),
            '\u{9b}' => self.enter(EscapeState::Control),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.enter(EscapeState::Str),
            '\r' if is_terminal => {
                self.state = EscapeState::Return;
                out.push('\n');
            }
            '\u{85}' => out.push('\n'),
            '\u{2028}' | '\u{2029}' if is_terminal => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if is_directional(c) || is_invisible(c) => {}
            c if is_terminal || c.is_control() && c != '\r' => {}
            c => out.push(c),
        }
    }
}

/// Whether a character needs a look. Line feeds and tabs do not, outside of sequences.
fn is_special(c: char) -> bool {
    !matches!(c, '\n' | '\t')
        && (c.is_control() || is_separator(c) || is_directional(c) || is_invisible(c))
}

fn is_separator(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// Embeddings, overrides and isolates, which let words be shown in another order than they have.
/// The marks of right-to-left text are none of them: they show no letter elsewhere.
fn is_directional(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters without a width that no script needs: they make two words that look the same differ.
/// Joiners, which emoji and scripts need, are none of them, nor are the tags of flags.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Cleans a whole text for a terminal.
///
/// ```
/// use ennead_runtime::output::terminal::clean;
///
/// assert_eq!(clean("\u{1b}]0;mine\u{7}a \u{1b}[31mred\u{1b}[0m word\r\nand more"), "a red word\nand more");
/// ```
pub fn clean(text: &str) -> String {
    clean_for(OutputTarget::Terminal, text)
}

/// Cleans a whole text for `place`.
pub fn clean_for(place: OutputTarget, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    Cleaner::new(place).push(text, &mut out);
    out
}

/// Cleans a whole text for one line of a terminal, such as a name or an error: line feeds and tabs become blanks.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// Escapes every character of a JSON text that [`clean`] would touch. The text means the same: such characters occur in
/// its strings only, apart from blanks between tokens.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_raw = |c: char| is_special(c) && c != '\r';
    if !json.contains(is_raw) {
        return json.into();
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_raw(c) { out.push_str(&format!("\\u{:04x}", u32::from(c))) } else { out.push(c) }
    }
    out.into()
}

#[cfg(test)]
mod tests;
