//! Arithmetic: read for the commands in it, and for what it may evaluate.
//!
//! Bash evaluates the values of names again, subscripts included, and a subscript may hold commands.
//! So only numbers, operators and plain names pass; which names, is noted.

use super::{Fault, reader::ShellReader, word::Word};

impl ShellReader<'_> {
    /// Reads up to the byte that ends it, and that byte.
    pub(super) fn arithmetic(&mut self, word: &mut Word, end: u8) {
        if !self.enter() {
            return;
        }
        let begin = match end {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        let (mut depth, mut is_simple) = (0_usize, true);
        let mut scratch = Word::default();
        let (from, n_names) = (self.at, self.names.len());
        loop {
            let Some(byte) = self.peek() else {
                self.fail(Fault::Syntax);
                break;
            };
            match byte {
                _ if byte == end && depth == 0 => {
                    self.at += 1;
                    break;
                }
                b'$' => {
                    let from = self.at;
                    self.dollar(&mut scratch, true);
                    is_simple &= is_number(&self.text[from..self.at]);
                }
                b'`' | b'\'' | b'"' | b'\\' => {
                    is_simple = false;
                    self.piece(&mut scratch);
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    let from = self.at;
                    while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') = self.peek() {
                        self.at += 1;
                    }
                    let name = self.text[from..self.at].replace("\\\n", "");
                    self.names.push(name);
                }
                b'0'..=b'9' => {
                    // `16#ff` and `0x1f` are numbers as a whole.
                    while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' | b'#' | b'@') =
                        self.peek()
                    {
                        self.at += 1;
                    }
                }
                _ => {
                    depth += usize::from(byte == begin);
                    depth -= usize::from(byte == end);
                    is_simple &= b" \t\n+-*/%<>=!&|^~?:,()".contains(&byte);
                    self.next_char();
                }
            }
        }
        // Whether it compares or assigns does not matter: names of variables that count are rare in it.
        if self.text[from..self.at].contains(['=', '+', '-']) {
            self.set.extend_from_slice(&self.names[n_names..]);
        }
        word.inner.append(&mut scratch.inner);
        if !is_simple {
            self.fail(Fault::Arithmetic);
        }
        self.leave();
    }

    /// Returns whether the two brackets here are those of arithmetic: the inner one ends directly in front of another
    /// one that ends.
    pub(super) fn sum_ends(&mut self) -> bool {
        let before = self.at;
        self.eat("((");
        let bytes = self.text.as_bytes();
        let (mut at, mut depth) = (self.at, 1_usize);
        self.at = before;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'\\' => at += 1,
                b'$' if bytes.get(at) == Some(&b'\'') => at = end_of_ansi_c(bytes, at + 1),
                b'\'' => at = end_of_quotes(bytes, at, b'\''),
                b'"' => at = end_of_quotes(bytes, at, b'"'),
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        return bytes.get(at) == Some(&b')');
                    }
                }
                _ => {}
            }
        }
        false
    }
}

/// Where a text of `$'...'` ends, in which a backslash keeps a quote from ending it.
fn end_of_ansi_c(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'\'' => break,
            _ => {}
        }
    }
    at
}

/// Where quotes that were opened are closed.
fn end_of_quotes(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' if quote == b'"' => at += 1,
            _ if *byte == quote => break,
            _ => {}
        }
    }
    at
}

/// Returns whether an expansion gives a number whatever happens.
pub(crate) fn is_number(expansion: &str) -> bool {
    matches!(expansion, "$#" | "$?" | "$$" | "$!" | "${#}" | "${?}") || expansion.starts_with("${#")
}

/// Returns the plain names in a word that holds numbers, operators and plain names alone; `None` for another word.
pub(crate) fn names(word: &Word) -> Option<Vec<String>> {
    let only = |c: char| c.is_ascii_alphanumeric() || "_ \t+-*/%<>=!&|^~?:,()#".contains(c);
    let is_open = |text: &str| !is_number(text);
    let opens = word.spans.iter().filter(|it| it.piece != super::word::PieceKind::Quoted);
    if opens.clone().any(|it| is_open(&word.text[it.start..it.end])) {
        return None;
    }
    let mut plain = word.text.clone();
    for span in opens.rev() {
        plain.replace_range(span.start..span.end, "0");
    }
    if !plain.chars().all(only) {
        return None;
    }
    let is_name = |it: &&str| it.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let pieces = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    Some(pieces.filter(is_name).map(str::to_owned).collect())
}
