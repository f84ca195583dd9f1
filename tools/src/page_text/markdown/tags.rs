//! What the tags of a page do to its Markdown.

use std::borrow::Cow;

use super::{
    super::{entities::decoded, is_shown, tokens::Tag},
    Element, MAX_DEPTH, MAX_INDENTS, Markdown, Role,
};

/// Bytes of an address in a link.
const MAX_ADDRESS: usize = 1000;

impl Markdown<'_> {
    pub(super) fn open(&mut self, tag: &Tag<'_>) {
        match tag.name.as_str() {
            "br" => return self.break_line(1),
            "hr" => {
                self.break_line(2);
                self.mark("---");
                return self.break_line(2);
            }
            "img" => return self.image(tag),
            "area" | "base" | "col" | "embed" | "input" | "link" | "meta" | "param" | "source"
            | "track" | "wbr" | "script" | "style" | "iframe" | "noembed" | "noframes" | "xmp" => {
                return;
            }
            _ => {}
        }
        self.close_before(&tag.name);
        if MAX_DEPTH <= self.stack.len() {
            self.n_deeper += 1;
            return;
        }
        let element = self.element(tag);
        self.stack.push(element);
    }

    fn element(&mut self, tag: &Tag<'_>) -> Element {
        let name = tag.name.clone();
        let mut element =
            Element { name, role: Role::Inline, indent: None, has_begun: false, end: "".into() };
        let mut indent = None;
        element.role = match tag.name.as_str() {
            "svg" | "template" | "math" | "object" | "audio" | "video" | "canvas" => Role::Hidden,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.break_line(2);
                let level = tag.name.bytes().last().map_or(1, |it| usize::from(it - b'0'));
                indent = Some((format!("{} ", "#".repeat(level)).into(), String::new()));
                Role::Heading
            }
            "title" => {
                self.break_line(2);
                indent = Some(("# ".into(), String::new()));
                Role::Heading
            }
            "blockquote" => {
                self.break_line(2);
                indent = Some(("> ".into(), "> ".into()));
                Role::Block
            }
            "ul" | "menu" | "dl" | "ol" => {
                let is_inner = self.has(|it| it == Role::Item);
                self.break_line(if is_inner { 1 } else { 2 });
                if tag.name == "ol" { Role::Numbered(0) } else { Role::List }
            }
            "li" => {
                self.break_line(1);
                let mark = self.next_mark();
                let later = " ".repeat(mark.len());
                indent = Some((mark, later));
                Role::Item
            }
            "dt" => {
                self.break_line(1);
                Role::Item
            }
            "dd" => {
                self.break_line(1);
                indent = Some((": ".into(), "  ".into()));
                Role::Item
            }
            "table" => {
                self.break_line(2);
                Role::Table
            }
            "tr" => {
                self.breaks = self.breaks.max(1);
                Role::Row
            }
            "td" | "th" => self.cell(),
            "pre" | "textarea" | "listing" => {
                self.breaks = self.breaks.max(2);
                self.mark("```");
                self.breaks = 1;
                Role::Preformatted
            }
            "code" | "kbd" | "samp" | "tt" if !self.has(|it| it == Role::Preformatted) => {
                self.begin(&mut element, "`", "`");
                Role::Code
            }
            "b" | "strong" => self.emphasis(&mut element, "**"),
            "i" | "em" | "cite" | "dfn" => self.emphasis(&mut element, "_"),
            "a" => self.link(&mut element, tag.address),
            it if is_block(it) => {
                self.break_line(2);
                Role::Block
            }
            "option" | "button" | "label" | "summary" | "legend" | "figcaption" | "caption" => {
                self.break_line(1);
                Role::Inline
            }
            _ => Role::Inline,
        };
        let n_indents = self.stack.iter().filter(|it| it.indent.is_some()).count();
        element.indent = indent.filter(|_| n_indents < MAX_INDENTS);
        element
    }

    /// Begins what is marked in the line; the mark is written with the first text.
    fn begin(&mut self, element: &mut Element, begin: &'static str, end: &'static str) {
        self.begun.push(begin);
        element.end = end.into();
    }

    /// Begins emphasis; there is none in code and in another of the kind.
    fn emphasis(&mut self, element: &mut Element, mark: &'static str) -> Role {
        let is_inside = self.stack.iter().any(|it| it.end == mark);
        if !is_inside
            && !self.has(|it| {
                matches!(it, Role::Code | Role::Preformatted | Role::Hidden | Role::Heading)
            })
        {
            self.begin(element, mark, mark);
        }
        Role::Inline
    }

    fn link(&mut self, element: &mut Element, address: Option<&str>) -> Role {
        let is_text = |it| matches!(it, Role::Code | Role::Preformatted | Role::Hidden);
        let address = address.filter(|_| !self.has(is_text)).and_then(|it| self.address(it));
        if let Some(address) = address {
            self.begun.push("[");
            element.end = format!("]({address})").into();
        }
        Role::Link
    }

    /// Returns an address as a link holds it. One on the page itself leads nowhere.
    fn address(&mut self, address: &str) -> Option<String> {
        let address = decoded(address);
        let address = address.trim();
        if address.is_empty() || address.starts_with('#') || MAX_ADDRESS < address.len() {
            return None;
        }
        self.n_addresses += 1;
        if super::MAX_ADDRESSES < self.n_addresses {
            return None;
        }
        let whole = (self.resolve)(address).filter(|it| it.len() <= MAX_ADDRESS)?;
        let ends = |it: char| it.is_whitespace() || it.is_control() || matches!(it, '(' | ')');
        (!whole.contains(ends)).then_some(whole)
    }

    fn image(&mut self, tag: &Tag<'_>) {
        let alt = decoded(tag.alt.unwrap_or_default());
        if alt.trim().is_empty() || self.has(|it| matches!(it, Role::Hidden | Role::Preformatted)) {
            return;
        }
        let alt: String = alt
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .filter(|it| is_shown(*it))
            .collect();
        let shown = match tag.address.and_then(|it| self.address(it)) {
            Some(address) => format!("![{alt}]({address})"),
            None => format!("![{alt}]"),
        };
        self.push(&shown);
    }

    fn cell(&mut self) -> Role {
        self.has_space = true;
        // The row is on the stack, if the page has one; every cell of it but the first comes after a line.
        if self.stack.last().is_some_and(|it| it.role == Role::Row && it.has_begun) {
            self.breaks = 0;
            self.has_space = true;
            self.mark("|");
            self.has_space = true;
        }
        if let Some(row) = self.stack.last_mut().filter(|it| it.role == Role::Row) {
            row.has_begun = true;
        }
        Role::Cell
    }

    /// Returns what the next item of the innermost list begins with.
    fn next_mark(&mut self) -> Cow<'static, str> {
        let is_list = |it: &&mut Element| matches!(it.role, Role::List | Role::Numbered(_));
        match self.stack.iter_mut().rev().find(is_list).map(|it| &mut it.role) {
            Some(Role::Numbered(n)) => {
                *n = n.saturating_add(1);
                format!("{n}. ").into()
            }
            _ => "- ".into(),
        }
    }

    /// Closes what an element closes by its beginning.
    fn close_before(&mut self, name: &str) {
        let (closed, within): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu", "td", "th", "table"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl", "td", "th", "table"]),
            "tr" | "thead" | "tbody" | "tfoot" => (&["tr", "thead", "tbody", "tfoot"], &["table"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "option" => (&["option"], &["select"]),
            "a" => (&["a"], &["td", "th", "table"]),
            "body" => (&["head"], &[]),
            it if is_block(it) || is_other_block(it) => {
                (&["p", "title"], &["td", "th", "table", "li", "button", "object"])
            }
            _ => return,
        };
        // Of several that are open, as a row in its body, all are closed but what holds the new one.
        let is_one = |it: &Element| closed.contains(&it.name.as_str());
        let top = self.stack.iter().rev().take_while(|it| !within.contains(&it.name.as_str()));
        let keeps_body = name == "tr";
        let found =
            top.enumerate().filter(|(_, it)| is_one(it) && !(keeps_body && it.name != "tr"));
        let Some(n) = found.map(|it| it.0 + 1).last() else { return };
        (0..n).for_each(|_| self.pop());
    }

    pub(super) fn close(&mut self, name: &str) {
        match name {
            "br" => return self.break_line(1),
            "p" if !self.stack.iter().any(|it| it.name == "p") && self.n_deeper == 0 => {
                return self.break_line(2);
            }
            _ => {}
        }
        if 0 < self.n_deeper {
            self.n_deeper -= 1;
            return;
        }
        // What is in a cell closes nothing outside of it.
        let is_of_table = matches!(
            name,
            "table" | "tr" | "td" | "th" | "thead" | "tbody" | "tfoot" | "body" | "html"
        );
        let is_wall = |it: &Element| matches!(it.role, Role::Table | Role::Cell) && !is_of_table;
        for (n, element) in self.stack.iter().rev().enumerate() {
            if element.name == name {
                (0..=n).for_each(|_| self.pop());
                return;
            }
            if is_wall(element) {
                return;
            }
        }
    }

    /// Closes the innermost element.
    pub(super) fn pop(&mut self) {
        let Some(element) = self.stack.pop() else { return };
        if !element.end.is_empty() {
            // Without a text it has no mark at all.
            if self.begun.pop().is_none() {
                self.out.push_str(&element.end);
            }
        }
        match element.role {
            Role::Preformatted if !self.has(|it| it == Role::Hidden) => {
                self.breaks = 1;
                self.push("```");
                self.breaks = 2;
            }
            Role::Heading | Role::Block | Role::Table => self.break_line(2),
            Role::List | Role::Numbered(_) => {
                let is_inner = self.has(|it| it == Role::Item);
                self.break_line(if is_inner { 1 } else { 2 });
            }
            Role::Item | Role::Row => self.break_line(1),
            Role::Cell => self.has_space = true,
            _ => {}
        }
    }
}

/// Elements that begin a paragraph and end one.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "aside"
            | "header"
            | "footer"
            | "main"
            | "nav"
            | "figure"
            | "details"
            | "fieldset"
            | "form"
            | "address"
            | "center"
            | "dialog"
            | "hgroup"
            | "search"
            | "select"
    )
}

/// Other elements that end a paragraph.
fn is_other_block(name: &str) -> bool {
    matches!(
        name,
        "ul" | "ol"
            | "menu"
            | "dl"
            | "table"
            | "pre"
            | "blockquote"
            | "listing"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
    )
}
