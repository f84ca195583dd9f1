//! Writes the tags and texts of a page as Markdown, as they come.
//!
//! A stack holds the elements that are open, up to a depth; what is nested deeper is read as if it had no tags. Tags that
//! pages leave out (`</p>`, `</li>`, `</td>`) are closed by what follows them, as browsers do it.

mod tags;

use std::borrow::Cow;

use ennead_runtime::tool::web_page::{MAX_PAGE_CHARS, beginning};

use super::{
    PageText,
    entities::decoded,
    is_shown,
    tokens::{Token, Tokens},
};

/// Addresses of a page that are made absolute, at most: each costs as much as the address of the page is long.
pub(super) const MAX_ADDRESSES: usize = 5000;

/// Elements that are open at once at most.
const MAX_DEPTH: usize = 64;

/// Elements that indent lines at once at most: a line pays for each.
const MAX_INDENTS: usize = 12;

/// What an element is for the text in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Begins a paragraph of its own.
    Block,
    Heading,
    List,
    Numbered(u32),
    Item,
    /// A cell of a table.
    Cell,
    Row,
    Table,
    Code,
    Preformatted,
    Link,
    Inline,
    Hidden,
}

/// An element that is open.
struct Element {
    name: String,
    role: Role,
    /// What its first line begins with, and all later ones.
    indent: Option<(Cow<'static, str>, String)>,
    has_begun: bool,
    /// What ends it in the line.
    end: Cow<'static, str>,
}

/// A page, as far as it is written.
pub(super) struct Markdown<'a> {
    resolve: &'a dyn Fn(&str) -> Option<String>,
    out: String,
    stack: Vec<Element>,
    /// Elements that are open and not on the stack.
    n_deeper: u64,
    /// Line ends before the next text: 1 for a new line, 2 for a new paragraph.
    breaks: usize,
    has_space: bool,
    /// What begins emphasis and links that have no text yet, the outermost first.
    begun: Vec<&'static str>,
    /// Addresses that were made absolute.
    n_addresses: usize,
    is_full: bool,
}

impl<'a> Markdown<'a> {
    pub(super) fn new(resolve: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            resolve,
            out: String::new(),
            stack: Vec::new(),
            n_deeper: 0,
            breaks: 0,
            has_space: false,
            begun: Vec::new(),
            n_addresses: 0,
            is_full: false,
        }
    }

    /// Returns the text of a page.
    pub(super) fn of(mut self, page: &str) -> PageText {
        for token in Tokens::new(page) {
            match token {
                Token::Text(text) => self.text(&decoded(text)),
                Token::Open(tag) => self.open(&tag),
                Token::Close(name) => self.close(&name),
            }
            if self.is_full {
                break;
            }
        }
        while !self.is_full && !self.stack.is_empty() {
            self.pop();
        }
        let text = beginning(&self.out, MAX_PAGE_CHARS).to_owned();
        let is_cut = self.is_full || text.len() < self.out.len();
        PageText { text, is_cut }
    }

    fn has(&self, is_one: impl Fn(Role) -> bool) -> bool {
        self.stack.iter().any(|it| is_one(it.role))
    }

    fn text(&mut self, text: &str) {
        if self.has(|it| it == Role::Hidden) {
            return;
        }
        // Between rows and cells there is nothing but blanks, in tables that are whole.
        if self.has(|it| it == Role::Preformatted) {
            return self.verbatim(text);
        }
        self.has_space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            let word: Cow<'_, str> = match word.chars().all(is_shown) {
                true => word.into(),
                false => word.chars().filter(|it| is_shown(*it)).collect::<String>().into(),
            };
            if self.is_full {
                return;
            }
            self.push(&word);
            self.has_space = true;
        }
        self.has_space =
            text.ends_with(char::is_whitespace) || (text.trim().is_empty() && self.has_space);
    }

    fn verbatim(&mut self, text: &str) {
        for (n, line) in text.split('\n').enumerate() {
            if 0 < n {
                self.breaks += 1;
            }
            let line: String = line.chars().filter(|it| is_shown(*it)).collect();
            if !line.is_empty() && !self.is_full {
                self.push(&line);
            }
        }
    }

    /// Writes a piece of a line, after what is due before it.
    fn push(&mut self, text: &str) {
        let is_first = self.out.is_empty();
        if 0 < self.breaks || is_first {
            let n_breaks = if is_first { 0 } else { self.breaks.min(64) };
            self.out.extend(std::iter::repeat_n('\n', n_breaks));
            self.begin_line();
        } else if self.has_space {
            self.out.push(' ');
        }
        (self.breaks, self.has_space) = (0, false);
        for begun in self.begun.drain(..) {
            self.out.push_str(begun);
        }
        self.out.push_str(text);
        // A character has four bytes at most.
        self.is_full = 4 * MAX_PAGE_CHARS < self.out.len();
    }

    fn begin_line(&mut self) {
        for element in &mut self.stack {
            let Some((first, later)) = &element.indent else { continue };
            self.out.push_str(if element.has_begun { later } else { first });
            element.has_begun = true;
        }
    }

    /// Has the next text begin a line or a paragraph. What is in a cell or a heading stays on its line.
    fn break_line(&mut self, n: usize) {
        let is_on_line = |it: &&Element| {
            matches!(
                it.role,
                Role::Cell | Role::Heading | Role::List | Role::Numbered(_) | Role::Preformatted
            )
        };
        match self.stack.iter().rev().find(is_on_line).map(|it| it.role) {
            _ if self.has(|it| it == Role::Hidden) => {}
            Some(Role::Cell | Role::Heading) => self.has_space = true,
            _ => self.breaks = self.breaks.max(n),
        }
    }

    /// Writes a mark of Markdown, where text would be shown.
    fn mark(&mut self, mark: &str) {
        if !self.has(|it| it == Role::Hidden) {
            self.push(mark);
        }
    }
}
