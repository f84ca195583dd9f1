//! The text of a shell command as words, files and joints.
//!
//! Alone because quotes, substitutions and here-documents must be taken apart before anybody can
//! tell which directory a word is about. What variables hold is never guessed: such words are
//! marked as open.

use std::mem::take;

/// Substitutions and texts within each other that are read.
pub(super) const MAX_DEPTH: usize = 16;

/// Operators in front of a file, longer ones first.
const REDIRECTIONS: [&str; 12] =
    ["<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">", "&>>", "&>"];

/// Why a text cannot be taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// A quote or here-document has no end.
    Unended,
    TooDeep,
}

/// One word, without its quotes.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether the shell has yet to work it out.
    pub(super) open: bool,
    quoted: bool,
    /// The commands in its substitutions.
    pub(super) inner: Vec<Vec<Token>>,
}

/// What stands between two simple commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    And,
    Pipe,
    /// Behind it nothing is known of how the command before it ended.
    Other,
}

#[derive(Debug)]
pub(super) enum Token {
    Word(Word),
    /// A file that is redirected to or from, the text of `<<<`, or a here-document.
    File {
        word: Word,
        is_written: bool,
    },
    Joint(Joint),
    /// A subshell begins, or ends.
    Enter,
    Leave,
}

/// Takes a text apart that stands `depth` levels inside another.
pub(super) fn tokens(text: &str, depth: usize) -> Result<Vec<Token>, Unreadable> {
    Reader { rest: text, depth }.tokens(false)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    /// Up to the end, or to the bracket that ends a substitution.
    fn tokens(&mut self, in_brackets: bool) -> Result<Vec<Token>, Unreadable> {
        if self.depth > MAX_DEPTH {
            return Err(Unreadable::TooDeep);
        }
        let (mut found, mut documents) = (Vec::new(), Vec::new());
        let (mut n_entered, mut n_cases) = (0_usize, 0_usize);
        while let Some(c) = self.rest.chars().next() {
            if c == '\n' {
                self.skip("\n");
                // Behind these the line goes on.
                if !matches!(found.last(), Some(Token::Joint(Joint::And | Joint::Pipe))) {
                    found.push(Token::Joint(Joint::Other));
                }
                for document in take(&mut documents) {
                    found.push(self.document(document)?);
                }
            } else if c.is_whitespace() {
                self.take_char();
            } else if c == '#' {
                self.rest = self.rest.find('\n').map_or("", |it| &self.rest[it..]);
            } else if self.skip("\\\n") {
            } else if self.skip("&&") {
                found.push(Token::Joint(Joint::And));
            } else if self.skip("||") || self.skip(";") {
                found.push(Token::Joint(Joint::Other));
            } else if self.skip("|&") || self.skip("|") {
                found.push(Token::Joint(Joint::Pipe));
            } else if self.skip("(") {
                n_entered += 1;
                found.push(Token::Enter);
            } else if self.skip(")") {
                if n_entered > 0 {
                    n_entered -= 1;
                    found.push(Token::Leave);
                } else if n_cases > 0 || !in_brackets {
                    found.push(Token::Joint(Joint::Other));
                } else {
                    return Ok(found);
                }
            } else if let Some(operator) = self.redirection() {
                self.skip_blanks();
                let word = self.word()?;
                match operator {
                    "<<" | "<<-" => documents.push((word, operator == "<<-")),
                    _ => {
                        let is_written = operator != "<&" && operator.contains('>');
                        found.push(Token::File { word, is_written });
                    }
                }
            } else if self.skip("&") {
                found.push(Token::Joint(Joint::Other));
            } else {
                let word = self.word()?;
                let begins = !matches!(found.last(), Some(Token::Word(_) | Token::File { .. }));
                let is_number = !word.quoted && word.text.bytes().all(|it| it.is_ascii_digit());
                match word.text.as_str() {
                    "{" | "}" if !word.quoted => continue,
                    "case" if begins => n_cases += 1,
                    "esac" if begins => n_cases = n_cases.saturating_sub(1),
                    // The `2` of `2>x`.
                    _ if is_number && self.rest.starts_with(['<', '>']) => continue,
                    _ => {}
                }
                found.push(Token::Word(word));
            }
        }
        Ok(found)
    }

    fn redirection(&mut self) -> Option<&'static str> {
        if self.begins_process() {
            return None;
        }
        REDIRECTIONS.into_iter().find(|it| self.skip(it))
    }

    /// Whether `<(` or `>(` stands here.
    fn begins_process(&self) -> bool {
        self.rest.starts_with("<(") || self.rest.starts_with(">(")
    }

    /// The here-document that ends at a line `end`.
    fn document(&mut self, (end, is_indented): (Word, bool)) -> Result<Token, Unreadable> {
        let mut length = 0;
        for line in self.rest.split_inclusive('\n') {
            let mut text = line.strip_suffix('\n').unwrap_or(line);
            if is_indented {
                text = text.trim_start_matches('\t');
            }
            if text != end.text {
                length += line.len();
                continue;
            }
            let (body, rest) = (&self.rest[..length], &self.rest[length + line.len()..]);
            self.rest = rest;
            let mut word = Word { text: body.into(), quoted: true, ..Word::default() };
            if !end.quoted {
                let mut inside = Reader { rest: body, depth: self.depth };
                inside.substitutions(&mut word)?;
            }
            return Ok(Token::File { word, is_written: false });
        }
        Err(Unreadable::Unended)
    }

    /// Those of a text in which nothing else has a meaning.
    fn substitutions(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        let mut unused = Word::default();
        while let Some(at) = self.rest.find(['$', '`', '\\']) {
            self.rest = &self.rest[at..];
            match self.rest.starts_with('\\') {
                true => {
                    self.take_char();
                    self.take_char();
                }
                false => self.expansion(&mut unused, true)?,
            }
        }
        word.inner.append(&mut unused.inner);
        Ok(())
    }

    fn word(&mut self) -> Result<Word, Unreadable> {
        let mut word = Word::default();
        let mut in_quotes = false;
        let mut has_brace = false;
        while let Some(c) = self.rest.chars().next() {
            match c {
                '"' => {
                    self.take_char();
                    in_quotes = !in_quotes;
                    word.quoted = true;
                }
                '\\' => {
                    self.take_char();
                    let next = self.take_char();
                    if in_quotes && !matches!(next, Some('$' | '`' | '"' | '\\' | '\n')) {
                        word.text.push('\\');
                    }
                    word.text.extend(next.filter(|it| *it != '\n'));
                    word.quoted = true;
                }
                '$' | '`' => self.expansion(&mut word, in_quotes)?,
                _ if in_quotes => word.text.extend(self.take_char()),
                '\'' => {
                    self.take_char();
                    let end = self.rest.find('\'').ok_or(Unreadable::Unended)?;
                    word.text.push_str(&self.rest[..end]);
                    self.rest = &self.rest[end + 1..];
                    word.quoted = true;
                }
                '<' | '>' if self.begins_process() => {
                    self.take_char();
                    self.take_char();
                    self.commands(&mut word)?;
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                _ => {
                    has_brace |= c == '{';
                    let at_home = c == '~' && word.text.is_empty() && !word.quoted;
                    word.open |= at_home || matches!(c, '*' | '?' | '[');
                    word.text.extend(self.take_char());
                }
            }
        }
        if in_quotes {
            return Err(Unreadable::Unended);
        }
        // `{a,b}` becomes several words, and `{}` what `find` and `xargs` put there.
        word.open |= has_brace && [",", "..", "{}"].iter().any(|it| word.text.contains(it));
        Ok(word)
    }

    /// What begins with `$` or a backtick.
    fn expansion(&mut self, word: &mut Word, in_quotes: bool) -> Result<(), Unreadable> {
        // Where it is, a word that begins so begins.
        let here = ["${PWD}", "$(pwd)", "`pwd`", "$PWD"];
        let ends =
            |it: &str| it.is_empty() || it.starts_with(['/', '"', ' ', '\t', '\n', ';', '&']);
        let rest = here.iter().find_map(|it| self.rest.strip_prefix(it)).filter(|it| ends(it));
        if let Some(rest) = rest.filter(|_| word.text.is_empty()) {
            self.rest = rest;
            word.text.push('.');
            return Ok(());
        }
        if !in_quotes && self.rest.starts_with("$'") {
            return self.escaped_quote(word);
        }
        if !in_quotes && self.rest.starts_with("$\"") {
            self.take_char();
            return Ok(());
        }
        word.open = true;
        if let Some(sum) = self.rest.strip_prefix("$((")
            && let Some(length) = sum_length(sum)
        {
            self.rest = &sum[length..];
            word.text.push('$');
            return Ok(());
        }
        if self.skip("$(") {
            return self.commands(word);
        }
        if self.skip("`") {
            let mut end = None;
            let mut escaped = false;
            for (i, c) in self.rest.char_indices() {
                if c == '`' && !escaped {
                    end = Some(i);
                    break;
                }
                escaped = c == '\\' && !escaped;
            }
            let end = end.ok_or(Unreadable::Unended)?;
            let inner = self.rest[..end].replace("\\`", "`");
            self.rest = &self.rest[end + 1..];
            word.inner.push(tokens(&inner, self.depth + 1)?);
            word.text.push('$');
            return Ok(());
        }
        word.text.extend(self.take_char());
        Ok(())
    }

    /// `$'…'`, in which backslashes make what nobody here works out.
    fn escaped_quote(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        self.skip("$'");
        word.quoted = true;
        loop {
            match self.take_char().ok_or(Unreadable::Unended)? {
                '\'' => return Ok(()),
                '\\' => {
                    word.open = true;
                    word.text.push('$');
                    self.take_char();
                }
                c => word.text.push(c),
            }
        }
    }

    fn commands(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        self.depth += 1;
        word.inner.push(self.tokens(true)?);
        self.depth -= 1;
        word.open = true;
        word.text.push('$');
        Ok(())
    }

    fn skip(&mut self, what: &str) -> bool {
        let rest = self.rest.strip_prefix(what);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take_char(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let first = chars.next();
        self.rest = chars.as_str();
        first
    }
}

/// Length of what is left of `$((…))`, if it is a sum without commands.
fn sum_length(rest: &str) -> Option<usize> {
    let mut n_entered = 2_usize;
    for (i, c) in rest.char_indices() {
        match c {
            '(' => n_entered += 1,
            ')' => n_entered -= 1,
            '`' | '\'' | '"' | '\n' | ';' => return None,
            _ => {}
        }
        if n_entered == 0 {
            return (rest[..i].ends_with(')') && !rest[..i].contains("$(")).then_some(i + 1);
        }
    }
    None
}
