//! No import runs up: each module of `runtime` and `actors` is on a floor, and uses its own floor
//! and those below it.
//!
//! A name that is exported again counts as the file that defines it. Code for tests does not count.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::code::Code;

/// Files that may import each other in a circle, directly or by way of others: such files can only
/// be understood together.
const MAX_CIRCLE: usize = 8;

/// What a floor is for, and its modules with everything below them. A longer path is stronger.
type Floor = (&'static str, &'static [&'static str]);

/// The floors of `runtime`, the lowest first.
const RUNTIME: &[Floor] = &[
    (
        "vocabulary",
        &[
            "block",
            "catalogue",
            "digest",
            "entropy",
            "hook",
            "ids",
            "input_schema",
            "json",
            "mcp",
            "message",
            "permission",
            "recovery::backoff",
            "redaction",
            "sandbox",
            "shared",
            "skill",
            "step",
            "step3_context_assembly::source8_tool_results",
            "time",
            "tokens",
        ],
    ),
    (
        "what settings are made of",
        &[
            "approval",
            "mcp::result",
            "mcp::spec",
            "output::policy",
            "picture",
            "run::no_progress",
            "run::request",
            "step5_model_call::adaptation",
            "step5_model_call::envelope",
            "step5_model_call::model_name",
            "step5_model_call::openai_shared::encode",
            "step5_model_call::openai_shared::forms",
            "step5_model_call::purpose",
            "step5_model_call::request",
            "step5_model_call::view",
            "step5_model_call::wire_format",
            "step7_permission_gate",
            "tool",
        ],
    ),
    ("settings", &["mcp::policy", "step1_settings_resolution"]),
    (
        "ports, and what is recorded and counted",
        &[
            "approval::counts",
            "approval::overrides",
            "cost",
            "event",
            "governor",
            "lease",
            "output",
            "ports",
            "serve",
            "step5_model_call",
            "transcript::entry",
        ],
    ),
    (
        "steps and recovery",
        &[
            "recovery",
            "redaction::output",
            "run",
            "step2_state_initialization",
            "step3_context_assembly",
            "step4_context_shapers",
            "step6_tool_dispatch",
            "step7_permission_gate::conformance",
            "step7_permission_gate::gate",
            "step7_permission_gate::judgement",
            "step7_permission_gate::rule_book",
            "step7_permission_gate::setup",
            "step7_permission_gate::stage1_prefilter",
            "step7_permission_gate::stage2_pre_tool_use_hooks",
            "step7_permission_gate::stage3_rule_evaluation",
            "step7_permission_gate::stage4_permission_handler",
            "step8_tool_execution",
            "step9_stop_check",
            "transcript",
        ],
    ),
    ("turn", &["turn"]),
    ("session", &["redaction::inputs", "session"]),
    ("replay and evaluation", &["evaluation", "transcript::replay"]),
    ("the crate", &[""]),
];

/// The floors of `actors`, the lowest first.
const ACTORS: &[Floor] = &[
    (
        "groundwork",
        &[
            "storage::archive::files",
            "groundwork::directory",
            "groundwork::mailbox",
            "groundwork::merging",
            "groundwork::scheduler",
            "groundwork::spans",
            "groundwork::supervision",
        ],
    ),
    (
        "ports",
        &[
            "handle::approval::approver",
            "handle::approval::policy",
            "storage::archive::guard",
            "storage::archive::layout",
            "handle::errors",
            "handle::events",
            "handle::in_process_hook",
            "handle::in_process_model",
            "handle::options::environment",
            "storage::transcript_store",
            "world",
        ],
    ),
    ("options", &["handle::channel", "handle::options", "groundwork::redaction"]),
    (
        "storage",
        &[
            "storage::archive",
            "storage::checkpoint",
            "storage::transcript_writer",
            "storage::transcripts",
        ],
    ),
    (
        "leaves, and what they share",
        &[
            "handle::approval",
            "turn::gate_worker",
            "services::governor",
            "turn::hook_runner",
            "services::mcp_server",
            "turn::model_call",
            "session::background",
            "session::context",
            "session::tools",
            "turn::shaper_stage",
            "turn::source_reader",
            "turn::tool_dispatcher",
            "handle::trust",
            "turn::turn_supervisor::message",
        ],
    ),
    ("turn and session", &["session", "turn::turn_supervisor"]),
    ("shard", &["shard"]),
    ("handle", &["handle::ennead"]),
    ("server", &["serve"]),
    ("the crate", &["", "groundwork", "handle", "services", "storage", "turn"]),
];

/// The files of a crate by module path (`""` is the top file), and what each imports.
struct Imports {
    arrows: BTreeMap<String, BTreeSet<String>>,
}

impl Imports {
    fn of_crate(dir: &str) -> Self {
        Self::of(&Code::of_crate(format!("{dir}/lib.rs")), Path::new(dir))
    }

    fn of(code: &Code, dir: &Path) -> Self {
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
        // A path in the middle of code is an import, too, if it says that it is one of this crate.
        let is_named = |it: &&(PathBuf, String)| {
            ["crate::", "self::", "super::"].iter().any(|head| it.1.starts_with(head))
        };
        let exported: BTreeSet<&(PathBuf, String)> = code.exports.iter().collect();
        let named = code.paths.iter().filter(is_named).filter(|it| !exported.contains(it));
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
    fn upward(&self, floors: &[Floor]) -> Vec<String> {
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
    fn circles(&self) -> Vec<Vec<&str>> {
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
    if parts == ["lib"] { String::new() } else { parts.join("::") }
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
    strongest.unwrap_or_else(|| panic!("{module} has no floor: add it to tests/tidy/floors.rs")).1
}

#[track_caller]
fn check(dir: &str, floors: &[Floor]) {
    let imports = Imports::of_crate(dir);
    let upward = imports.upward(floors);
    assert!(upward.is_empty(), "imports of {dir} that run up: {upward:#?}");
    let gone: Vec<&str> = floors
        .iter()
        .flat_map(|it| it.1.iter().copied())
        .filter(|it| !imports.arrows.contains_key(*it))
        .collect();
    assert!(gone.is_empty(), "there is no such module in {dir}: {gone:?}");
    let circles = imports.circles();
    let large: Vec<_> = circles.iter().filter(|it| MAX_CIRCLE < it.len()).collect();
    assert!(large.is_empty(), "more than {MAX_CIRCLE} files of {dir} in a circle: {large:#?}");
    // A count that saw nothing would let everything pass.
    let n_imports: usize = imports.arrows.values().map(BTreeSet::len).sum();
    assert!(100 < n_imports, "{dir}");
}

#[test]
fn imports_of_the_runtime_run_down() {
    check("runtime/src", RUNTIME);
}

#[test]
fn imports_of_the_actors_run_down() {
    check("actors/src", ACTORS);
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
    ] {
        code.add(text, Path::new(file));
    }
    let imports = Imports::of(&code, Path::new("src"));
    let floors: &[Floor] = &[("low", &["low"]), ("high", &["high"]), ("top", &[""])];
    assert_eq!(imports.upward(floors), ["low (low) -> high::shown (high)"]);
    assert_eq!(imports.circles(), [["high::shown", "low", "low::inner"]]);
}
