//! What every type at the front door has: room to grow, an example, and a method for each option.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    code::Code,
    names,
    public_names::{self, PublicItem},
    read,
};

/// Types whose fields or variants are known to be all, so that a new one is a breaking change, and why.
const CLOSED: &[(&str, &str)] = &[
    ("data::Digest", "a new type around its bytes"),
    ("data::Head", "the end of a chain is a number and a hash, by the format of transcripts"),
    ("data::Money", "a new type around a number"),
    ("data::PathKind", "who judges a path must decide for each kind"),
    ("data::Role", "the roles of messages, by the formats of models"),
    ("data::RuleDestination", "our packages must know the file of each"),
    ("data::Scope", "our packages must decide what the files of each rank may do"),
    ("data::Step", "a turn has nine steps"),
    ("data::Timestamp", "a new type around a number"),
    ("data::TodoStatus", "the states that the schema of TodoWrite gives a model"),
    ("data::Tokens", "a new type around a number"),
    ("data::UnknownSource", "a new type around the name"),
    ("model::Usage", "a model in process gives every count, and our packages add up each"),
    (
        "permission::SettingSources",
        "embedders write it field by field: what is not said would be read",
    ),
    ("permission::Trust", "embedders and our packages must decide for each way to trust"),
    ("settings::Durability", "a store must know each promise that it is asked for"),
];

/// The structs and enums whose fields or variants embedders see, at the front door and in what it gives them.
fn open_types() -> BTreeMap<&'static str, &'static PublicItem> {
    let found: BTreeMap<_, _> = public_names::for_embedders()
        .filter(|(_, it)| it.kind == "enum" || !it.fields.is_empty())
        .collect();
    assert!(120 < found.len(), "found {}", found.len());
    found
}

#[test]
fn types_at_the_front_door_can_grow() {
    let types = open_types();
    let is_closed = |name: &str| CLOSED.iter().any(|(it, _)| name == format!("ennead::{it}"));
    let wrong: Vec<_> = types
        .iter()
        .filter(|(name, it)| it.is_non_exhaustive == is_closed(name))
        .map(|(name, _)| name)
        .collect();
    assert!(wrong.is_empty(), "either #[non_exhaustive] or listed as closed: {wrong:#?}");
    let gone: Vec<_> = CLOSED
        .iter()
        .filter(|(it, _)| !types.contains_key(format!("ennead::{it}").as_str()))
        .collect();
    assert!(gone.is_empty(), "{gone:?}");
}

/// The words of the examples in a text, given without the marks of its comments. An import uses nothing yet.
fn example_words<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut words = Vec::new();
    let (mut is_inside, mut is_import) = (false, false);
    for line in lines {
        // Lines that are not shown begin with the sign.
        let code = line.trim_start().trim_start_matches("# ").trim_start();
        is_import |= is_inside && (code.starts_with("use ") || code.starts_with("pub use "));
        if is_import {
            is_import = !code.contains(';');
        } else if line.trim_start().starts_with("```") {
            // What is not compiled proves nothing.
            is_inside = !is_inside
                && ["text", "ignore", "compile_fail"].iter().all(|it| !line.contains(it));
        } else if is_inside {
            words.extend(line.split(|it: char| !it.is_alphanumeric() && it != '_'));
        }
    }
    words
}

#[test]
fn import_is_no_example() {
    let text = "Otter\n```\nuse a::{\n    Badger,\n    Stoat,\n};\n# use a::Weasel;\nlet it = Stoat::new();\n```\n\
                ```text\nMink\n```\n";
    let words = example_words(text.lines());
    assert_eq!(
        Vec::from_iter(words.into_iter().filter(|it| !it.is_empty())),
        ["let", "it", "Stoat", "new"]
    );
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
    let without: Vec<_> = public_names::at_the_front_door()
        .filter(|(name, item)| {
            let word = name.rsplit("::").next().unwrap();
            !shown.contains(&word) && !example_words(item.docs.lines()).contains(&word)
        })
        .map(|(name, _)| name)
        .collect();
    assert!(without.is_empty(), "without an example: {without:#?}");
}

#[test]
fn every_option_has_a_method_of_its_name() {
    for options in ["ennead::Options", "ennead::SessionOptions"] {
        let item = &public_names::items()[options];
        assert!(10 < item.fields.len(), "{options}: {:?}", item.fields);
        let without: Vec<_> = item.fields.iter().filter(|it| !item.methods.contains(*it)).collect();
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
