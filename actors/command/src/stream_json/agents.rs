//! Sub-agents that the program defines, in `initialize` and in `--agents`.

use ennead::tool::AgentType;
use serde_json::Value;

/// Reads definitions by name; and what cannot be used of them, in words.
pub fn read(definitions: &Value) -> (Vec<AgentType>, Vec<String>) {
    let (mut agents, mut problems) = (Vec::new(), Vec::new());
    match definitions {
        Value::Null => {}
        Value::Object(definitions) => {
            for (name, definition) in definitions {
                match AgentType::read(name, definition) {
                    Ok(agent) => agents.push(agent),
                    Err(bad) => problems.push(bad.to_string()),
                }
            }
        }
        _ => problems.push("the definitions of agents are not an object; they are ignored".into()),
    }
    (agents, problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // REQ: AGT-4
    #[test]
    fn definition_that_cannot_be_used_is_told_and_the_others_hold() {
        let good = json!({"description": "d", "prompt": "p"});
        let (agents, problems) = read(&json!({"a": good, "b": {"prompt": "p"}, "c": 1}));
        assert_eq!(agents.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["a"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(read(&Value::Null).1.is_empty() && read(&json!([])).1.len() == 1);
    }
}
