//! What is `pub` in a package is named by another one: `pub` hides dead code from the compiler.
//!
//! A type may be named by the signature, the fields or the variants of what another package names instead. A function
//! is named where it is imported, after `::`, or as a method that is called; a function of a type that takes no `self`
//! is named after its type. Methods are compared by their names only, so that a common one such as `len` always passes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{files_below, public_names, read, rust_files};

/// The packages: those that make no promise to embedders, `ennead`, whose front door counts as named by others, and the
/// library of the command, which its binary and the tests name.
const PACKAGES: [&str; 5] =
    ["runtime/src", "runtime/simulated/src", "tools/src", "actors/src", "actors/command/src"];

/// The binary of the command, which is a crate of its own.
const BINARY: &str = "actors/command/src/bin";

/// Public items that no other package names, and why.
const EXCEPTIONS: [(&str, &str); 7] = [
    ("ArchiveState", "the state of an actor that tests start, which its `impl Actor` names"),
    ("CustomToolBuilder::polls", "for embedders"),
    (
        "ProcessTree::ask_to_end",
        "how servers of the feature `mcp` are ended; without it nothing is asked to end",
    ),
    ("StopDecision", "what `check_stop_condition` returns"),
    ("StopDecision::end", "what `check_stop_condition` returns"),
    ("EndReason", "what `check_stop_condition` returns"),
    ("check_stop_condition", "step 9 by its name in the requirements, which cases are read with"),
];

/// One `pub` item, and the words by which it makes other types reachable.
#[derive(Debug)]
struct DeclaredItem {
    name: String,
    kind: ItemKind,
    reaches: BTreeSet<String>,
}

#[derive(Debug, PartialEq)]
enum ItemKind {
    Type,
    Function,
    /// A function in an `impl`, which has `self` or not.
    Associated {
        of: String,
        has_self: bool,
    },
    Other,
}

/// What other packages name.
#[derive(Default, Clone)]
struct NamedWords {
    /// All words.
    words: BTreeSet<String>,
    /// Words of imports, words after `::`, and methods that are called.
    functions: BTreeSet<String>,
    /// `Type::function`.
    associated: BTreeSet<(String, String)>,
}

impl DeclaredItem {
    fn shown(self) -> String {
        match self.kind {
            ItemKind::Associated { of, .. } => format!("{of}::{}", self.name),
            _ => self.name,
        }
    }
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

impl NamedWords {
    /// The names of the front door, which embedders use; for `ennead` itself with the methods of the types that these
    /// hold and return.
    fn of_front_door(is_own: bool) -> Self {
        let mut named = Self { words: public_names::words(), ..Self::default() };
        let data = is_own.then(public_names::for_embedders).into_iter().flatten();
        for (path, item) in public_names::at_the_front_door().chain(data) {
            let name = path.rsplit("::").next().unwrap_or(path);
            named.functions.insert(name.to_owned());
            named.functions.extend(item.methods.iter().cloned());
            let methods = item.methods.iter().map(|it| (name.to_owned(), it.clone()));
            named.associated.extend(methods);
        }
        named
    }

    fn add(&mut self, stream: TokenStream) {
        words(stream.clone(), &mut self.words);
        let mut aliases = BTreeMap::new();
        self.functions_of(stream, &mut aliases);
        let meant = self
            .associated
            .iter()
            .filter_map(|(of, name)| Some((aliases.get(of)?.clone(), name.clone())));
        let meant: Vec<_> = meant.collect();
        self.associated.extend(meant);
    }

    fn functions_of(&mut self, stream: TokenStream, aliases: &mut BTreeMap<String, String>) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut rest = &tokens[..];
        while let [token, after @ ..] = rest {
            rest = after;
            match (token, after) {
                (it, _) if is_word(it, "use") => {
                    let end = after.iter().position(|it| is_sign(it, ';')).unwrap_or(after.len());
                    words(after[..end].iter().cloned().collect(), &mut self.functions);
                    renamed(after[..end].iter().cloned().collect(), aliases);
                }
                (TokenTree::Ident(of), [one, two, TokenTree::Ident(name), ..])
                    if is_sign(one, ':') && is_sign(two, ':') =>
                {
                    self.functions.insert(name.to_string());
                    self.associated.insert((of.to_string(), name.to_string()));
                }
                // `Type::<T>::name`.
                (it, [one, two, TokenTree::Ident(name), ..])
                    if is_sign(it, '>') && is_sign(one, ':') && is_sign(two, ':') =>
                {
                    self.functions.insert(name.to_string());
                    self.associated.insert((String::new(), name.to_string()));
                }
                (it, [TokenTree::Ident(name), next, ..]) if is_sign(it, '.') => {
                    let is_call = matches!(next, TokenTree::Group(it) if it.delimiter() == Delimiter::Parenthesis);
                    if is_call || is_sign(next, ':') {
                        self.functions.insert(name.to_string());
                    }
                }
                (TokenTree::Group(it), _) => self.functions_of(it.stream(), aliases),
                _ => {}
            }
        }
    }

    fn has(&self, item: &DeclaredItem) -> bool {
        match &item.kind {
            ItemKind::Type | ItemKind::Other => self.words.contains(&item.name),
            ItemKind::Function | ItemKind::Associated { has_self: true, .. } => {
                self.functions.contains(&item.name)
            }
            ItemKind::Associated { of, .. } => [of.as_str(), ""]
                .iter()
                .any(|of| self.associated.contains(&((*of).to_owned(), item.name.clone()))),
        }
    }
}

/// The names that imports give to others, with what is meant.
fn renamed(import: TokenStream, aliases: &mut BTreeMap<String, String>) {
    let tokens: Vec<TokenTree> = import.into_iter().collect();
    for three in tokens.windows(3) {
        if is_word(&three[1], "as") {
            aliases.insert(three[2].to_string(), three[0].to_string());
        }
    }
    for token in tokens {
        if let TokenTree::Group(it) = token {
            renamed(it.stream(), aliases);
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
fn item(kind: &str, tokens: &[TokenTree], of: Option<&str>) -> Option<DeclaredItem> {
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
    let kind = match (kind, of) {
        ("struct" | "enum" | "trait" | "type", _) => ItemKind::Type,
        ("fn", None) => ItemKind::Function,
        ("fn", Some(of)) => ItemKind::Associated { of: of.to_owned(), has_self: has_self(tokens) },
        _ => ItemKind::Other,
    };
    Some(DeclaredItem { name: name.to_string(), kind, reaches })
}

/// Whether the first parameter of a function is `self`.
fn has_self(tokens: &[TokenTree]) -> bool {
    let parameters = tokens.iter().find_map(|it| match it {
        TokenTree::Group(it) if it.delimiter() == Delimiter::Parenthesis => Some(it.stream()),
        _ => None,
    });
    let first = parameters.into_iter().flatten().take_while(|it| !is_sign(it, ','));
    first.into_iter().any(|it| is_word(&it, "self"))
}

/// The type of the `impl` that begins with these tokens, and how many there are before its braces.
fn implemented_type(tokens: &[TokenTree]) -> Option<(String, usize)> {
    let is_body =
        |it: &TokenTree| matches!(it, TokenTree::Group(it) if it.delimiter() == Delimiter::Brace);
    let end = tokens.iter().position(is_body)?;
    let (mut depth, mut name) = (0_u32, None);
    for (at, token) in tokens[..end].iter().enumerate() {
        let is_arrow = 0 < at && is_sign(&tokens[at - 1], '-');
        match token {
            it if is_sign(it, '<') => depth += 1,
            it if is_sign(it, '>') && !is_arrow => depth = depth.saturating_sub(1),
            it if is_word(it, "where") => break,
            TokenTree::Ident(it) if depth == 0 => name = Some(it.to_string()),
            _ => {}
        }
    }
    Some((name?, end))
}

/// All items and methods that are `pub` without a limit, in the `impl` of a type if there is one around them.
fn public_items(stream: TokenStream, of: Option<&str>, found: &mut Vec<DeclaredItem>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut around: Option<(String, usize)> = None;
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(it) = token {
            let of = around.take_if(|it| it.1 == at).map(|it| it.0);
            public_items(it.stream(), of.as_deref(), found);
        } else if is_word(token, "impl") {
            let here = implemented_type(&tokens[at + 1..]);
            around = around.or(here.map(|(name, end)| (name, at + 1 + end)));
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
            found.extend(kind.and_then(|kind| item(kind, &rest[1..], of)));
        }
    }
}

/// The items that nothing else names, of those in `texts`.
fn unnamed(texts: &[String], elsewhere: &NamedWords) -> Vec<String> {
    let mut items = Vec::new();
    for text in texts {
        public_items(text.parse().unwrap(), None, &mut items);
    }
    let mut reached = elsewhere.words.clone();
    loop {
        let (named, rest): (Vec<_>, Vec<_>) = items.into_iter().partition(|it| {
            elsewhere.has(it) || (it.kind == ItemKind::Type && reached.contains(&it.name))
        });
        if named.is_empty() {
            return rest.into_iter().map(|it| it.shown()).collect();
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
        let is_own = |it: &&PathBuf| it.starts_with(package) && !it.starts_with(BINARY);
        let (own, other): (Vec<_>, Vec<_>) = files.iter().partition(is_own);
        let mut elsewhere = NamedWords::of_front_door(package == "actors/src");
        for file in other {
            elsewhere.add(read(file).parse().unwrap());
        }
        let texts: Vec<String> = own.iter().map(read).collect();
        assert!(!texts.is_empty(), "{package}");
        wrong.extend(unnamed(&texts, &elsewhere).into_iter().map(|it| (package, it)));
    }
    let mut unused = BTreeSet::from(EXCEPTIONS.map(|(name, _)| name));
    wrong.retain(|(_, name)| !unused.remove(name.as_str()));
    assert!(wrong.is_empty(), "make these `pub(crate)`, or delete them: {wrong:?}");
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
    let mut elsewhere = NamedWords::default();
    elsewhere.add("fn f(it: Named, other: Choice) { it.called(); LIMIT; }".parse().unwrap());
    assert_eq!(unnamed(&[text.to_owned()], &elsewhere), ["Hidden", "Named::idle", "Idle", "Inner"]);
}

#[test]
fn a_word_that_is_no_call_and_no_import_names_no_function() {
    let text = "
        pub fn imported() {} pub fn qualified() {} pub fn word() {} pub struct Kind;
        impl<T: Fn(u8) -> u8> Kind<T> { pub fn new() {} pub fn made() {} pub fn also() {} pub fn field(&self) {}
            pub fn method(&self) {} pub fn turbofish<T>(&self) {} }
    ";
    let mut elsewhere = NamedWords::default();
    elsewhere.add(
        "use a::{imported, b::Kind as Sort}; fn f(it: Kind) { word(it.field); b::qualified(); Other::new();
        Kind::<u8>::made(); it.method(); it.turbofish::<u8>(); Sort::also() }"
            .parse()
            .unwrap(),
    );
    assert_eq!(unnamed(&[text.to_owned()], &elsewhere), ["word", "Kind::new", "Kind::field"]);
}
