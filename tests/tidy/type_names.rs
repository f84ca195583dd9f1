//! A type's name occurs once in its crate, so that a reader need not look which of several is meant.

use std::{collections::BTreeMap, path::Path};

use proc_macro2::{TokenStream, TokenTree};

use super::{read, rust_files};

/// Names that test code may use again, and why.
const FIXTURES: [(&str, &str); 2] = [
    ("World", "what the tests of one module run in; no other module sees it"),
    ("Case", "one row of a test's table; no other module sees it"),
];

/// Files that take the place of others where a feature is off. They keep the names of those.
const STAND_INS: [&str; 2] = ["left_out.rs", "unchecked.rs"];

/// Words that name no type by themselves: each says of whom it is the state, or what was done.
const BARE: [&str; 9] =
    ["Data", "Inner", "State", "Found", "Looked", "Moved", "Opened", "Sent", "Settled"];

/// Returns the types that a text defines. A `type` inside of braces is an associated one, so it is not counted.
fn types(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    gather(text.parse().unwrap(), true, &mut found);
    found
}

fn gather(tokens: TokenStream, is_top: bool, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for pair in tokens.windows(2) {
        if let [TokenTree::Ident(kind), TokenTree::Ident(name)] = pair
            && (["struct", "enum", "trait", "union"].iter().any(|it| kind == it)
                || is_top && kind == "type")
        {
            found.push(name.to_string());
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            gather(group.stream(), false, found);
        }
    }
}

/// Returns the crate that a file belongs to; `None` for an example or a benchmark, which is one of its own.
fn crate_of(path: &str) -> Option<&str> {
    match path.find("/src/") {
        Some(end) => Some(&path[..end]),
        None => path.starts_with("tests/").then_some("tests"),
    }
}

fn is_test_code(path: &str) -> bool {
    let is_shared = path.ends_with("/test_support.rs") || path.ends_with("/wire_cases.rs");
    is_shared || path.split(['/', '.']).any(|it| it == "tests")
}

/// Returns the names that occur more than once in a crate, with the files, from paths and texts.
fn repeated(files: &[(String, String)]) -> Vec<String> {
    let mut found: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for (path, text) in files {
        let Some(owner) = crate_of(path) else { continue };
        if STAND_INS.iter().any(|it| Path::new(path).ends_with(it)) {
            continue;
        }
        for name in types(text) {
            if !(is_test_code(path) && FIXTURES.iter().any(|(it, _)| name == *it)) {
                found.entry((owner, name)).or_default().push(path);
            }
        }
    }
    found.retain(|_, files| files.len() > 1);
    found.into_iter().map(|((_, name), files)| format!("{name}: {}", files.join(", "))).collect()
}

#[test]
fn type_names_occur_once_in_their_crate() {
    let files: Vec<_> =
        rust_files().iter().map(|it| (it.to_str().unwrap().to_owned(), read(it))).collect();
    let repeated = repeated(&files);
    assert!(repeated.is_empty(), "give each a name of its own:\n{}", repeated.join("\n"));
}

#[test]
fn repeated_name_is_found_in_one_crate_and_not_across_crates() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file("a/src/x.rs", "pub(crate) struct Part<'a>(&'a str); /* enum World */ struct World;"),
        file(
            "a/src/y/z.rs",
            "fn f() {\n    enum Part {}\n}\nimpl Run for Part { type State = (); }\n",
        ),
        file("a/src/left_out.rs", "pub struct World;\n"),
        file("a/src/y/tests.rs", "struct World;\npub type Case = ();\n"),
        file(
            "a/src/y/tests/w.rs",
            "struct World;\nstruct Case;\nimpl Run for Case { type State = (); }\n",
        ),
        file("b/src/x.rs", "pub trait Part {}\n"),
    ];
    assert_eq!(repeated(&files), ["Part: a/src/x.rs, a/src/y/z.rs"]);
}

#[test]
fn no_type_outside_of_tests_has_a_bare_name() {
    let mut wrong = Vec::new();
    for file in rust_files() {
        let path = file.to_str().unwrap();
        if !is_test_code(path) && !path.starts_with("tests/") {
            let bare = types(&read(&file)).into_iter().filter(|it| BARE.contains(&it.as_str()));
            wrong.extend(bare.map(|it| format!("{path}: {it}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
