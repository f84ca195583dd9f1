//! `docs/public-names.txt` lists what an embedder can name, so that its growth is a decision.
//!
//! The listing is made from the sources of the packages, parsed, as `cargo public-api` would print it: fields,
//! variants, signatures and impls. Paths are those by which an embedder names things.
//! `ENNEAD_WRITE_LISTING=1` writes it anew.

mod macros;
mod names;
mod sources;
mod surface;
mod text;
mod writer;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use self::sources::Sources;
pub(super) use self::{
    sources::{docs, is_for_tests},
    surface::PublicItem,
};
use super::{read, root};

const LISTING: &str = "docs/public-names.txt";

/// Above the names that promise nothing.
const INTERNAL: &str =
    "# Hidden, and promised to nobody: for the command and the tests of this project.";

/// Above the types that are read rather than named.
const DATA: &str = "# Types of fields, variants, parameters and results.";

/// Names at the front door, methods and the types of `ennead::data` not counted, that nobody should have to look through.
const MAX_NAMES: usize = 80;

/// Types of `ennead::data`, and hidden names: each new one is a reason to look for one that can go.
const MAX_DATA: usize = 154;
const MAX_INTERNAL: usize = 80;

/// Other crates that signatures name, and why an embedder meets them. A new line of versions of one of these breaks
/// programs.
const CRATES: [(&str, &str); 12] = [
    ("axum", "routes of the server are merged into a router of one's own"),
    ("bytes", "bodies of requests and answers"),
    ("futures", "answers of a model in process are a stream"),
    ("futures_core", "events and bodies are streams"),
    ("http", "headers of answers"),
    ("ractor", "the cells of the actors that live"),
    ("rustls", "certificates of the server"),
    ("schemars", "schemas of the inputs of tools"),
    ("serde", "inputs of tools, and what is written as JSON"),
    ("serde_json", "inputs of tools and settings"),
    ("std", "a part of the language"),
    ("tokio", "the runtime that an embedder builds, the socket that it listens at"),
];

static SURFACE: LazyLock<BTreeMap<String, PublicItem>> =
    LazyLock::new(|| surface::surface(&Sources::read()));

/// The public items by their paths, what is hidden as well.
pub(super) fn items() -> &'static BTreeMap<String, PublicItem> {
    &SURFACE
}

fn is_internal(path: &str) -> bool {
    path.starts_with("ennead::internal::")
}

fn is_data(path: &str) -> bool {
    path.starts_with("ennead::data::")
}

/// The items that embedders are to know: the front door without the types of its fields.
pub(super) fn at_the_front_door() -> impl Iterator<Item = (&'static str, &'static PublicItem)> {
    let items = items().iter().map(|(path, it)| (path.as_str(), it));
    items.filter(|(path, _)| !is_internal(path) && !is_data(path))
}

/// What embedders can name and is promised to them.
pub(super) fn for_embedders() -> impl Iterator<Item = (&'static str, &'static PublicItem)> {
    let items = items().iter().map(|(path, it)| (path.as_str(), it));
    items.filter(|(path, _)| !is_internal(path))
}

/// How many names are at the front door, and how many types of fields and results are with them.
pub(super) fn n_names() -> [usize; 2] {
    [at_the_front_door().count(), items().keys().filter(|it| is_data(it)).count()]
}

/// The words that name public items, and the methods of those at the front door.
pub(super) fn words() -> BTreeSet<String> {
    let paths = items().keys().flat_map(|it| it.split("::"));
    let methods = at_the_front_door().flat_map(|(_, it)| &it.methods);
    paths.map(str::to_owned).chain(methods.cloned()).collect()
}

fn listing() -> String {
    let (mut public, mut data, mut internal) = (Vec::new(), Vec::new(), Vec::new());
    for (path, item) in items() {
        if is_internal(path) {
            internal.push(format!("pub {} {path}", item.kind));
        } else {
            let lines = if is_data(path) { &mut data } else { &mut public };
            lines.extend(item.lines.iter().cloned());
            internal.extend(item.hidden.iter().cloned());
        }
    }
    let [public, data, internal] = [public, data, internal].map(|it| it.join("\n"));
    format!("{public}\n\n{DATA}\n{data}\n\n{INTERNAL}\n{internal}\n")
}

#[test]
fn what_an_embedder_can_name_is_listed() {
    let listing = listing();
    if std::env::var_os("ENNEAD_WRITE_LISTING").is_some() {
        std::fs::write(root().join(LISTING), &listing).unwrap();
    }
    let checked_in = read(LISTING);
    let (now, then): (BTreeSet<_>, BTreeSet<_>) =
        (listing.lines().collect(), checked_in.lines().collect());
    let gone = checked_in.lines().filter(|it| !now.contains(it)).map(|it| format!("- {it}\n"));
    let new = listing.lines().filter(|it| !then.contains(it)).map(|it| format!("+ {it}\n"));
    let difference: String = gone.chain(new).collect();
    assert!(
        listing == checked_in,
        "{LISTING} is not what the library exports (- is listed only, + is exported only, nothing is an order \
         that differs):\n{difference}ENNEAD_WRITE_LISTING=1 with this test writes it anew"
    );
}

#[test]
fn names_at_the_front_door_can_be_looked_through() {
    let [n_names, n_data] = n_names();
    assert!(n_names <= MAX_NAMES, "{n_names} names at the front door");
    assert!(n_data <= MAX_DATA, "{n_data} types of fields and results");
    let n_internal = items().keys().filter(|it| is_internal(it)).count();
    assert!(n_internal <= MAX_INTERNAL, "{n_internal} hidden names");
}

#[test]
fn crates_that_signatures_name_are_listed() {
    let public = items().iter().filter(|(path, _)| !is_internal(path));
    let named: BTreeSet<&str> = public.flat_map(|(_, it)| &it.crates).map(String::as_str).collect();
    assert_eq!(named, BTreeSet::from(CRATES.map(|(name, _)| name)));
}

#[test]
fn every_type_that_a_public_item_names_can_be_named_too() {
    let mut unnamed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, item) in items().iter().filter(|(path, _)| !is_internal(path)) {
        for missing in &item.unnamed {
            unnamed.entry(missing).or_default().push(path);
        }
    }
    assert!(unnamed.is_empty(), "named by these, and without a public path: {unnamed:#?}");
}
