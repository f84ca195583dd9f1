//! `${…}`: what is read of an expansion, and the words in it.

use super::{Fault, reader::ShellReader, word::Word};

impl ShellReader<'_> {
    /// Reads up to the brace, after `${`.
    pub(super) fn parameter(&mut self, word: &mut Word, quoted: bool) {
        if !self.enter() {
            return;
        }
        let mut scratch = Word::default();
        self.expansion(&mut scratch, quoted);
        word.inner.append(&mut scratch.inner);
        word.sets |= scratch.sets;
        self.leave();
    }

    fn expansion(&mut self, word: &mut Word, quoted: bool) {
        if self.eat("!") && !self.sees("}") {
            self.fail(Fault::Indirection);
        } else if self.sees("#") && !self.is_itself() {
            self.eat("#");
        }
        let from = self.at;
        if !self.name() && !self.sees("}") {
            self.fail(Fault::Syntax);
        }
        let name = self.text[from..self.at].to_owned();
        if !self.eat("[@]") && !self.eat("[*]") && self.eat("[") {
            self.arithmetic(word, b']');
        }
        let has_colon = self.eat(":");
        match self.peek() {
            Some(byte @ (b'-' | b'=' | b'?' | b'+')) => {
                self.at += 1;
                if byte == b'=' {
                    self.set.push(name.clone());
                    self.unknown.push(name);
                    word.sets = true;
                }
                self.operand(word, quoted, quoted);
            }
            _ if has_colon => self.arithmetic(word, b'}'),
            Some(b'}') => self.at += 1,
            Some(b'#' | b'%' | b'/' | b'^' | b',') => self.operand(word, quoted, false),
            Some(b'@') => {
                self.fail(Fault::Indirection);
                self.operand(word, quoted, false);
            }
            _ => {
                self.fail(Fault::Syntax);
                self.operand(word, quoted, false);
            }
        }
    }

    /// Whether `#` is the parameter that counts the arguments, and not a length.
    fn is_itself(&mut self) -> bool {
        let before = self.at;
        self.eat("#");
        let names = self.name() && matches!(self.peek(), Some(b'}' | b'['));
        self.at = before;
        !names
    }

    /// Takes the name of a parameter.
    fn name(&mut self) -> bool {
        match self.peek() {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') = self.peek() {
                    self.at += 1;
                }
            }
            Some(b'0'..=b'9') => {
                while let Some(b'0'..=b'9') = self.peek() {
                    self.at += 1;
                }
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.at += 1,
            _ => return false,
        }
        true
    }

    /// A word up to the brace. In double quotes some operators leave single quotes as they are.
    fn operand(&mut self, word: &mut Word, quoted: bool, literal_quotes: bool) {
        loop {
            match self.peek() {
                None => return self.fail(Fault::Syntax),
                Some(b'}') => {
                    self.at += 1;
                    return;
                }
                Some(b'\'') if literal_quotes => self.at += 1,
                Some(b'$') => self.dollar(word, quoted),
                Some(b'<' | b'>') if !quoted && self.process(word) => {}
                Some(b'\'' | b'"' | b'\\' | b'`') => self.piece(word),
                Some(_) => {
                    self.next_char();
                }
            }
        }
    }
}
