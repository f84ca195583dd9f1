//! Hooks that call a tool of a real MCP server.

use serde_json::{Value, json};

use super::{Came, came_of, decides, hooks, probed};
use crate::support::{
    mcp_server::configured,
    scripted::{TestDirs, alerts},
    settings::SettingsJson as _,
};

fn handler(server: &str, tool: &str, input: Value) -> Value {
    json!({"type": "mcp_tool", "server": server, "tool": tool, "input": input})
}

/// Returns the alerts about hooks, without the one about a tool of the server that cannot be used.
fn told(came: &Came) -> String {
    let mut told = alerts(&came.events_seen);
    told.retain(|it| !it.contains("is not offered"));
    told.join("\n")
}

async fn under(event: &str, handler: Value) -> Came {
    let place = TestDirs::new();
    // The server notes there that a call is held.
    place.write("workspace/alive", "");
    let (options, ran) = probed(&place);
    let options = options.mcp_server(configured("srv"));
    came_of(&place, options.setting("hooks", hooks(event, &[handler])), &ran).await
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn answer_of_a_tool_decides_as_the_output_of_a_command_does() {
    let denied = decides("deny", "not ${tool_name}").to_string();
    let came = under("PreToolUse", handler("srv", "say", json!({"text": denied}))).await;
    assert!(came.inputs.is_empty() && came.result.contains("not probe"), "{}", came.result);

    let input = json!({"name": "${tool_input.n} by ${hook_event_name}"});
    let came = under("UserPromptSubmit", handler("srv", "echo", input)).await;
    let asked = format!("{:?}", came.asked[0]);
    assert!(asked.contains("heard") && asked.contains(" by UserPromptSubmit"), "{asked}");
}

// REQ: HKS-1, HKS-2, HKS-4
#[tokio::test]
async fn tool_without_an_answer_decides_nothing_and_is_told() {
    let cases = [
        (handler("other", "say", json!({"text": "x"})), "no such server"),
        (handler("srv", "none", Value::Null), "no such tool"),
        (handler("srv", "fail", Value::Null), "srv: fail: boom"),
        (handler("srv", "echo", json!({"a": "${tool_input}".repeat(200_000)})), "over a megabyte"),
        (handler("srv", "big", Value::Null), ""),
    ];
    for (handler, alert) in cases {
        let came = under("PreToolUse", handler).await;
        assert_eq!(came.result, "probed", "{alert}");
        let told = told(&came);
        assert_eq!(told.is_empty(), alert.is_empty(), "{told}");
        assert!(told.contains(alert), "{alert}: {told}");
    }
    let mut held = handler("srv", "hold", Value::Null);
    held["timeout"] = json!(0.05);
    let came = under("PreToolUse", held.clone()).await;
    assert_eq!(came.result, "probed");
    let told = told(&came);
    assert!(told.contains("was stopped after"), "{told}");
    held["onFailure"] = "block".into();
    let came = under("PreToolUse", held).await;
    assert!(came.inputs.is_empty(), "{}", came.result);
}
