//! Simple commands: assignments, words, redirections.

use super::{
    Fault,
    reader::ShellReader,
    tree::{Assignment, Command, CommandKind, Redirect, Redirection, Simple},
    word::Word,
};

/// Operators of redirections, longer ones first.
const OPERATORS: [(&str, Redirect); 11] = [
    ("<<<", Redirect::Text),
    ("<<-", Redirect::Document(1)),
    ("<<", Redirect::Document(0)),
    ("<&", Redirect::Copy),
    ("<>", Redirect::ReadWrite),
    ("<", Redirect::Read),
    (">>", Redirect::Write),
    (">|", Redirect::Write),
    (">&", Redirect::Copy),
    (">", Redirect::Write),
    ("&>", Redirect::Write),
];

impl ShellReader<'_> {
    /// Reads a simple command, or a function that is defined; `None` where neither begins.
    pub(super) fn simple(&mut self) -> Option<Command> {
        let mut simple = Simple::default();
        loop {
            self.skip_blanks();
            if let Some(redirection) = self.redirection() {
                simple.redirections.push(redirection);
                continue;
            }
            match self.peek() {
                Some(b'(') if simple.words.len() == 1 && simple.assignments.is_empty() => {
                    let name = simple.words.swap_remove(0).text;
                    let kind = self.function_after_name(name);
                    return Some(Command { kind, redirections: simple.redirections });
                }
                Some(b'(') => {
                    // Such a list has no place here; what is in it may still be found.
                    self.fail(Fault::Syntax);
                    break;
                }
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(_) => {}
            }
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()
            {
                simple.assignments.push(assignment);
                continue;
            }
            let before = self.at;
            let mut word = self.word();
            // What declares a variable takes an array, too.
            if self.peek() == Some(b'(') && word.text.ends_with('=') && !simple.words.is_empty() {
                self.array(&mut word);
                self.word_on(&mut word);
            }
            if self.at == before {
                self.fail(Fault::Syntax);
                break;
            }
            if self.sets_element(before) {
                self.fail(Fault::Arithmetic);
            }
            simple.words.push(word);
        }
        let is_empty = simple.words.is_empty()
            && simple.assignments.is_empty()
            && simple.redirections.is_empty();
        let kind = CommandKind::Simple(simple);
        (!is_empty).then_some(Command { kind, redirections: Vec::new() })
    }

    /// A variable that is set, if the word here does so.
    fn assignment(&mut self) -> Option<Assignment> {
        let before = self.at;
        if !matches!(self.peek(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_')) {
            return None;
        }
        while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        let mut value = Word::default();
        if self.eat("[") {
            // Bash reads to the bracket whatever is there.
            self.arithmetic(&mut value, b']');
        }
        let ends = self.eat("+=") || self.eat("=");
        if !ends {
            let has_subscript = self.text[before..self.at].contains('[');
            if has_subscript {
                self.fail(Fault::Name);
                return Some(Assignment { name: self.text[before..self.at].to_owned(), value });
            }
            self.at = before;
            return None;
        }
        let name = self.text[before..self.at].replace("\\\n", "");
        let name = name.strip_suffix('=').unwrap_or(&name).to_owned();
        if self.peek() == Some(b'(') {
            self.array(&mut value);
        } else {
            self.word_on(&mut value);
        }
        Some(Assignment { name, value })
    }

    /// The elements of an array, brackets included.
    fn array(&mut self, word: &mut Word) {
        if !self.enter() {
            return;
        }
        self.eat("(");
        word.text.push('(');
        loop {
            self.skip_lines();
            let before = self.at;
            self.word_on(word);
            word.text.push(' ');
            if self.eat(")") {
                break;
            }
            if self.at == before {
                self.fail(Fault::Syntax);
                break;
            }
        }
        word.text.push(')');
        self.leave();
    }

    /// Reads a redirection, if one is here.
    pub(super) fn redirection(&mut self) -> Option<Redirection> {
        if !matches!(self.peek(), Some(b'<' | b'>' | b'&' | b'{' | b'0'..=b'9')) {
            return None;
        }
        let before = self.at;
        let both = self.eat("&>>") || self.eat("&>");
        let has_number = !both && self.descriptor();
        let found = if both {
            Some((">", Redirect::Write))
        } else if !has_number && (self.sees("<(") || self.sees(">(")) {
            None
        } else {
            OPERATORS.into_iter().find(|(it, _)| self.eat(it))
        };
        let Some((operator, kind)) = found else {
            self.at = before;
            return None;
        };
        self.skip_blanks();
        let start = self.at;
        // A sign that closes is a word of its own, whatever touches it: `<&-rm x` runs `rm x`.
        let target = match kind {
            Redirect::Copy if self.eat("-") => Word::plain("-"),
            _ => self.word(),
        };
        if self.at == start {
            self.fail(Fault::Syntax);
        }
        let kind = match kind {
            Redirect::Document(tabs) => Redirect::Document(self.announce(&target, tabs == 1)),
            Redirect::Copy if is_descriptor(&target) => Redirect::Copy,
            // Anything else after `>&` is a file.
            Redirect::Copy if operator == ">&" => Redirect::Write,
            Redirect::Copy => Redirect::Read,
            kind => kind,
        };
        Some(Redirection { kind, target })
    }

    /// Whether the word that began there is `{name[place]}` in front of an operator: it gets the number of a
    /// descriptor, and its place is evaluated.
    fn sets_element(&mut self, before: usize) -> bool {
        let text = &self.text[before..self.at];
        let is_one = text.starts_with('{') && text.ends_with("]}");
        is_one && matches!(self.peek(), Some(b'<' | b'>'))
    }

    /// Takes the number or `{name}` in front of an operator. That variable is set.
    fn descriptor(&mut self) -> bool {
        let before = self.at;
        if self.eat("{") {
            while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') = self.peek() {
                self.at += 1;
            }
            if !self.eat("}") {
                self.at = before;
                return false;
            }
        } else {
            while let Some(b'0'..=b'9') = self.peek() {
                self.at += 1;
            }
        }
        let is_one = self.at > before
            && matches!(self.peek(), Some(b'<' | b'>'))
            && !self.sees("<(")
            && !self.sees(">(");
        let text = &self.text[before..self.at];
        if !is_one {
            self.at = before;
        } else if let Some(name) = text.strip_prefix('{') {
            self.set.push(name.replace(['\\', '\n', '}'], ""));
        }
        is_one
    }
}

/// Whether a target is a descriptor: `1`, `-`, `1-`.
fn is_descriptor(target: &Word) -> bool {
    let digits = target.text.strip_suffix('-').unwrap_or(&target.text);
    target.is_known() && !target.text.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}
