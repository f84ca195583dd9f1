//! What every type at the front door has: room to grow, an example, and a method for each option.

use std::collections::{BTreeMap, BTreeSet};

use super::{code::Code, names, public_names, read};

/// Types whose fields or variants are known to be all, so that a new one is a breaking change: what
/// embedders build field by field, and what our own packages must handle in full.
const CLOSED: &[&str] = &[
    "model::Usage",
    "permission::RuleDestination",
    "permission::SettingSources",
    "permission::Trust",
    "settings::Durability",
    "settings::Scope",
    "settings::SourceTexts",
    "tool::ToolContext",
    "tool::ToolSpec",
];

/// A type at the front door.
struct Type {
    /// What is above its definition: documentation and attributes.
    head: Vec<String>,
    /// What is between its braces.
    body: Vec<String>,
    kind: &'static str,
}

impl Type {
    /// Public fields, in order.
    fn fields(&self) -> impl Iterator<Item = &str> {
        let public = self.body.iter().filter_map(|it| it.strip_prefix("    pub "));
        public.filter_map(|it| Some(it.split_once(':')?.0)).filter(|it| !it.contains(['(', ' ']))
    }

    /// Whether embedders see what it is made of.
    fn is_open(&self) -> bool {
        self.kind == "enum" || self.fields().next().is_some()
    }
}

/// The structs and enums at the front door, by their paths there.
fn types() -> BTreeMap<String, Type> {
    let public = public_names::exports().into_iter();
    let public = public.filter(|(name, _)| public_names::is_to_be_known(name));
    let found: BTreeMap<_, _> =
        public.filter_map(|(name, path)| Some((name, defined(&path)?))).collect();
    assert!(50 < found.len(), "found {}", found.len());
    found
}

/// The definition of this path; `None` for one that a macro writes.
fn defined(path: &[String]) -> Option<Type> {
    let name = path.last()?;
    let kinds = ["struct", "enum", "trait", "fn", "type"];
    let is_it = |line: &str, kind: &str| {
        let rest = line.strip_prefix("pub ").and_then(|it| it.strip_prefix(kind));
        let rest = rest.and_then(|it| it.strip_prefix(' ')?.strip_prefix(name.as_str()));
        rest.is_some_and(|it| !it.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
    };
    for text in public_names::texts_near(path) {
        let lines: Vec<&str> = text.lines().collect();
        let kind_of = |line: &str| kinds.into_iter().find(|kind| is_it(line, kind));
        let found = lines.iter().enumerate().find_map(|(at, it)| Some((at, kind_of(it)?)));
        let Some((at, kind)) = found else { continue };
        let is_head = |it: &&&str| it.starts_with("///") || it.starts_with("#[");
        let head = lines[..at].iter().rev().take_while(is_head).map(|it| (*it).to_owned());
        let has_body = lines[at].ends_with('{');
        let body = lines[at + 1..].iter().take_while(|it| has_body && **it != "}");
        return Some(Type {
            head: head.collect(),
            body: body.map(|it| (*it).to_owned()).collect(),
            kind,
        });
    }
    None
}

#[test]
fn types_at_the_front_door_can_grow() {
    let types = types();
    let is_closed = |name: &str| CLOSED.contains(&name.trim_start_matches("ennead::"));
    let grows = |it: &Type| it.head.iter().any(|line| line == "#[non_exhaustive]");
    let wrong: Vec<&String> = types
        .iter()
        .filter(|(name, it)| it.is_open() && grows(it) == is_closed(name))
        .map(|(name, _)| name)
        .collect();
    assert!(wrong.is_empty(), "either #[non_exhaustive] or listed as closed: {wrong:#?}");
    let gone: Vec<_> =
        CLOSED.iter().filter(|it| !types.contains_key(&format!("ennead::{it}"))).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

/// The words of the examples in a text, given without the marks of its comments.
fn example_words<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut words = Vec::new();
    let mut is_inside = false;
    for line in lines {
        if line.trim_start().starts_with("```") {
            // What is not compiled proves nothing.
            is_inside = !is_inside && !line.contains("text") && !line.contains("ignore");
        } else if is_inside {
            words.extend(line.split(|it: char| !it.is_alphanumeric() && it != '_'));
        }
    }
    words
}

#[test]
fn names_at_the_front_door_have_an_example_that_compiles() {
    let dir = "actors/src/front_door";
    let pages: Vec<String> = names(dir).iter().map(|it| read(format!("{dir}/{it}"))).collect();
    let library = read("actors/src/lib.rs");
    for page in names(dir) {
        assert!(library.contains(&format!("include_str!(\"front_door/{page}\")")), "{page}");
    }
    let shown: Vec<&str> = pages.iter().flat_map(|it| example_words(it.lines())).collect();
    let without: Vec<String> = public_names::exports()
        .into_iter()
        .filter(|(name, _)| public_names::is_to_be_known(name))
        .filter(|(name, path)| {
            let own = defined(path).map(|it| it.head).unwrap_or_default();
            let own = own.iter().rev().filter_map(|it| it.strip_prefix("///"));
            let word = name.rsplit("::").next().unwrap();
            !shown.contains(&word) && !example_words(own).contains(&word)
        })
        .map(|(name, _)| name)
        .collect();
    assert!(without.is_empty(), "without an example: {without:#?}");
}

#[test]
fn every_option_has_a_method_of_its_name() {
    let listing = read("docs/public-names.txt");
    let types = types();
    for options in ["ennead::Options", "ennead::SessionOptions"] {
        let fields: Vec<&str> = types[options].fields().collect();
        assert!(10 < fields.len(), "{options}: {fields:?}");
        let has_method =
            |it: &str| listing.lines().any(|line| line == format!("pub fn {options}::{it}"));
        let without: Vec<_> = fields.into_iter().filter(|it| !has_method(it)).collect();
        assert!(without.is_empty(), "{options}: {without:?}");
    }
}

#[test]
fn only_the_environment_reads_the_environment() {
    let code = Code::of_crate("actors/src/lib.rs");
    let reads = |path: &str| {
        ["env::var", "env::home_dir", "withdrawn_keys::var"].iter().any(|it| path.contains(it))
    };
    let found = code.paths.iter().filter(|(_, path)| reads(path));
    let files: BTreeSet<&str> = found.filter_map(|(file, _)| file.to_str()).collect();
    // The first finds the keys that child processes do not inherit, the last the variables that git
    // does not.
    let expected = [
        "actors/src/options/credentials.rs",
        "actors/src/world/environment.rs",
        "actors/src/world/git.rs",
    ];
    assert_eq!(Vec::from_iter(files), expected);
}
