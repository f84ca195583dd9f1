//! Words: quotes, backslashes, and where expansions begin.

use super::{
    Fault, ansi_c, is_invisible,
    reader::{ShellReader, is_meta},
    word::{PieceKind, Word},
};

impl ShellReader<'_> {
    /// Reads one word, which is empty where none begins.
    pub(super) fn word(&mut self) -> Word {
        let mut word = Word::default();
        self.word_on(&mut word);
        word
    }

    /// Continues a word up to its end.
    pub(super) fn word_on(&mut self, word: &mut Word) {
        while let Some(byte) = self.peek() {
            if matches!(byte, b'<' | b'>') && self.process(word) {
                continue;
            }
            if is_meta(byte) {
                return;
            }
            self.piece(word);
        }
    }

    /// Reads the next piece of a word outside double quotes, whatever it is.
    pub(super) fn piece(&mut self, word: &mut Word) {
        let Some(byte) = self.peek() else { return };
        let start = word.text.len();
        match byte {
            b'\'' => {
                self.at += 1;
                self.single_quoted(word);
            }
            b'"' => {
                self.at += 1;
                self.double_quoted(word, Some(b'"'));
            }
            b'\\' => {
                self.at += 1;
                match self.next_char() {
                    Some(c) => word.text.push(c),
                    None => word.text.push('\\'),
                }
                word.mark(start, PieceKind::Quoted);
            }
            b'$' => self.dollar(word, false),
            b'`' => self.backticks(word, false),
            _ => {
                // Up to the next byte that may mean something.
                let rest = self.rest();
                let means =
                    |it: &u8| is_meta(*it) || b"'\"\\$`{}[]/:^,".contains(it) || !it.is_ascii();
                let n_plain = rest.bytes().position(|it| means(&it)).unwrap_or(rest.len());
                if n_plain > 0 {
                    word.text.push_str(&rest[..n_plain]);
                    self.at += n_plain;
                } else if let Some(c) = self.next_char() {
                    if is_invisible(c) {
                        self.fail(Fault::Invisible);
                    }
                    word.text.push(c);
                }
            }
        }
    }

    /// Takes one character as it is.
    pub(super) fn next_char(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Reads what is in single quotes, after the first one.
    pub(super) fn single_quoted(&mut self, word: &mut Word) {
        let start = word.text.len();
        let rest = self.rest();
        let end = memchr::memchr(b'\'', rest.as_bytes());
        word.text.push_str(&rest[..end.unwrap_or(rest.len())]);
        self.at += end.map_or(rest.len(), |it| it + 1);
        if end.is_none() {
            self.fail(Fault::Syntax);
        }
        word.mark(start, PieceKind::Quoted);
    }

    /// Reads what is in double quotes, after the first one; without an end, up to that of the text.
    pub(super) fn double_quoted(&mut self, word: &mut Word, end: Option<u8>) {
        let mut start = word.text.len();
        let opened = start;
        loop {
            let Some(byte) = self.peek() else {
                if end.is_some() {
                    self.fail(Fault::Syntax);
                }
                break;
            };
            match byte {
                _ if Some(byte) == end => {
                    self.at += 1;
                    break;
                }
                b'\\' => {
                    self.at += 1;
                    let escapes = match self.text.as_bytes().get(self.at) {
                        Some(b'$' | b'`' | b'\\') => true,
                        next => next.copied() == end && end.is_some(),
                    };
                    if escapes { word.text.extend(self.next_char()) } else { word.text.push('\\') }
                }
                b'$' | b'`' => {
                    if word.text.len() > start {
                        word.mark(start, PieceKind::Quoted);
                    }
                    match byte {
                        b'$' => self.dollar(word, true),
                        _ => self.backticks(word, true),
                    }
                    start = word.text.len();
                }
                _ => {
                    let rest = self.rest();
                    let means = |it: u8| matches!(it, b'\\' | b'$' | b'`') || Some(it) == end;
                    let n_plain = rest.bytes().position(means).unwrap_or(rest.len());
                    word.text.push_str(&rest[..n_plain]);
                    self.at += n_plain;
                }
            }
        }
        if word.text.len() > start || word.text.len() == opened {
            word.mark(start, PieceKind::Quoted);
        }
    }

    /// Reads what begins with `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, quoted: bool) {
        let (source, start) = (self.at, word.text.len());
        self.at += 1;
        match self.peek() {
            Some(b'(') => {
                let is_sum = self.sees("((") && self.sum_ends();
                if !is_sum && self.sees("((") {
                    // Bash takes it for arithmetic first, and expands what a here-document only quotes.
                    self.fail(Fault::Arithmetic);
                }
                self.at += 1;
                if is_sum {
                    self.eat("(");
                    self.arithmetic(word, b')');
                    self.eat(")");
                } else {
                    self.substitution(word)
                }
            }
            Some(b'[') => {
                self.at += 1;
                self.arithmetic(word, b']');
            }
            Some(b'{') => {
                self.at += 1;
                self.parameter(word, quoted);
            }
            Some(b'\'') if !quoted => {
                self.at += 1;
                self.ansi_c(word);
                return;
            }
            Some(b'"') if !quoted => {
                self.at += 1;
                self.double_quoted(word, Some(b'"'));
                return;
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.at += 1,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') = self.peek() {
                    self.at += 1;
                }
            }
            _ => {
                word.text.push('$');
                if quoted {
                    word.mark(start, PieceKind::Quoted);
                }
                return;
            }
        }
        self.open(word, source, start, quoted);
    }

    /// Marks what was read since `source` as something that the shell has yet to work out.
    fn open(&mut self, word: &mut Word, source: usize, start: usize, quoted: bool) {
        word.text.truncate(start);
        word.spans.retain(|it| it.start < start);
        word.text.push_str(&self.text[source..self.at]);
        word.mark(start, PieceKind::Open { quoted });
    }

    /// The commands of `$(`, which is read, up to the bracket.
    fn substitution(&mut self, word: &mut Word) {
        let (outer, from) = (std::mem::take(&mut self.announced), self.at);
        let list = self.list();
        word.inner.push(list);
        let has_lines = self.text[from..self.at].contains('\n');
        // A here-document that is to be read in two places is left to others.
        if !self.eat(")") || !self.announced.is_empty() || !outer.is_empty() && has_lines {
            self.fail(Fault::Syntax);
        }
        self.announced = outer;
    }

    /// Reads `<(` and `>(`, if one is here.
    pub(super) fn process(&mut self, word: &mut Word) -> bool {
        let (source, start) = (self.at, word.text.len());
        if !self.eat("<(") && !self.eat(">(") {
            return false;
        }
        self.substitution(word);
        self.open(word, source, start, false);
        true
    }

    /// The commands between backticks. In them a backslash is taken away in front of some characters.
    fn backticks(&mut self, word: &mut Word, quoted: bool) {
        let (source, start) = (self.at, word.text.len());
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let end = rest.bytes().position(|it| matches!(it, b'`' | b'\\')).unwrap_or(rest.len());
            text.push_str(&rest[..end]);
            self.at += end;
            match self.next_char() {
                Some('`') => break,
                Some(_) => match self.next_char() {
                    Some('\n') => {}
                    Some(c) => {
                        let is_escaped = matches!(c, '$' | '`' | '\\') || quoted && c == '"';
                        if !is_escaped {
                            text.push('\\');
                        }
                        text.push(c);
                    }
                    None => text.push('\\'),
                },
                None => {
                    self.fail(Fault::Syntax);
                    break;
                }
            }
        }
        let documents = std::mem::take(&mut self.documents);
        let mut inner = ShellReader::nested(&text, self.depth(), documents);
        if inner.enter() {
            let list = inner.script();
            word.inner.push(list);
        }
        self.absorb(inner);
        self.open(word, source, start, quoted);
    }

    /// What is in `$'`, which is read.
    fn ansi_c(&mut self, word: &mut Word) {
        let start = word.text.len();
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut end = 0;
        while end < bytes.len() && bytes[end] != b'\'' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let is_closed = bytes.get(end) == Some(&b'\'');
        let inside = rest.get(..end.min(rest.len())).unwrap_or(rest);
        self.at += (inside.len() + usize::from(is_closed)).min(rest.len());
        match ansi_c::decoded(inside) {
            Some(text) if is_closed => word.text.push_str(&text),
            _ => {
                self.fail(Fault::Syntax);
                word.text.push_str(inside);
            }
        }
        word.mark(start, PieceKind::Quoted);
    }
}
