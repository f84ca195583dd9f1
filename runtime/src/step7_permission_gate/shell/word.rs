//! One word of a shell command.

use super::tree::List;

/// A word without its quotes. What the shell has yet to work out is in it as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Where the text is not plain; in order, none empty but quotes around nothing.
    pub(crate) spans: Vec<WordSpan>,
    /// The commands of its substitutions.
    pub(crate) inner: Vec<List>,
    /// Expanding it sets a variable.
    pub(crate) sets: bool,
}

/// A piece of a word, in bytes of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) piece: PieceKind,
}

/// What a piece of a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// As written, without any other meaning.
    Quoted,
    /// An expansion; in double quotes it stays one word.
    Open { quoted: bool },
}

impl Word {
    /// Makes a word that is written plainly.
    pub(crate) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Makes a word of which nothing is known.
    pub(crate) fn open() -> Self {
        let mut word = Self::plain("$@");
        word.mark(0, PieceKind::Open { quoted: true });
        word
    }

    /// Takes a piece that began at `start`.
    pub(crate) fn mark(&mut self, start: usize, piece: PieceKind) {
        let end = self.text.len();
        match self.spans.last_mut() {
            Some(last)
                if last.end == start && last.piece == piece && piece == PieceKind::Quoted =>
            {
                last.end = end;
            }
            _ => self.spans.push(WordSpan { start, end, piece }),
        }
    }

    /// Returns whether the shell has nothing to expand but globs, braces and a tilde.
    pub(crate) fn is_known(&self) -> bool {
        self.spans.iter().all(|it| it.piece == PieceKind::Quoted)
    }

    /// Returns whether no part of it is quoted or expanded.
    pub(crate) fn is_bare(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the plain text of a word, with its position.
    pub(crate) fn plain_pieces(&self) -> impl Iterator<Item = (usize, &str)> {
        let ends = self.spans.iter().map(|it| it.start).chain([self.text.len()]);
        let starts = [0].into_iter().chain(self.spans.iter().map(|it| it.end));
        starts
            .zip(ends)
            .map(|(start, end)| (start, &self.text[start..end]))
            .filter(|it| !it.1.is_empty())
    }

    /// Returns whether the shell looks for files that it names.
    pub(crate) fn has_glob(&self) -> bool {
        if !self.text.bytes().any(|it| matches!(it, b'*' | b'?' | b'[')) {
            return false;
        }
        let mut opened = false;
        self.plain_pieces().any(|(_, it)| {
            it.contains(['*', '?'])
                || it.bytes().any(|byte| {
                    // A bracket that nothing closes is itself.
                    let closes = opened && byte == b']';
                    opened |= byte == b'[';
                    closes
                })
        })
    }

    /// Returns whether it begins with a tilde that the shell expands.
    pub(crate) fn has_tilde(&self) -> bool {
        self.text.starts_with('~') && self.spans.first().is_none_or(|it| it.start > 0)
    }

    /// Returns whether the word expands to its text and to nothing else.
    pub(crate) fn is_literal(&self) -> bool {
        self.is_known() && !self.has_glob() && !self.has_tilde()
    }

    /// Returns the text; `None` unless it is literal.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.is_literal().then_some(self.text.as_str())
    }

    /// Writes it as the shell would have to read it to get the same word.
    pub(crate) fn write_canonical(&self, out: &mut String) {
        if self.is_literal() {
            return write_quoted(&self.text, out);
        }
        let mut at = 0;
        for span in &self.spans {
            out.push_str(&self.text[at..span.start]);
            let text = &self.text[span.start..span.end];
            match span.piece {
                PieceKind::Quoted => write_quoted(text, out),
                PieceKind::Open { quoted: false } => out.push_str(text),
                PieceKind::Open { quoted: true } => {
                    out.push('"');
                    out.push_str(text);
                    out.push('"');
                }
            }
            at = span.end;
        }
        out.push_str(&self.text[at..]);
    }

    /// Returns the text that [`Word::write_canonical`] writes.
    pub(crate) fn canonical(&self) -> String {
        let mut out = String::with_capacity(self.text.len() + 2);
        self.write_canonical(&mut out);
        out
    }
}

/// Whether the shell treats it specially in a word; globs, braces and a tilde excepted.
fn needs_quotes(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>' | '$' | '`' | '\\' | '"' | '\''
    )
}

/// Writes a literal text, quoted if it has to be.
fn write_quoted(text: &str, out: &mut String) {
    let is_special =
        |c: char| needs_quotes(c) || matches!(c, '*' | '?' | '[' | '{' | '}' | '~' | '#' | '!');
    let is_plain = !text.is_empty() && !text.contains(is_special);
    // These mean something as whole words only where a command begins.
    if is_plain || matches!(text, "{}" | "!" | "[" | "]" | "[[" | "]]") {
        out.push_str(text);
        return;
    }
    out.push('\'');
    for (i, piece) in text.split('\'').enumerate() {
        if i > 0 {
            out.push_str("'\\''");
        }
        out.push_str(piece);
    }
    out.push('\'');
}
