//! The place in the text, and lists of commands.

use super::{
    Fault, MAX_DEPTH,
    here_document::Announced,
    tree::{Command, CommandKind, Connector, List, ListItem, Pipeline, Redirect, Redirection},
    word::Word,
};

/// Words that end a list when they are where a command could begin.
const CLOSERS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Reads one text. Backslashes in front of a line end are passed over wherever bash does.
pub(super) struct ShellReader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    depth: usize,
    pub(super) fault: Option<Fault>,
    pub(super) documents: Vec<Word>,
    pub(super) announced: Vec<Announced>,
    /// Names of variables that occur in arithmetic.
    pub(super) names: Vec<String>,
    /// Variables that are set, but not by an assignment.
    pub(super) set: Vec<String>,
    /// Those of them whose values are not known.
    pub(super) unknown: Vec<String>,
}

impl<'a> ShellReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self::nested(text, 0, Vec::new())
    }

    /// Makes a reader of a text that is in another.
    pub(super) fn nested(text: &'a str, depth: usize, documents: Vec<Word>) -> Self {
        Self {
            text,
            at: 0,
            depth,
            fault: None,
            documents,
            announced: Vec::new(),
            names: Vec::new(),
            set: Vec::new(),
            unknown: Vec::new(),
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Notes what is wrong; the first counts.
    pub(super) fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Takes over what a reader of a text in this one found next to the commands.
    pub(super) fn absorb(&mut self, inner: ShellReader<'_>) {
        if let Some(fault) = inner.fault {
            self.fail(fault);
        }
        self.documents = inner.documents;
        self.names.extend(inner.names);
        self.set.extend(inner.set);
        self.unknown.extend(inner.unknown);
    }

    /// Enters the next level; false, and at the end of the text, where that is too deep.
    pub(super) fn enter(&mut self) -> bool {
        self.depth += 1;
        let fits = self.depth <= MAX_DEPTH;
        if !fits {
            self.fail(Fault::TooDeep);
            self.at = self.text.len();
        }
        fits
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the next byte, line continuations passed over.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while self.rest().starts_with("\\\n") {
            self.at += 2;
        }
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes an operator, if it is here.
    pub(super) fn eat(&mut self, operator: &str) -> bool {
        let before = self.at;
        for byte in operator.bytes() {
            if self.peek() != Some(byte) {
                self.at = before;
                return false;
            }
            self.at += 1;
        }
        true
    }

    /// Returns whether an operator is here.
    pub(super) fn sees(&mut self, operator: &str) -> bool {
        let before = self.at;
        let sees = self.eat(operator);
        self.at = before;
        sees
    }

    /// Takes a word of the grammar, if it is here as a word of its own.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let before = self.at;
        if self.eat(word) && self.ends_word() {
            return true;
        }
        self.at = before;
        false
    }

    pub(super) fn sees_word(&mut self, word: &str) -> bool {
        let before = self.at;
        let sees = self.eat_word(word);
        self.at = before;
        sees
    }

    /// Returns whether a word that ended here would be whole.
    pub(super) fn ends_word(&mut self) -> bool {
        self.peek().is_none_or(is_meta)
    }

    /// Passes over blanks and a comment.
    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
        if self.peek() == Some(b'#') {
            self.at += memchr::memchr(b'\n', self.rest().as_bytes()).unwrap_or(self.rest().len());
        }
    }

    /// Passes over blanks, comments and line ends, and reads the here-documents after them.
    pub(super) fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return;
            }
            self.at += 1;
            self.read_documents();
        }
    }

    /// Takes a word of the grammar that has to be here.
    pub(super) fn expect_word(&mut self, word: &str) {
        self.skip_lines();
        if !self.eat_word(word) {
            self.fail(Fault::Syntax);
        }
    }

    /// Whether what comes now ends a list.
    fn closes(&mut self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.sees(";;") || self.sees(";&"),
            Some(b't' | b'e' | b'f' | b'd' | b'}') => CLOSERS.iter().any(|it| self.sees_word(it)),
            Some(_) => false,
        }
    }

    /// Reads the whole text. What closes nothing is passed over.
    pub(super) fn script(&mut self) -> List {
        let mut list = self.list();
        while self.peek().is_some() {
            self.fail(Fault::Syntax);
            self.skip_token();
            list.0.extend(self.list().0);
        }
        if !self.announced.is_empty() {
            self.fail(Fault::Syntax);
            self.read_documents();
        }
        list
    }

    /// Passes over one operator or word, to go on after an error.
    fn skip_token(&mut self) {
        let before = self.at;
        if !CLOSERS.iter().any(|it| self.eat_word(it)) {
            let width = self.rest().chars().next().map_or(0, char::len_utf8);
            self.at = before + width;
        }
    }

    /// Reads commands up to what closes them.
    pub(super) fn list(&mut self) -> List {
        let mut list = List::default();
        if !self.enter() {
            return list;
        }
        loop {
            self.skip_lines();
            if self.closes() {
                break;
            }
            let before = self.at;
            let mut item = self.item();
            self.skip_blanks();
            if self.sees(";;") || self.sees(";&") {
                // Ends a case.
            } else if self.eat(";") {
            } else if !self.sees("&&") && self.eat("&") {
                item.is_background = true;
            } else if !matches!(self.peek(), Some(b'\n')) && !self.closes() {
                self.fail(Fault::Syntax);
                if self.at == before {
                    self.skip_token();
                }
            }
            list.0.push(item);
        }
        self.leave();
        list
    }

    fn item(&mut self) -> ListItem {
        let first = self.pipeline();
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let joint = if self.eat("&&") {
                Connector::And
            } else if self.eat("||") {
                Connector::Or
            } else {
                return ListItem { first, rest, is_background: false };
            };
            self.skip_lines();
            rest.push((joint, self.pipeline()));
        }
    }

    fn pipeline(&mut self) -> Pipeline {
        let mut found = Pipeline::default();
        // `time` is left to the simple command after it, which it wraps.
        let mut timed = Vec::new();
        loop {
            self.skip_blanks();
            if self.eat_word("!") {
                found.is_negated = !found.is_negated;
            } else if timed.is_empty() && self.times() {
                timed.push(Word::plain("time"));
                self.skip_blanks();
                if self.eat_word("-p") {
                    timed.push(Word::plain("-p"));
                }
            } else {
                break;
            }
        }
        if (found.is_negated || !timed.is_empty()) && (self.peek() == Some(b'\n') || self.closes())
        {
            return found;
        }
        loop {
            let Some(mut command) = self.command() else {
                self.fail(Fault::Syntax);
                break;
            };
            if let CommandKind::Simple(simple) = &mut command.kind
                && !timed.is_empty()
                && !simple.words.is_empty()
            {
                simple.words.splice(0..0, timed.drain(..));
            }
            timed.clear();
            self.skip_blanks();
            let both = self.eat("|&");
            if both {
                let target = Word::plain("1");
                let copy = Redirection { kind: Redirect::Copy, target };
                command.redirections.push(copy);
            }
            found.commands.push(command);
            if !both && (self.sees("||") || !self.eat("|")) {
                break;
            }
            self.skip_lines();
        }
        found
    }

    /// Takes the word `time`, unless it represents the program of this name.
    fn times(&mut self) -> bool {
        let before = self.at;
        if !self.eat_word("time") {
            return false;
        }
        let after = self.at;
        self.skip_blanks();
        let is_program = self.peek() == Some(b'-') && !self.sees_word("-p");
        self.at = if is_program { before } else { after };
        !is_program
    }

    /// Reads one command with its redirections; `None` where none begins.
    pub(super) fn command(&mut self) -> Option<Command> {
        if !self.enter() {
            return None;
        }
        let found = self.command_here();
        self.leave();
        found
    }

    fn command_here(&mut self) -> Option<Command> {
        self.skip_blanks();
        // It has its place in front of a pipeline only.
        while self.eat_word("!") {
            self.fail(Fault::Syntax);
            self.skip_blanks();
        }
        if self.closes() {
            return None;
        }
        let Some(kind) = self.compound() else { return self.simple() };
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirection() {
                Some(found) => redirections.push(found),
                None => return Some(Command { kind, redirections }),
            }
        }
    }
}

/// Returns whether a byte ends a word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}
