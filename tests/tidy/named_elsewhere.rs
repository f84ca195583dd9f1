//! What is `pub` in a package is named by another one: `pub` hides dead code from the compiler.
//!
//! A type may be named by the signature, the fields or the variants of what another package names instead. Names
//! are compared as words, so that a common one such as `new` always passes.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{files_below, public_names, read, rust_files};

/// The packages that make no promise to embedders. The names of `ennead` itself are in a listing.
const PACKAGES: [&str; 3] = ["runtime/src", "runtime/simulated/src", "tools/src"];

/// Public items that no other package names, and why.
const EXCEPTIONS: [(&str, &str); 3] = [
    (
        "ask_to_end",
        "how servers of the feature `mcp` are ended; without it nothing is asked to end",
    ),
    ("StopDecision", "what `check_stop_condition` returns"),
    ("check_stop_condition", "step 9 by its name in the requirements, which cases are read with"),
];

/// One `pub` item, and the words by which it makes other types reachable.
#[derive(Debug)]
struct DeclaredItem {
    name: String,
    is_type: bool,
    reaches: BTreeSet<String>,
}

fn words(stream: TokenStream, found: &mut BTreeSet<String>) {
    for token in stream {
        match token {
            TokenTree::Ident(it) => drop(found.insert(it.to_string())),
            TokenTree::Group(it) => words(it.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(it) if it == word)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == sign)
}

/// The words of the public fields of a struct.
fn of_public_fields(fields: TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = fields.into_iter().collect();
    // Commas between arguments of a type end no field.
    let (mut is_public, mut depth) = (false, 0_u32);
    for (at, token) in tokens.iter().enumerate() {
        let is_arrow = 0 < at && is_sign(&tokens[at - 1], '-');
        match token {
            it if is_word(it, "pub") => {
                is_public = !matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
            }
            it if is_sign(it, '<') => depth += 1,
            it if is_sign(it, '>') && !is_arrow => depth -= 1,
            it if is_sign(it, ',') && depth == 0 => is_public = false,
            it if is_public => words(it.clone().into(), found),
            _ => {}
        }
    }
}

/// The item whose name is the first of these tokens, if it is one.
fn item(kind: &str, tokens: &[TokenTree]) -> Option<DeclaredItem> {
    let TokenTree::Ident(name) = tokens.first()? else { return None };
    let mut reaches = BTreeSet::new();
    for token in &tokens[1..] {
        match token {
            TokenTree::Group(it) if it.delimiter() == Delimiter::Brace => {
                match kind {
                    "struct" => of_public_fields(it.stream(), &mut reaches),
                    "enum" | "trait" => words(it.stream(), &mut reaches),
                    _ => {}
                }
                break;
            }
            it if is_sign(it, ';') || (is_sign(it, '=') && kind == "const") => break,
            it => words(it.clone().into(), &mut reaches),
        }
    }
    let is_type = ["struct", "enum", "trait", "type"].contains(&kind);
    Some(DeclaredItem { name: name.to_string(), is_type, reaches })
}

/// All items and methods that are `pub` without a limit.
fn public_items(stream: TokenStream, found: &mut Vec<DeclaredItem>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(it) = token {
            public_items(it.stream(), found);
        } else if is_word(token, "pub") {
            let mut rest = &tokens[at + 1..];
            let is_fn = |it: &[TokenTree]| it.get(1).is_some_and(|it| is_word(it, "fn"));
            while rest.first().is_some_and(|it| is_word(it, "async"))
                || (rest.first().is_some_and(|it| is_word(it, "const")) && is_fn(rest))
            {
                rest = &rest[1..];
            }
            let kinds = ["fn", "struct", "enum", "const", "type", "trait", "static", "mod"];
            let kind = kinds.iter().find(|kind| rest.first().is_some_and(|it| is_word(it, kind)));
            found.extend(kind.and_then(|kind| item(kind, &rest[1..])));
        }
    }
}

/// The items that nothing else names, of those in `texts`.
fn unnamed(texts: &[String], elsewhere: &BTreeSet<String>) -> Vec<String> {
    let mut items = Vec::new();
    for text in texts {
        public_items(text.parse().unwrap(), &mut items);
    }
    let mut reached = elsewhere.clone();
    loop {
        let (named, rest): (Vec<_>, Vec<_>) = items.into_iter().partition(|it| {
            elsewhere.contains(&it.name) || (it.is_type && reached.contains(&it.name))
        });
        if named.is_empty() {
            return rest.into_iter().map(|it| it.name).collect();
        }
        reached.extend(named.into_iter().flat_map(|it| it.reaches));
        items = rest;
    }
}

#[test]
fn public_items_are_named_by_another_package() {
    let mut files = rust_files();
    files.extend(
        files_below("fuzz").into_iter().filter(|it| it.extension().is_some_and(|it| it == "rs")),
    );
    let mut wrong = Vec::new();
    for package in PACKAGES {
        let (own, other): (Vec<_>, Vec<_>) = files.iter().partition(|it| it.starts_with(package));
        let mut elsewhere = public_names::words();
        for file in other {
            words(read(file).parse().unwrap(), &mut elsewhere);
        }
        let texts: Vec<String> = own.iter().map(read).collect();
        assert!(!texts.is_empty(), "{package}");
        wrong.extend(unnamed(&texts, &elsewhere).into_iter().map(|it| (package, it)));
    }
    let mut unused = BTreeSet::from(EXCEPTIONS.map(|(name, _)| name));
    wrong.retain(|(_, name)| !unused.remove(name.as_str()));
    assert!(wrong.is_empty(), "make these `pub(crate)`, or delete them: {wrong:#?}");
    assert!(unused.is_empty(), "exceptions that are none: {unused:?}");
}

#[test]
fn item_is_found_unless_another_package_names_it_or_what_has_it() {
    let text = "
        pub struct Named { pub field: Field, hidden: Hidden, pub map: Map<K, Value> }
        pub struct Field; pub struct Hidden; pub struct Value; pub struct Map;
        pub enum Choice { One(Chosen) } pub struct Chosen;
        impl Named { pub fn called(&self) -> Returned {} pub const fn idle() -> Idle {} pub(crate) fn own() {} }
        pub struct Returned; pub struct Idle; pub const LIMIT: Unit = Inner; pub struct Unit; pub struct Inner;
    ";
    let elsewhere = ["Named", "called", "Choice", "LIMIT"].map(str::to_owned).into();
    assert_eq!(unnamed(&[text.to_owned()], &elsewhere), ["Hidden", "idle", "Idle", "Inner"]);
}
