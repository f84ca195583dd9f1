//! Reads texts and lists of texts out of the YAML header of a file.
//!
//! Works on the parser's events, so that a header costs time and memory in proportion to its bytes:
//! other values are passed over, and an alias repeats a text at most up to [`MAX_BYTES`].

use std::{borrow::Cow, collections::BTreeMap};

use granit_parser::{Event, Parser, ScalarStyle};

/// Bytes that all globs of a header have together. A list without aliases cannot have more than its
/// file; aliases can repeat a text, and 64 KiB are a thousand long paths.
const MAX_BYTES: usize = 64 << 10;

/// Returns the globs that `paths` names: a list, or one text with commas.
///
/// `None`: there is no `paths`, it is neither of the two, or the header is not YAML.
pub(super) fn globs(header: &str) -> Option<Vec<String>> {
    let all = match fields(header)?.remove("paths")? {
        Node::Texts(list) => list,
        Node::Text(text) => at_commas(&text),
        Node::Other => return None,
    };
    let globs = all.into_iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    Some(globs.collect())
}

/// Reads the values of a header by their keys.
///
/// `None`: it is not YAML, or has a key twice.
pub(in crate::world) fn fields(header: &str) -> Option<BTreeMap<String, Node>> {
    let mut reader = HeaderReader::default();
    for event in Parser::new_from_str(header) {
        reader.take(event.ok()?.0)?;
    }
    Some(reader.fields)
}

/// A value of the header.
#[derive(Clone, Debug)]
pub(in crate::world) enum Node {
    /// A text, a number or a truth value.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// Nothing, or another value.
    Other,
}

/// A collection whose end has not been read.
enum Open {
    List {
        anchor: usize,
        texts: Option<Vec<String>>,
    },
    /// A map other than the header itself.
    Map {
        anchor: usize,
    },
    /// The header, and the key whose value comes next.
    Header {
        key: Option<Node>,
    },
}

#[derive(Default)]
struct HeaderReader {
    n_documents: usize,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    n_bytes: usize,
    fields: BTreeMap<String, Node>,
}

impl HeaderReader {
    /// Takes one event. `None`: the header cannot be used.
    fn take(&mut self, event: Event<'_>) -> Option<()> {
        match event {
            Event::DocumentStart(..) => {
                self.n_documents += 1;
                (self.n_documents == 1).then_some(())
            }
            Event::Scalar(text, style, anchor, _) => self.end(scalar(text, style), anchor),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned().unwrap_or(Node::Other);
                self.n_bytes += match &node {
                    Node::Text(text) => text.len(),
                    Node::Texts(texts) => texts.iter().map(String::len).sum(),
                    Node::Other => 0,
                };
                (self.n_bytes <= MAX_BYTES).then(|| self.end(node, 0))?
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(Open::List { anchor, texts: Some(Vec::new()) });
                Some(())
            }
            Event::MappingStart(..) if self.open.is_empty() => {
                self.open.push(Open::Header { key: None });
                Some(())
            }
            Event::MappingStart(_, anchor, _) => {
                self.open.push(Open::Map { anchor });
                Some(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop()? {
                Open::List { anchor, texts } => {
                    self.end(texts.map_or(Node::Other, Node::Texts), anchor)
                }
                Open::Map { anchor } => self.end(Node::Other, anchor),
                Open::Header { .. } => Some(()),
            },
            _ => Some(()),
        }
    }

    /// A value has been read: hands it to the collection that it is in.
    fn end(&mut self, node: Node, anchor: usize) -> Option<()> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut()? {
            Open::List { texts, .. } => match node {
                Node::Text(text) => texts.iter_mut().for_each(|it| it.push(text.clone())),
                Node::Texts(_) | Node::Other => *texts = None,
            },
            Open::Map { .. } => {}
            Open::Header { key } => match key.take() {
                None => *key = Some(node),
                Some(Node::Text(name)) => {
                    // A key that is there twice leaves open which is meant.
                    return self.fields.insert(name, node).is_none().then_some(());
                }
                Some(_) => {}
            },
        }
        Some(())
    }
}

/// A text, or what YAML takes for nothing.
fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Node {
    match style {
        ScalarStyle::Plain if matches!(&*text, "" | "~" | "null" | "Null" | "NULL") => Node::Other,
        _ => Node::Text(text.into_owned()),
    }
}

/// Splits at commas outside of braces.
fn at_commas(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Option<&[&str]>) {
        let found = globs(header);
        let found = found.as_ref().map(|it| it.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{header:?}");
    }

    // REQ: CTX-1
    #[test]
    fn forms_of_yaml_that_mean_the_same_are_read_alike() {
        check("paths: [src/**, \"*.{a,b}\"]", Some(&["src/**", "*.{a,b}"]));
        check("paths:\n- 'src/**'\n- |-\n  *.md\n", Some(&["src/**", "*.md"]));
        check("\"paths\": >-\n  a,\n  b", Some(&["a", "b"]));
        check("# first\npaths: a # then\n", Some(&["a"]));
        check("more: {x: [1, {y: z}], paths: no}\npaths: a", Some(&["a"]));
        check("some: &a src/**\npaths: [*a, b]", Some(&["src/**", "b"]));
        check("some: &a [c, d]\npaths: *a", Some(&["c", "d"]));
    }

    // REQ: CTX-1
    #[test]
    fn what_names_no_paths_is_no_header() {
        for header in [
            "",
            "a",
            "- paths",
            "paths:",
            "paths: ~",
            "paths: {a: b}",
            "paths: [[a]]",
            "paths: [a, {b: c}]",
            "paths: a\npaths: b",
            "paths: *unknown",
            "paths: [a",
            ": [bad",
            "paths: a\n...\n---\npaths: b",
        ] {
            check(header, None);
        }
    }

    // REQ: CTX-1
    #[test]
    fn aliases_repeat_a_text_up_to_a_limit() {
        let repeated =
            |n: usize| format!("x: &a {}\npaths: [{}]", "y".repeat(1_024), "*a,".repeat(n));
        assert_eq!(globs(&repeated(64)).map(|it| it.len()), Some(64));
        assert_eq!(globs(&repeated(65)), None);
        // Each list is twice the one before: two to the sixtieth texts.
        let doubled: String =
            (1..60).map(|i| format!("k{i}: &a{i} [*a{0}, *a{0}]\n", i - 1)).collect();
        check(&format!("k0: &a0 x\n{doubled}paths: *a59"), None);
    }
}
