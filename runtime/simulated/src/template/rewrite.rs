//! Puts a call in the place of each operator that makes a value as large as both its sides together.
//!
//! The engine bounds the steps of a template and not what a step makes: `x ~ x` doubles, and thirty of
//! them make a text of a gigabyte. Its operators cannot be replaced, its functions can. So
//! `a ~ b * c` becomes `bounded_cat(a, bounded_mul(b, c))` before it is compiled, and what the calls
//! make is counted. Line ends stay where they were, so that an error names the right line.
//!
//! Tags that keep what they write, or call themselves, are refused: nothing could count that.

/// Operators by how tightly they bind, and the functions that represent those that make values
/// grow.
const OPERATORS: &[(&str, u8, Option<&str>)] = &[
    ("**", 4, None),
    ("//", 3, None),
    ("*", 3, Some("bounded_mul")),
    ("/", 3, None),
    ("%", 3, None),
    ("~", 2, Some("bounded_cat")),
    ("+", 1, Some("bounded_add")),
    ("-", 1, None),
];

/// Words that are not operands.
const WORDS: &[&str] = &[
    "and",
    "or",
    "not",
    "in",
    "if",
    "elif",
    "else",
    "for",
    "set",
    "with",
    "do",
    "endif",
    "endfor",
    "endwith",
    "autoescape",
    "endautoescape",
];

/// Tags that are refused.
const REFUSED: &[&str] =
    &["macro", "call", "filter", "block", "extends", "include", "import", "from", "endset"];

/// Levels of brackets, and of operators within operators.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A name, a number or a text.
    Atom,
    Operator(u8, Option<&'static str>),
    Open,
    Close,
    /// Anything else: commas, comparisons, bars, dots.
    Other,
}

/// One token with the blanks before it.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind,
    blanks: &'a str,
    text: &'a str,
}

/// Rewrites an expression.
///
/// # Errors
///
/// It is nested too deeply, or a text in it has no end.
pub(super) fn expression(source: &str) -> Result<String, String> {
    let (tokens, rest) = tokens(source, None)?;
    let mut out = rewrite(&tokens)?;
    out.push_str(rest);
    Ok(out)
}

/// Rewrites the expressions and tags of a template.
///
/// # Errors
///
/// As [`expression`]; or a tag that is refused.
pub(super) fn template(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = next_tag(rest) {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        if tag.starts_with("{#") {
            let end = tag.find("#}").map_or(tag.len(), |it| it + 2);
            out.push_str(&tag[..end]);
            rest = &tag[end..];
            continue;
        }
        let end = if tag.starts_with("{{") { "}}" } else { "%}" };
        let (open, inside) = tag.split_at(2 + usize::from(tag[2..].starts_with(['-', '+'])));
        let (found, after) = tokens(inside, Some(end))?;
        if end == "%}" {
            check_tag(&found)?;
        }
        out.push_str(open);
        out.push_str(&rewrite(&found)?);
        rest = after;
        if found.first().is_some_and(|it| end == "%}" && it.text == "raw") {
            let n_raw = end_of_raw(rest);
            out.push_str(&rest[..n_raw]);
            rest = &rest[n_raw..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn next_tag(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'{', bytes)
        .find(|at| matches!(bytes.get(at + 1), Some(b'{' | b'%' | b'#')))
}

/// The bytes up to the tag that ends what is taken as it is.
fn end_of_raw(text: &str) -> usize {
    let is_end = |at: &usize| {
        let tag = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        tag.starts_with("endraw")
    };
    let mut tags = memchr::memmem::find_iter(text.as_bytes(), b"{%");
    tags.find(is_end).unwrap_or(text.len())
}

fn check_tag(tokens: &[Token<'_>]) -> Result<(), String> {
    let name = tokens.first().map_or("", |it| it.text);
    let refused = |what: &str| Err(format!("`{what}` is not supported in playbooks"));
    if REFUSED.contains(&name) {
        return refused(name);
    }
    if name == "set" && !tokens.iter().any(|it| it.text == "=") {
        return refused("set` without `=");
    }
    let is_last = tokens.iter().rev().find(|it| it.kind == Kind::Atom).map(|it| it.text);
    if name == "for" && is_last == Some("recursive") {
        return refused("recursive");
    }
    Ok(())
}

/// The tokens up to the end of the tag, which is left to the rest; `None`: up to the end of the text.
fn tokens<'a>(source: &'a str, end: Option<&str>) -> Result<(Vec<Token<'a>>, &'a str), String> {
    let mut found: Vec<Token<'a>> = Vec::new();
    let mut depth = 0_usize;
    let mut rest = source;
    loop {
        let text = rest.trim_start();
        let blanks = &rest[..rest.len() - text.len()];
        if let Some(end) = end {
            let is_end = depth == 0
                && (text.starts_with(end)
                    || text.get(1..).is_some_and(|it| it.starts_with(end))
                        && text.starts_with(['-', '+']));
            if is_end {
                return Ok((found, rest));
            }
        }
        let Some(first) = text.chars().next() else { return Ok((found, rest)) };
        let length = match first {
            '\'' | '"' => length_of_text(text, first)?,
            c if is_name(c) => text.find(|c| !is_name(c)).unwrap_or(text.len()),
            c => OPERATORS
                .iter()
                .map(|it| it.0)
                .chain(["==", "!=", "<=", ">="])
                .find(|it| text.starts_with(it))
                .map_or(c.len_utf8(), str::len),
        };
        let (token, after) = text.split_at(length);
        let operator = OPERATORS.iter().find(|it| it.0 == token);
        let kind = match (first, operator) {
            (_, Some((_, binds, function))) => Kind::Operator(*binds, *function),
            ('(' | '[' | '{', _) => Kind::Open,
            (')' | ']' | '}', _) => Kind::Close,
            ('\'' | '"', _) => Kind::Atom,
            (c, _) if is_name(c) && !WORDS.contains(&token) => Kind::Atom,
            _ => Kind::Other,
        };
        match kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        if MAX_DEPTH < depth {
            return Err("brackets are nested too deeply".to_owned());
        }
        found.push(Token { kind, blanks, text: token });
        rest = after;
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn length_of_text(text: &str, quote: char) -> Result<usize, String> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            c if c == quote => return Ok(at + 1),
            _ => {}
        }
    }
    Err("a text has no end".to_owned())
}

fn rewrite(tokens: &[Token<'_>]) -> Result<String, String> {
    let mut reader = Reader { tokens, at: 0, depth: 0 };
    let mut out = String::new();
    while reader.at < tokens.len() {
        reader.step(&mut out)?;
    }
    Ok(out)
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
}

impl Reader<'_, '_> {
    fn peek(&self) -> Option<Token<'_>> {
        self.tokens.get(self.at).copied()
    }

    fn copy(&mut self, out: &mut String) {
        if let Some(token) = self.tokens.get(self.at) {
            out.push_str(token.blanks);
            out.push_str(token.text);
            self.at += 1;
        }
    }

    /// An expression with operators, or one token that belongs to none.
    fn step(&mut self, out: &mut String) -> Result<(), String> {
        match self.peek().map(|it| (it.kind, it.text)) {
            Some((Kind::Atom | Kind::Open | Kind::Operator(..), _)) => {
                let made = self.binary(1)?;
                out.push_str(&made);
                Ok(())
            }
            _ => {
                self.copy(out);
                Ok(())
            }
        }
    }

    /// Operands joined by operators that bind at least so tightly.
    fn binary(&mut self, least: u8) -> Result<String, String> {
        self.depth += 1;
        if MAX_DEPTH * 4 < self.depth {
            return Err("an expression is nested too deeply".to_owned());
        }
        let mut left = self.operand()?;
        // The call that is still open at the end of `left`: a chain of one operator is one call.
        let mut open: Option<&str> = None;
        while let Some(Token { kind: Kind::Operator(binds, function), .. }) = self.peek()
            && least <= binds
        {
            let mut operator = String::new();
            self.copy(&mut operator);
            let right = self.binary(binds + 1)?;
            if right.trim().is_empty() {
                return Err("syntax error: an operator without a right side".to_owned());
            }
            if open.is_some() && open != function {
                left.push(')');
                open = None;
            }
            if let (None, Some(function)) = (open, function) {
                let n_blanks = left.len() - left.trim_start().len();
                left.insert_str(n_blanks, &format!("{function}("));
                open = Some(function);
            }
            match function {
                // Blanks may hold line ends, which must stay.
                Some(_) => {
                    left.push_str(operator.trim_end_matches(|c: char| !c.is_whitespace()));
                    left.push(',');
                }
                None => left.push_str(&operator),
            }
            left.push_str(&right);
        }
        if open.is_some() {
            left.push(')');
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Signs, one operand, and what is applied to it.
    fn operand(&mut self) -> Result<String, String> {
        let mut out = String::new();
        while let Some(Token { kind: Kind::Operator(..), .. }) = self.peek() {
            self.copy(&mut out);
        }
        match self.peek().map(|it| it.kind) {
            Some(Kind::Atom) => self.copy(&mut out),
            Some(Kind::Open) => self.brackets(&mut out)?,
            _ => return Ok(out),
        }
        loop {
            match self.peek().map(|it| (it.kind, it.text)) {
                Some((Kind::Open, "(" | "[")) => self.brackets(&mut out)?,
                Some((Kind::Other, "." | "|")) => {
                    self.copy(&mut out);
                    self.copy(&mut out);
                }
                Some((Kind::Atom, "is")) => {
                    self.copy(&mut out);
                    if self.peek().is_some_and(|it| it.text == "not") {
                        self.copy(&mut out);
                    }
                    self.copy(&mut out);
                    if self.peek().is_some_and(|it| it.kind == Kind::Atom && it.text != "is") {
                        self.copy(&mut out);
                    }
                }
                _ => return Ok(out),
            }
        }
    }

    fn brackets(&mut self, out: &mut String) -> Result<(), String> {
        self.copy(out);
        while let Some(token) = self.peek() {
            if token.kind == Kind::Close {
                break;
            }
            self.step(out)?;
        }
        self.copy(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
