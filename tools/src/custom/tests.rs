//! Tools of an embedder, from their inputs to their results.
//!
//! Built under `#[cfg(test)]` only.

use std::collections::BTreeMap;

use ennead_runtime::{
    permission::PermissionMode,
    step7_permission_gate::{Gate, GateSetup, GateStep, Handler, Places},
    tool::ToolCall,
};

use super::*;
use crate::test_support::{World, block_on};

#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    a: i64,
    b: i64,
}

fn add() -> CustomToolBuilder {
    CustomTool::typed("add", "Adds.", |add: Add, _| async move {
        let sum = add.a.checked_add(add.b).ok_or("too large")?;
        Ok(if sum == 0 { String::new() } else { sum.to_string() })
    })
}

// REQ: TOL-1, TOL-5
#[test]
fn a_function_with_a_type_is_a_tool() {
    let tool = add().build().unwrap();
    assert!(tool.check_input(r#"{"a":1}"#).unwrap_err().contains('b'));
    let cases = [
        (r#"{"a":1,"b":2}"#, None, "3"),
        (r#"{"a":1,"b":-1}"#, None, "(no output)"),
        (r#"{"a":9223372036854775807,"b":1}"#, Some(ToolErrorKind::Failed), "too large"),
    ];
    for (input, error, text) in cases {
        assert_eq!(tool.check_input(input), Ok(()));
        let outcome = block_on((tool.run)(input.into(), World::new().context.clone()));
        assert_eq!((outcome.error, outcome.text.as_str()), (error, text));
    }
}

// REQ: TOL-1
#[test]
fn what_is_not_said_is_the_careful_side() {
    let spec = add().build().unwrap().spec().clone();
    assert_eq!(spec.effect, ToolEffect::SideEffects);
    assert_eq!((spec.concurrency, spec.access), (Concurrency::Alone, Access::Ask));
    let result = add()
        .read_only()
        .concurrency(Concurrency::Together { max: 2 })
        .access(Access::Free)
        .output_cap(Some(9))
        .timeout_ms(8)
        .polls();
    let spec = result.build().unwrap().spec().clone();
    assert_eq!((spec.effect, spec.access), (ToolEffect::ReadOnly, Access::Free));
    assert_eq!(spec.concurrency, Concurrency::Together { max: 2 });
    assert_eq!((spec.output_cap, spec.timeout_ms, spec.polls), (Some(9), Some(8), true));
}

/// What a tool without questions that answers with `text` gives through the gate.
fn answer_of(text: String, cap: Option<u32>) -> ToolOutcome {
    let tool = CustomTool::raw("say", "", r#"{"type":"object"}"#, move |_, _| {
        std::future::ready(ToolOutcome::ok(text.clone()))
    });
    let tool = tool.access(Access::Free).output_cap(cap).build().unwrap();
    let world = World::new();
    let places = Places {
        workspace: world.root.to_str().unwrap().into(),
        home: "/home/nobody".into(),
        project_root: None,
        real: BTreeMap::new(),
    };
    let mode = PermissionMode::Default;
    let setup = GateSetup::new(Arc::default(), mode, places, Handler::None);
    let call = ToolCall::new("t1".into(), "say".into(), "{}");
    let (_, step) = Gate::open(call, tool.spec(), &setup);
    let GateStep::Decided { permit: Some(permit), .. } = step else { panic!("{step:?}") };
    let outcome = block_on(tool.run(permit, world.context.clone()));
    if let Some(path) = outcome.truncation.as_ref().and_then(|it| it.stored_at.as_ref()) {
        assert!(std::fs::exists(path).unwrap());
    }
    outcome
}

// REQ: TOL-1
#[test]
fn model_sees_no_more_of_a_result_than_the_tool_says() {
    let long = "x".repeat(60_000);
    assert_eq!(answer_of("x".repeat(100), Some(100)).text, "x".repeat(100));
    let cut = answer_of("x".repeat(101), Some(100));
    assert!(cut.text.ends_with(&format!("begins:\n{}", "x".repeat(100))), "{}", cut.text);
    assert_eq!(cut.truncation.unwrap().original_chars, 101);
    assert_eq!(answer_of(long.clone(), None).text, long);
    let cut = answer_of(long, Some(DEFAULT_OUTPUT_CAP));
    assert!(cut.text.len() < 3000, "{}", cut.text);
}

#[test]
fn a_raw_tool_gets_the_text_of_its_input() {
    let schema = r#"{"type":"object","properties":{"x":{"type":"integer"}}}"#;
    let echo = |input: Arc<str>, _| async move { ToolOutcome::ok(&*input) };
    let tool = CustomTool::raw("echo", "Echoes.", schema, echo).build().unwrap();
    assert!(tool.check_input(r#"{"x":"y"}"#).is_err());
    let outcome = block_on((tool.run)(r#"{"x":1}"#.into(), World::new().context.clone()));
    assert_eq!(outcome.text, r#"{"x":1}"#);
    let bad = CustomTool::raw("echo", "", "[]", echo).build();
    assert!(matches!(bad, Err(CustomToolError::Schema { .. })));
}

#[test]
fn names_that_servers_refuse_are_refused_here() {
    let named = |name: &str| CustomTool::typed(name, "", |_: Add, _| async { Ok("".into()) });
    for (name, fits) in [("a", true), ("", false), ("a b", false), ("ä", false)] {
        assert_eq!(named(name).build().is_ok(), fits, "{name}");
    }
    assert!(named(&"a".repeat(64)).build().is_ok());
    assert!(named(&"a".repeat(65)).build().is_err());
}
