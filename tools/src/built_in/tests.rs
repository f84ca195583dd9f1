//! Tools behind the real gate: what it permits runs, and nothing else does.
//!
//! Built under `#[cfg(test)]` only.

use std::{collections::BTreeMap, fs};

use ennead_runtime::{
    permission::{PermissionMode, RuleKind, RuleText, Scope},
    step1_settings_resolution::Settings,
    step7_permission_gate::{Gate, GateSetup, GateStep, Handler, Places},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    glob::Glob,
    grep::Grep,
    read::Read,
    test_support::{World, block_on, resolve},
};

/// Asks the gate, which denies reading `.env` files.
fn permit<B: BuiltIn>(world: &World, input: Value) -> Option<Permit> {
    let tool = Declared::<B>::new();
    let mut settings = Settings::default();
    let text = "Read(.env)";
    settings.permissions.rules = vec![RuleText::new(RuleKind::Deny, Scope::Project, text)];
    let places = Places {
        workspace: world.root.to_str().unwrap().into(),
        home: "/home/nobody".into(),
        project_root: None,
        real: BTreeMap::new(),
    };
    let mode = PermissionMode::Default;
    let setup = GateSetup::new(Arc::new(settings), mode, places, Handler::None);
    let name = tool.spec().name.clone();
    let call = ToolCall::new("t1".into(), name, input.to_string());
    let (mut gate, step) = Gate::open(call, tool.spec(), &setup);
    let GateStep::ResolvePath { given } = step else { panic!("{step:?}") };
    let resolved = resolve(world.root.join(given).to_str().unwrap());
    let GateStep::Decided { permit, .. } = gate.path_resolved(resolved) else { return None };
    permit
}

fn run<B: BuiltIn>(world: &World, permit: Permit) -> ToolOutcome {
    block_on(Declared::<B>::new().run(permit, world.context.clone()))
}

// REQ: TOL-1
#[test]
fn a_permitted_call_runs_and_a_permit_is_for_one_tool() {
    let world = World::new();
    let path = world.file("a", "x\n");
    let ask = || permit::<Read>(&world, json!({"file_path": path})).unwrap();
    assert_eq!(run::<Read>(&world, ask()).text, "     1\tx\n");
    let outcome = run::<Glob>(&world, ask());
    assert_eq!(outcome.error, Some(ToolErrorKind::PermissionDenied));
    assert_eq!(outcome.text, "The permit is for Read, not for Glob.");
}

// REQ: TOL-7
#[test]
fn a_link_made_after_the_permit_does_not_help() {
    let world = World::new();
    let path = world.file("a", "fine");
    let secret = world.root.with_file_name("secret");
    fs::write(&secret, "secret").unwrap();
    let permit = permit::<Read>(&world, json!({"file_path": path})).unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&secret, &path).unwrap();
    let outcome = run::<Read>(&world, permit);
    assert!(outcome.text.contains("leads elsewhere"), "{}", outcome.text);
}

#[test]
fn what_a_rule_denies_is_found_by_no_search() {
    let world = World::new();
    let denied = world.file("sub/.env", "needle");
    world.file("sub/a", "needle");
    assert!(permit::<Read>(&world, json!({"file_path": denied})).is_none());
    let found = run::<Grep>(&world, permit::<Grep>(&world, json!({"pattern": "needle"})).unwrap());
    assert!(found.text.ends_with("Found 1 matching lines in 1 files (1 files searched)."));
    let found = run::<Glob>(&world, permit::<Glob>(&world, json!({"pattern": "**"})).unwrap());
    assert_eq!(found.text, world.path("sub/a"));
}
