//! No import runs up: each module of our crates is on a floor, and uses its own floor and those below it.

mod imports;
mod lists;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use self::{
    imports::Imports,
    lists::{ACTORS, BINARY, COMMAND, Floor, LEAVES, RUNTIME, SIMULATED, TOOLS},
};
use super::code::Code;

/// Files that may import each other in a circle, directly or by way of others: such files can only
/// be understood together.
const MAX_CIRCLE: usize = 7;

/// Returns how many files of a crate are in its largest circle of imports.
pub(super) fn largest_circle(top: &str) -> usize {
    Imports::of_crate(top).circles().first().map_or(0, Vec::len)
}

#[track_caller]
fn check(top: &str, floors: &[Floor]) {
    let imports = Imports::of_crate(top);
    let upward = imports.upward(floors);
    assert!(upward.is_empty(), "imports of {top} that run up: {upward:#?}");
    let gone: Vec<&str> = floors
        .iter()
        .flat_map(|it| it.1.iter().copied())
        .filter(|it| !imports.arrows.contains_key(*it))
        .collect();
    assert!(gone.is_empty(), "there is no such module in {top}: {gone:?}");
    let circles = imports.circles();
    let large: Vec<_> = circles.iter().filter(|it| MAX_CIRCLE < it.len()).collect();
    assert!(large.is_empty(), "more than {MAX_CIRCLE} files of {top} in a circle: {large:#?}");
    // A count that saw nothing would let everything pass.
    let n_imports: usize = imports.arrows.values().map(BTreeSet::len).sum();
    let n_files = imports.arrows.len();
    assert!(n_files < n_imports, "{n_imports} imports of {n_files} files are known: {top}");
}

#[test]
fn imports_of_the_runtime_run_down() {
    check("runtime/src/lib.rs", RUNTIME);
}

#[test]
fn imports_of_the_actors_run_down() {
    check("actors/src/lib.rs", ACTORS);
    check("actors/src/lib.rs", LEAVES);
}

#[test]
fn imports_of_the_tools_run_down() {
    check("tools/src/lib.rs", TOOLS);
}

#[test]
fn imports_of_the_simulated_model_run_down() {
    check("runtime/simulated/src/lib.rs", SIMULATED);
}

#[test]
fn imports_of_the_command_run_down() {
    check("actors/command/src/lib.rs", COMMAND);
    check("actors/command/src/bin/command/main.rs", BINARY);
}

/// Folders of the runtime whose files are on several floors, and what they have in common.
const SPLIT: &[(&str, &str)] = &[
    ("approval", "what settings say of questions, and counts that are recorded"),
    ("mcp", "words of the protocol, results and servers in settings, and the policy over these"),
    ("output", "what settings say of channels, and what channels make of events"),
    ("recovery", "how long a pause is, which settings bound, and the table that decides"),
    ("redaction", "the patterns, output that they clean, and the inputs of a session"),
    ("run", "what a run is asked with, and what it keeps"),
    ("step3_context_assembly", "the words of tool results, which all share, and the sources"),
    ("step5_model_call", "what requests are made of, and the calls"),
    ("step7_permission_gate", "rules, which settings hold, and the gate that applies them"),
    ("transcript", "records, their writing and reading, and replay, which drives turns"),
];

#[test]
fn every_folder_is_on_one_floor() {
    let mut of_folder: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for (name, floors) in [
        ("actors", ACTORS),
        ("tools", TOOLS),
        ("simulated", SIMULATED),
        ("runtime", RUNTIME),
        ("command", COMMAND),
    ] {
        for (floor, paths) in floors {
            for path in *paths {
                let folder = path.split("::").next();
                of_folder.entry((name, folder)).or_default().insert(floor);
            }
        }
    }
    of_folder.retain(|_, floors| floors.len() != 1);
    for (folder, why) in SPLIT {
        let split = of_folder.remove(&("runtime", Some(*folder)));
        assert!(split.is_some(), "{folder} is on one floor, and need not be listed: {why}");
    }
    assert!(of_folder.is_empty(), "folders on several floors: {of_folder:#?}");
}

#[test]
fn imports_that_run_up_and_circles_are_found_through_exports() {
    let mut code = Code::default();
    for (file, text) in [
        ("src/lib.rs", "pub mod low; pub mod high;"),
        ("src/low.rs", "mod inner; pub use inner::Value; use crate::high::Shown; struct Low;"),
        ("src/low/inner.rs", "use super::Low; pub struct Value;"),
        ("src/high.rs", "pub use crate::low::Value as _; pub use shown::Shown; mod shown;"),
        ("src/high/shown.rs", "use crate::low::Value; pub struct Shown;"),
        ("src/deep.rs", "mod below; pub struct Deep; pub fn of() -> Deep { below::deep() }"),
        ("src/deep/below.rs", "use super::Deep; pub fn deep() -> Deep { Deep }"),
    ] {
        code.add(text, Path::new(file));
    }
    let imports = Imports::of(&code, Path::new("src"));
    let floors: &[Floor] = &[("low", &["low"]), ("high", &["high"]), ("top", &["", "deep"])];
    assert_eq!(imports.upward(floors), ["low (low) -> high::shown (high)"]);
    let circles: [&[&str]; 2] = [&["high::shown", "low", "low::inner"], &["deep", "deep::below"]];
    assert_eq!(imports.circles(), circles);
}
