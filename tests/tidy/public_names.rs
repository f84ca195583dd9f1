//! `docs/public-names.txt` lists what an embedder can name, so that its growth is a decision.
//!
//! The listing is made from the text of `actors/src/lib.rs`, which holds no globs, and of the files that
//! its names lead to. `ENNEAD_WRITE_LISTING=1` writes it anew.

use std::collections::{BTreeMap, BTreeSet};

use super::{files_below, read, root};

const LISTING: &str = "docs/public-names.txt";

/// Above the names that promise nothing.
const INTERNAL: &str =
    "# Hidden, and promised to nobody: for the command and the tests of this project.";

/// Above the types that are read rather than named.
const DATA: &str = "# Types of fields, variants, parameters and results.";

/// Names at the front door, methods and the types of `ennead::data` not counted, that nobody should have to look through.
const MAX_NAMES: usize = 85;

/// The items that lib.rs exports: their paths, and the paths that they are taken from.
pub(super) fn exports() -> BTreeMap<String, Vec<String>> {
    let text = read("actors/src/lib.rs");
    let (mut module, mut found, mut statement) = (String::new(), BTreeMap::new(), String::new());
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim_end();
        if let Some(name) = line.strip_prefix("pub mod ").and_then(|it| it.strip_suffix(" {")) {
            module = format!("::{name}");
        } else if line == "}" {
            module.clear();
        } else if line.trim_start().starts_with("pub use ") || !statement.is_empty() {
            statement.push_str(line.trim());
            if line.ends_with(';') {
                let tree = statement.trim_start_matches("pub use ").trim_end_matches(';');
                for path in paths(tree, &[]) {
                    let name = path.last().unwrap().clone();
                    assert!(name != "*" && !name.contains(" as "), "{tree}");
                    found.insert(format!("ennead{module}::{name}"), path);
                }
                statement.clear();
            }
        }
    }
    found
}

/// The paths of a `use`, with its groups written out.
fn paths(tree: &str, prefix: &[String]) -> Vec<Vec<String>> {
    let (head, group) = tree.split_once('{').map_or((tree, None), |(head, it)| (head, Some(it)));
    let mut path = prefix.to_vec();
    path.extend(head.split("::").map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned));
    let Some(group) = group else { return vec![path] };
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    let inner = &group[..group.rfind('}').unwrap()];
    for (at, char) in inner.char_indices().chain([(inner.len(), ',')]) {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    found.extend(paths(part, &path));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The files in which an item can be defined: those of the module that it is exported from.
pub(super) fn texts_near(path: &[String]) -> Vec<String> {
    let folder = match path[0].as_str() {
        "crate" => "actors/src",
        "ennead_runtime" => "runtime/src",
        "ennead_tools" => "tools/src",
        "ennead_simulated" => "runtime/simulated/src",
        other => panic!("{other} is no package of the project"),
    };
    // The modules of the actors are in folders by what they are for.
    let depth = if path[0] == "crate" { 2 } else { 1 };
    let modules = &path[1..path.len() - 1];
    let of_module = modules[..depth.min(modules.len())].join("/");
    let of_module = format!("{folder}/{of_module}");
    let near =
        files_below(folder).into_iter().filter(|it| it.to_str().unwrap().starts_with(&of_module));
    near.filter(|it| it.extension().is_some_and(|it| it == "rs")).map(read).collect()
}

/// The kind of an item, and its public methods.
fn looked_up(path: &[String]) -> (String, BTreeSet<String>) {
    let name = path.last().unwrap();
    let texts = texts_near(path);
    let kinds = ["struct", "enum", "trait", "fn", "type", "const"];
    let is_name = |rest: &str| {
        rest.strip_prefix(name.as_str())
            .is_some_and(|it| !it.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
    };
    let kind_of = |line: &str| {
        kinds
            .into_iter()
            .find(|kind| line.strip_prefix(&format!("pub {kind} ")).is_some_and(is_name))
    };
    // Ids come from a macro, one line each.
    let of_macro = |line: &str| line.trim() == name;
    let kind = texts.iter().flat_map(|it| it.lines()).find_map(kind_of);
    let is_of_macro = || texts.iter().flat_map(|it| it.lines()).any(of_macro).then_some("struct");
    let kind = kind.or_else(is_of_macro).unwrap_or_else(|| panic!("no definition of {path:?}"));
    let mut methods = BTreeSet::new();
    for text in &texts {
        let mut inside = None;
        for line in text.lines() {
            let start =
                line.strip_prefix("impl ").filter(|it| !it.contains(" for ")).is_some_and(is_name);
            match line {
                "}" => inside = None,
                _ if start => inside = Some("    pub "),
                _ if kind == "trait" && kind_of(line).is_some() => inside = Some("    "),
                _ => {}
            }
            let method = inside.and_then(|it| line.strip_prefix(it));
            let method =
                method.map(|it| it.trim_start_matches("async ").trim_start_matches("const "));
            if let Some(method) = method.and_then(|it| it.strip_prefix("fn ")) {
                let end = method.find(['(', '<']).unwrap_or(method.len());
                methods.insert(method[..end].to_owned());
            }
        }
    }
    (kind.to_owned(), methods)
}

/// The items of public modules that are files of their own: what they define at their top, and what they
/// export of the modules below them.
fn exports_of_files() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let library = read("actors/src/lib.rs");
    let modules = library.lines().filter_map(|it| it.strip_prefix("pub mod ")?.strip_suffix(';'));
    for module in modules {
        for line in read(format!("actors/src/{module}.rs")).lines() {
            let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub fn ", "pub type "];
            let defined = kinds.iter().find_map(|it| line.strip_prefix(it)).map(|rest| {
                let end = rest.find(|it: char| !(it.is_alphanumeric() || it == '_'));
                vec![vec![rest[..end.unwrap_or(rest.len())].to_owned()]]
            });
            let exported = line.strip_prefix("pub use self::").map(|it| {
                assert!(it.ends_with(';'), "an export takes one line: {it}");
                paths(it.trim_end_matches(';'), &[])
            });
            for path in defined.into_iter().chain(exported).flatten() {
                let name = path.last().unwrap().clone();
                let path = vec!["crate".to_owned(), module.to_owned(), name.clone()];
                found.insert(format!("ennead::{module}::{name}"), path);
            }
            let of_runtime = line.strip_prefix("pub use ").filter(|it| it.starts_with("ennead_"));
            for path in
                of_runtime.map(|it| paths(it.trim_end_matches(';'), &[])).into_iter().flatten()
            {
                found.insert(format!("ennead::{module}::{}", path.last().unwrap()), path);
            }
        }
    }
    found
}

fn listing() -> (String, usize) {
    let (mut public, mut data, mut internal) = (Vec::new(), Vec::new(), Vec::new());
    let mut n_names = 0;
    for (name, path) in exports().into_iter().chain(exports_of_files()) {
        let (kind, methods) = looked_up(&path);
        let line = format!("pub {kind} {name}");
        match name.split("::").nth(1) {
            Some("internal") => internal.push(line),
            Some("data") => data.push(line),
            _ => {
                n_names += 1;
                public.push(line);
                public.extend(methods.iter().map(|it| format!("pub fn {name}::{it}")));
            }
        }
    }
    let [public, data, internal] = [public, data, internal].map(|it| it.join("\n"));
    (format!("{public}\n\n{DATA}\n{data}\n\n{INTERNAL}\n{internal}\n"), n_names)
}

/// Whether embedders are to know a name: the front door without the types of its fields.
pub(super) fn is_to_be_known(name: &str) -> bool {
    !name.starts_with("ennead::internal::") && !name.starts_with("ennead::data::")
}

#[test]
fn what_an_embedder_can_name_is_listed() {
    let (listing, n_names) = listing();
    if std::env::var_os("ENNEAD_WRITE_LISTING").is_some() {
        std::fs::write(root().join(LISTING), &listing).unwrap();
    }
    let checked_in = read(LISTING);
    let (now, then): (BTreeSet<_>, BTreeSet<_>) =
        (listing.lines().collect(), checked_in.lines().collect());
    let new: Vec<_> = now.difference(&then).collect();
    let gone: Vec<_> = then.difference(&now).collect();
    assert!(new.is_empty() && gone.is_empty(), "not in {LISTING}: {new:#?}; only there: {gone:#?}");
    assert_eq!(listing, checked_in, "the order is that of the paths");
    assert!(n_names <= MAX_NAMES, "{n_names} names at the front door");
}
