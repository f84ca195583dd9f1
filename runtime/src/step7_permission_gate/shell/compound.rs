//! Compound commands.

use super::{
    Fault, arithmetic,
    reader::ShellReader,
    tree::{CommandKind, List},
    word::Word,
};

/// Operators of `[[` whose operands are arithmetic.
const COMPARISONS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl ShellReader<'_> {
    /// Reads a compound command; `None` where none begins.
    pub(super) fn compound(&mut self) -> Option<CommandKind> {
        let kind = match self.peek()? {
            b'(' => return Some(self.bracket()),
            b'{' if self.eat_word("{") => {
                let list = self.list();
                self.expect_word("}");
                CommandKind::Group(list)
            }
            b'[' if self.eat_word("[[") => self.test(),
            b'i' if self.eat_word("if") => self.choice(),
            b'w' if self.eat_word("while") => self.repetition(),
            b'u' if self.eat_word("until") => self.repetition(),
            b'f' if self.eat_word("for") => self.each(),
            b's' if self.eat_word("select") => self.each(),
            b'c' if self.eat_word("case") => self.case(),
            b'c' if self.eat_word("coproc") => self.coprocess(),
            b'f' if self.eat_word("function") => {
                self.skip_blanks();
                let name = self.word().text;
                self.skip_blanks();
                if self.eat("(") {
                    self.close();
                }
                self.function(name)
            }
            _ => return None,
        };
        Some(kind)
    }

    fn close(&mut self) {
        self.skip_blanks();
        if !self.eat(")") {
            self.fail(Fault::Syntax);
        }
    }

    /// Reads the brackets after the name of a function, and its body.
    pub(super) fn function_after_name(&mut self, name: String) -> CommandKind {
        self.eat("(");
        self.close();
        self.function(name)
    }

    fn function(&mut self, name: String) -> CommandKind {
        self.skip_lines();
        match self.command() {
            Some(body) => {
                if matches!(body.kind, CommandKind::Simple(_)) {
                    self.fail(Fault::Syntax);
                }
                CommandKind::Function(name, Box::new(body))
            }
            None => {
                self.fail(Fault::Syntax);
                CommandKind::Group(List::default())
            }
        }
    }

    fn bracket(&mut self) -> CommandKind {
        if self.sees("((") && self.sum_ends() {
            self.eat("((");
            let mut word = Word::default();
            self.arithmetic(&mut word, b')');
            self.eat(")");
            return CommandKind::Arithmetic(word);
        }
        let is_double = self.sees("((");
        let (n_documents, is_pending) = (self.documents.len(), !self.announced.is_empty());
        self.eat("(");
        let list = self.list();
        self.skip_lines();
        self.close();
        if is_double && (is_pending || self.documents.len() > n_documents) {
            // Bash takes it for a sum first, then reads it again: by then the text of a here-document is one of
            // commands.
            self.fail(Fault::Syntax);
        }
        CommandKind::Subshell(list)
    }

    fn choice(&mut self) -> CommandKind {
        let (mut arms, mut otherwise) = (Vec::new(), List::default());
        loop {
            let condition = self.list();
            self.expect_word("then");
            arms.push((condition, self.list()));
            self.skip_lines();
            if self.eat_word("elif") {
                continue;
            }
            if self.eat_word("else") {
                otherwise = self.list();
            }
            self.expect_word("fi");
            return CommandKind::If(arms, otherwise);
        }
    }

    fn repetition(&mut self) -> CommandKind {
        let condition = self.list();
        CommandKind::While(condition, self.body())
    }

    fn body(&mut self) -> List {
        self.skip_lines();
        if self.eat_word("{") {
            let list = self.list();
            self.expect_word("}");
            return list;
        }
        self.expect_word("do");
        let list = self.list();
        self.expect_word("done");
        list
    }

    fn each(&mut self) -> CommandKind {
        self.skip_blanks();
        if self.eat("((") {
            let mut word = Word::default();
            let from = self.at;
            for end in [b';', b';', b')'] {
                self.arithmetic(&mut word, end);
            }
            self.text[from..self.at].clone_into(&mut word.text);
            if !self.eat(")") {
                self.fail(Fault::Syntax);
            }
            self.skip_blanks();
            self.eat(";");
            return CommandKind::Count(word, self.body());
        }
        let name = self.word();
        if name.text.is_empty() || !name.is_bare() {
            self.fail(Fault::Syntax);
        }
        self.skip_lines();
        let mut values = None;
        if self.eat_word("in") {
            let mut found = Vec::new();
            loop {
                self.skip_blanks();
                let word = self.word();
                if word.text.is_empty() && word.is_bare() {
                    break;
                }
                found.push(word);
            }
            values = Some(found);
        }
        self.skip_blanks();
        self.eat(";");
        let is_number = |it: &Word| it.text.bytes().all(|it| it.is_ascii_digit()) && it.is_bare();
        if !values.as_ref().is_some_and(|it| it.iter().all(is_number)) {
            self.unknown.push(name.text.clone());
        }
        self.set.push(name.text.clone());
        CommandKind::For(name.text, values, self.body())
    }

    fn case(&mut self) -> CommandKind {
        self.skip_blanks();
        let word = self.word();
        let mut arms = Vec::new();
        self.expect_word("in");
        loop {
            self.skip_lines();
            if self.eat_word("esac") {
                break;
            }
            let before = self.at;
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.word());
                self.skip_blanks();
                if self.sees("||") || !self.eat("|") {
                    break;
                }
            }
            if !self.eat(")") || self.at == before {
                self.fail(Fault::Syntax);
                break;
            }
            let list = self.list();
            let ends = [(";;&", true), (";;", false), (";&", true)];
            let end = ends.into_iter().find(|(it, _)| self.eat(it));
            arms.push((patterns, list, end.is_some_and(|it| it.1)));
            if end.is_none() && !self.sees_word("esac") {
                self.fail(Fault::Syntax);
                break;
            }
        }
        CommandKind::Case(word, arms)
    }

    fn coprocess(&mut self) -> CommandKind {
        self.skip_blanks();
        let before = self.at;
        // A name may be in front of a compound command only.
        while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        let name = self.text[before..self.at].replace("\\\n", "");
        self.skip_blanks();
        match self.peek() {
            Some(b'(' | b'{') if !name.is_empty() => self.set.push(name),
            _ => self.at = before,
        }
        match self.command() {
            Some(body) => CommandKind::Coprocess(Box::new(body)),
            None => {
                self.fail(Fault::Syntax);
                CommandKind::Group(List::default())
            }
        }
    }

    /// Reads the rest of a test, after its `[[`.
    fn test(&mut self) -> CommandKind {
        let mut words = vec![Word::plain("[[")];
        loop {
            self.skip_lines();
            if self.eat_word("]]") {
                break;
            }
            if ["&&", "||", "(", ")"].iter().any(|it| self.eat(it)) {
                continue;
            }
            let compares = ["<", ">"].iter().any(|it| self.sees(it));
            if compares && !self.sees("<(") && !self.sees(">(") {
                self.at += 1;
                continue;
            }
            let is_pattern =
                words.last().is_some_and(|it| matches!(&*it.text, "=" | "==" | "!=" | "=~"));
            let word = if is_pattern { self.pattern() } else { self.word() };
            if word.text.is_empty() && word.is_bare() {
                self.fail(Fault::Syntax);
                return CommandKind::Test(words);
            }
            words.push(word);
        }
        words.push(Word::plain("]]"));
        self.check_test(&words);
        CommandKind::Test(words)
    }

    /// Arithmetic in a test, and names with subscripts.
    fn check_test(&mut self, words: &[Word]) {
        for (i, word) in words.iter().enumerate() {
            let operands = match &*word.text {
                it if COMPARISONS.contains(&it) => [i.checked_sub(1), Some(i + 1)],
                "-v" | "-R" => [None, Some(i + 1)],
                _ => continue,
            };
            for operand in operands.into_iter().flatten().filter_map(|it| words.get(it)) {
                match arithmetic::names(operand) {
                    Some(names) => {
                        // As in other arithmetic.
                        if operand.text.contains(['=', '+', '-']) {
                            self.set.extend_from_slice(&names);
                        }
                        self.names.extend(names);
                    }
                    None => self.fail(Fault::Arithmetic),
                }
            }
        }
    }

    /// A word in which brackets and bars belong to a pattern.
    fn pattern(&mut self) -> Word {
        let (mut word, mut depth) = (Word::default(), 0_usize);
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b'|' if depth > 0 || !self.sees("||") => {}
                b' ' | b'\t' | b'<' | b'>' | b'&' if depth > 0 => {}
                b' ' | b'\t' | b'\n' | b';' | b'&' | b')' | b'<' | b'>' | b'|' => break,
                _ => {
                    self.piece(&mut word);
                    continue;
                }
            }
            self.at += 1;
            word.text.push(char::from(byte));
        }
        if depth > 0 {
            self.fail(Fault::Syntax);
        }
        word
    }
}
