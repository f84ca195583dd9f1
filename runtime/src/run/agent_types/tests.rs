//! Types of sub-agents, built in and of files.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::*;
use crate::turn::tests::script::tools;

fn found(name: Option<&str>, own: &[AgentType]) -> Result<String, String> {
    let found = agent_type(name, own, &tools());
    found.map(|it| it.name.to_string()).map_err(|it| it.to_string())
}

// REQ: AGT-5
#[test]
fn types_are_found_by_name_and_an_unknown_one_is_told_the_others() {
    assert_eq!(found(None, &[]).unwrap(), "general-purpose");
    assert_eq!(found(Some("general_purpose"), &[]).unwrap(), "general-purpose");
    assert_eq!(found(Some("Explore"), &[]).unwrap(), "Explore");
    let own = [AgentType::new("poet", "writes", "Write.")];
    assert_eq!(found(Some("poet"), &own).unwrap(), "poet");
    let error = found(Some("Xplore"), &own).unwrap_err();
    assert!(error.contains("Xplore") && error.contains("Explore, Plan"), "{error}");
    assert!(error.contains("poet"), "{error}");
}

// REQ: AGT-4
#[test]
fn definition_says_which_tools_an_agent_has() {
    let read = |definition: Value| AgentType::read("a", &definition).unwrap();
    let used = |definition: Value| {
        let kind = read(definition);
        let tools = tools();
        let tools = tools.iter().filter(|it| kind.may_use(it));
        tools.map(|it| it.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    let base = |more: Value| {
        let mut all = json!({"description": "d", "prompt": "p"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(used(base(json!({}))), "Bash Edit Fetch Note Poll Read");
    assert_eq!(used(base(json!({"tools": ["Read", "Nope"]}))), "Read");
    assert_eq!(used(base(json!({"tools": "Read, Bash(git *)"}))), "Bash Read");
    let both = json!({"tools": ["Read", "Bash"], "disallowedTools": ["Bash"]});
    assert_eq!(used(base(both)), "Read");
    let own = [read(base(json!({"tools": ["Reed"]})))];
    let error = agent_type(Some("a"), &own, &tools()).unwrap_err();
    assert!(error.to_string().contains("Reed"), "{error}");
}

// REQ: AGT-4, PRM-4
#[test]
fn no_agent_changes_the_mode_of_its_session_or_asks_a_person() {
    let poll = tools().iter().find(|it| it.name.as_str() == "Poll").cloned().unwrap();
    for name in OF_THE_SESSION {
        let spec = |access| ToolSpec { name: name.into(), access, ..ToolSpec::clone(&poll) };
        let definition = json!({"description": "d", "prompt": "p", "tools": [name]});
        for kind in [AgentType::new("a", "d", "p"), AgentType::read("a", &definition).unwrap()] {
            assert!(!kind.may_use(&spec(Access::Person)));
            assert!(kind.may_use(&spec(Access::Ask)), "an embedder's own tool of this name");
        }
    }
}

// REQ: AGT-4
#[test]
fn no_agent_waits_for_what_is_in_the_background_even_where_it_lists_the_tool() {
    let poll = tools().iter().find(|it| it.name.as_str() == "Poll").cloned().unwrap();
    let spec = |access| ToolSpec { name: TASK_OUTPUT.into(), access, ..ToolSpec::clone(&poll) };
    let definition = json!({"description": "d", "prompt": "p", "tools": [TASK_OUTPUT]});
    let kind = AgentType::read("a", &definition).unwrap();
    assert!(!kind.may_use(&spec(Access::Free)));
    assert!(kind.may_use(&spec(Access::Ask)), "an embedder's own tool of this name");
}

// REQ: AGT-4
#[test]
fn definition_that_cannot_be_used_says_why() {
    for (name, definition, why) in [
        ("a", json!([]), "not an object"),
        ("a", json!({"prompt": "p"}), "description"),
        ("a", json!({"description": "d"}), "prompt"),
        ("", json!({"description": "d", "prompt": "p"}), "name"),
        ("a", json!({"description": "d", "prompt": "p", "maxTurns": 0}), "maxTurns"),
        ("a", json!({"description": "d", "prompt": "p", "tools": [1]}), "tools"),
        ("a", json!({"description": "d", "prompt": "p", "permissionMode": "x"}), "Mode"),
    ] {
        let error = AgentType::read(name, &definition).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let definition = json!({"description": "d", "prompt": "p", "model": "inherit"});
    assert_eq!(AgentType::read("a", &definition).unwrap().model, None);
}

// REQ: AGT-4, SES-4
#[test]
fn definition_reads_back_as_it_was_recorded() {
    let definition = json!({"description": "d", "prompt": "p", "tools": ["Read"], "maxTurns": 3});
    let kind = AgentType::read("a", &definition).unwrap();
    let text = serde_json::to_string(&kind).unwrap();
    assert_eq!(serde_json::from_str::<AgentType>(&text).unwrap(), kind);
}
