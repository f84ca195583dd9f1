//! What each file of a crate imports of the same crate, and where that runs up or in circles.
//!
//! A name that is exported again counts as the file that defines it. Code for tests does not count.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{super::code::Code, lists::Floor};

/// The files of a crate by module path (`""` is the top file), and what each imports.
pub(super) struct Imports {
    pub(super) arrows: BTreeMap<String, BTreeSet<String>>,
}

impl Imports {
    /// The imports of a crate, from its top file on.
    pub(super) fn of_crate(top: &str) -> Self {
        Self::of(&Code::of_crate(top), Path::new(top).parent().unwrap())
    }

    pub(super) fn of(code: &Code, dir: &Path) -> Self {
        let modules: BTreeSet<String> =
            code.paths.iter().map(|(file, _)| module_of(file, dir)).collect();
        let absolute = |list: &[(PathBuf, String)]| -> Vec<(String, String)> {
            let known = |(file, path): &(PathBuf, String)| {
                let module = module_of(file, dir);
                let path = absolute(&module, path, &modules)?;
                Some((module, path))
            };
            list.iter().filter_map(known).collect()
        };
        let exports: BTreeMap<String, String> = absolute(&code.exports)
            .into_iter()
            .map(|(module, path)| (join(&module, path.rsplit("::").next().unwrap()), path))
            .filter(|(name, path)| name != path)
            .collect();
        let mut arrows: BTreeMap<String, BTreeSet<String>> =
            modules.iter().map(|it| (it.clone(), BTreeSet::new())).collect();
        // A path in the middle of code is an import, too, if it leads to a file of this crate.
        let exported: BTreeSet<&(PathBuf, String)> = code.exports.iter().collect();
        let named = code.paths.iter().filter(|it| !exported.contains(it));
        let imports: Vec<_> = code.imports.iter().chain(named).cloned().collect();
        for (module, path) in absolute(&imports) {
            let target = defining(&path, &modules, &exports);
            if target != module {
                arrows.entry(module).or_default().insert(target);
            }
        }
        Self { arrows }
    }

    /// Imports that run up.
    pub(super) fn upward(&self, floors: &[Floor]) -> Vec<String> {
        let mut upward = Vec::new();
        for (module, targets) in &self.arrows {
            let from = floor_of(module, floors);
            for target in targets {
                let to = floor_of(target, floors);
                if from < to {
                    let (from, to) = (floors[from].0, floors[to].0);
                    upward.push(format!("{module} ({from}) -> {target} ({to})"));
                }
            }
        }
        upward
    }

    /// Sets of files that import each other, the largest first.
    pub(super) fn circles(&self) -> Vec<Vec<&str>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.arrows.keys().map(|it| (it.as_str(), self.reached(it))).collect();
        let circle = |module: &str| -> Vec<&str> {
            let others = reached[module].iter().copied();
            others.filter(|it| reached[it].contains(module)).collect()
        };
        let found: BTreeSet<Vec<&str>> = reached.keys().map(|it| circle(it)).collect();
        let mut found: Vec<_> = found.into_iter().filter(|it| 1 < it.len()).collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.len()));
        found
    }

    /// What a module imports, directly or by way of others.
    fn reached(&self, module: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![module];
        while let Some(module) = open.pop() {
            for target in &self.arrows[module] {
                if reached.insert(target.as_str()) {
                    open.push(target);
                }
            }
        }
        reached
    }
}

fn module_of(file: &Path, dir: &Path) -> String {
    let path = file.strip_prefix(dir).unwrap_or(file).with_extension("");
    let parts: Vec<_> = path.iter().map(|it| it.to_str().unwrap()).collect();
    if parts == ["lib"] || parts == ["main"] { String::new() } else { parts.join("::") }
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// A path from the top of its crate; `None` where it leads to another crate or is not a path.
fn absolute(module: &str, path: &str, modules: &BTreeSet<String>) -> Option<String> {
    let (first, mut rest) = path.split_once("::")?;
    let mut base = module;
    match first {
        "crate" => return Some(rest.to_owned()),
        "self" => {}
        "super" => {
            base = parent(base);
            while let Some(further) = rest.strip_prefix("super::") {
                (base, rest) = (parent(base), further);
            }
        }
        child => {
            if !modules.contains(&join(module, child)) {
                return None;
            }
            rest = path;
        }
    }
    Some(join(base, rest))
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

/// The module whose file defines what a path names.
fn defining(path: &str, modules: &BTreeSet<String>, exports: &BTreeMap<String, String>) -> String {
    let mut path = path.to_owned();
    // Exports of exports are followed; a chain of more than eight would be a finding by itself.
    for _ in 0..8 {
        let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]);
        let exported = ends
            .map(|end| path.split_at(end))
            .filter(|(head, _)| !modules.contains(*head))
            .find_map(|(head, tail)| Some(format!("{}{tail}", exports.get(head)?)));
        match exported {
            Some(further) => path = further,
            None => break,
        }
    }
    let mut module = path.as_str();
    while !modules.contains(module) && !module.is_empty() {
        module = parent(module);
    }
    module.to_owned()
}

/// The floor of a module: that of the longest path in the list which it lies below.
fn floor_of(module: &str, floors: &[Floor]) -> usize {
    let covers = |path: &str| {
        let rest = module.strip_prefix(path);
        rest.is_some_and(|it| path == module || it.starts_with("::"))
            || (path.is_empty() && module.is_empty())
    };
    let listed = floors.iter().enumerate().flat_map(|(n, it)| it.1.iter().map(move |it| (it, n)));
    let strongest = listed.filter(|(path, _)| covers(path)).max_by_key(|(path, _)| path.len());
    strongest
        .unwrap_or_else(|| panic!("{module} has no floor: add it to tests/tidy/floors/lists.rs"))
        .1
}
