//! That the rules notice what providers refuse.

use serde_json::{Value, json};

use crate::support::provider_rules;

/// A request in each format with which nothing is wrong.
fn sound() -> [Value; 3] {
    let messages = json!({ "model": "m", "max_tokens": 9, "messages": [
        { "role": "user", "content": [{ "type": "text", "text": "go" }] },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "hm", "signature": "s" },
            { "type": "tool_use", "id": "a", "name": "Note", "input": {} },
            { "type": "tool_use", "id": "b", "name": "Note", "input": {} } ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "a", "content": "x" },
            { "type": "tool_result", "tool_use_id": "b", "content": "y" },
            { "type": "text", "text": "on" } ] } ] });
    let call = |id: &str| {
        let function = json!({ "name": "Note", "arguments": "{}" });
        json!({ "id": id, "type": "function", "function": function })
    };
    let chat = json!({ "model": "m", "messages": [
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "go" },
        { "role": "assistant", "tool_calls": [call("a"), call("b")] },
        { "role": "tool", "tool_call_id": "a", "content": "x" },
        { "role": "tool", "tool_call_id": "b", "content": "y" } ] });
    let item = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "Note", "arguments": "{}" });
    let responses = json!({ "model": "m", "input": [
        { "role": "user", "content": "go" },
        item("a"), item("b"),
        { "type": "function_call_output", "call_id": "a", "output": "x" },
        { "type": "function_call_output", "call_id": "b", "output": "y" } ] });
    [messages, chat, responses]
}

/// What is wrong, and the edit of the request in each format that has it so; `None` where the format
/// has no such thing.
struct Breach {
    name: &'static str,
    edits: [Option<fn(&mut Value)>; 3],
}

/// Takes the element at a place out of a list.
fn take(request: &mut Value, list: &str, at: usize) -> Value {
    request.pointer_mut(list).unwrap().as_array_mut().unwrap().remove(at)
}

fn put(request: &mut Value, list: &str, at: usize, value: Value) {
    request.pointer_mut(list).unwrap().as_array_mut().unwrap().insert(at, value);
}

fn set(request: &mut Value, place: &str, value: Value) {
    *request.pointer_mut(place).unwrap() = value;
}

const BREACHES: [Breach; 16] = [
    Breach {
        name: "a call is not answered",
        edits: [
            Some(|it| drop(take(it, "/messages/2/content", 1))),
            Some(|it| drop(take(it, "/messages", 4))),
            Some(|it| drop(take(it, "/input", 4))),
        ],
    },
    Breach {
        name: "a result answers no call",
        edits: [
            Some(|it| set(it, "/messages/2/content/1/tool_use_id", json!("nobody"))),
            Some(|it| set(it, "/messages/4/tool_call_id", json!("nobody"))),
            Some(|it| set(it, "/input/4/call_id", json!("nobody"))),
        ],
    },
    Breach {
        name: "a call is answered twice",
        edits: [
            Some(|it| set(it, "/messages/2/content/1/tool_use_id", json!("a"))),
            Some(|it| {
                let again = it["messages"][4].clone();
                put(it, "/messages", 5, again);
            }),
            Some(|it| {
                let again = it["input"][4].clone();
                put(it, "/input", 5, again);
            }),
        ],
    },
    Breach {
        name: "a result comes before its call",
        edits: [
            Some(|it| {
                let result = it["messages"][2]["content"][0].clone();
                put(it, "/messages/0/content", 0, result);
            }),
            Some(|it| {
                let result = take(it, "/messages", 3);
                put(it, "/messages", 1, result);
            }),
            Some(|it| {
                let result = take(it, "/input", 3);
                put(it, "/input", 0, result);
            }),
        ],
    },
    Breach {
        name: "two calls have one id",
        edits: [
            Some(|it| set(it, "/messages/1/content/2/id", json!("a"))),
            Some(|it| set(it, "/messages/2/tool_calls/1/id", json!("a"))),
            Some(|it| set(it, "/input/2/call_id", json!("a"))),
        ],
    },
    Breach {
        name: "a result comes after other content",
        edits: [
            Some(|it| {
                let text = take(it, "/messages/2/content", 2);
                put(it, "/messages/2/content", 1, text);
            }),
            Some(|it| put(it, "/messages", 4, json!({ "role": "user", "content": "on" }))),
            None,
        ],
    },
    Breach {
        name: "the roles do not alternate, or one does not exist",
        edits: [
            Some(|it| set(it, "/messages/1/role", json!("user"))),
            Some(|it| set(it, "/messages/1/role", json!("robot"))),
            Some(|it| set(it, "/input/0/role", json!("robot"))),
        ],
    },
    Breach {
        name: "the conversation begins with an answer, or instructions come late",
        edits: [
            Some(|it| drop(take(it, "/messages", 0))),
            Some(|it| {
                let system = take(it, "/messages", 0);
                put(it, "/messages", 1, system);
            }),
            None,
        ],
    },
    Breach {
        name: "the conversation ends with an answer",
        edits: [
            Some(|it| put(it, "/messages", 3, json!({ "role": "assistant", "content": "done" }))),
            Some(|it| put(it, "/messages", 5, json!({ "role": "assistant", "content": "done" }))),
            Some(|it| put(it, "/input", 5, json!({ "role": "assistant", "content": "done" }))),
        ],
    },
    Breach {
        name: "a message is empty",
        edits: [
            Some(|it| set(it, "/messages/0/content", json!([]))),
            Some(|it| set(it, "/messages/1/content", json!([]))),
            Some(|it| set(it, "/input/0/content", json!([]))),
        ],
    },
    Breach {
        name: "a text is blank",
        edits: [
            Some(|it| set(it, "/messages/0/content/0/text", json!(" \n"))),
            Some(|it| set(it, "/messages/1/content", json!(" \n"))),
            Some(|it| set(it, "/input/0/content", json!(""))),
        ],
    },
    Breach {
        name: "an id has letters that ids do not have, or is missing",
        edits: [
            Some(|it| {
                set(it, "/messages/1/content/2/id", json!("a b"));
                set(it, "/messages/2/content/1/tool_use_id", json!("a b"));
            }),
            Some(|it| {
                set(it, "/messages/2/tool_calls/1/id", json!(""));
                set(it, "/messages/4/tool_call_id", json!(""));
            }),
            Some(|it| {
                set(it, "/input/2/call_id", json!(""));
                set(it, "/input/4/call_id", json!(""));
            }),
        ],
    },
    Breach {
        name: "a tool has a name that no tool can have",
        edits: [
            Some(|it| set(it, "/messages/1/content/2/name", json!("a b"))),
            Some(|it| set(it, "/messages/2/tool_calls/1/function/name", json!("n".repeat(65)))),
            Some(|it| set(it, "/input/2/name", json!(""))),
        ],
    },
    Breach {
        name: "an input is not an object",
        edits: [
            Some(|it| set(it, "/messages/1/content/2/input", json!("{}"))),
            Some(|it| set(it, "/messages/2/tool_calls/1/function/arguments", json!("[1]"))),
            Some(|it| set(it, "/input/2/arguments", json!("{"))),
        ],
    },
    Breach {
        name: "a block has a member that its type does not have, or a type that there is not",
        edits: [
            Some(|it| {
                set(it, "/messages/0/content/0", json!({"type": "text", "text": "x", "y": 1}))
            }),
            Some(|it| set(it, "/messages/1/content", json!([{ "type": "hologram" }]))),
            Some(|it| set(it, "/input/4/type", json!("hologram"))),
        ],
    },
    Breach {
        name: "reasoning has no signature",
        edits: [
            Some(|it| {
                set(it, "/messages/1/content/0", json!({"type": "thinking", "thinking": "x"}))
            }),
            None,
            None,
        ],
    },
];

// REQ: SHP-12
#[test]
fn rules_refuse_each_breach_in_every_format_that_has_it() {
    let rules = [provider_rules::messages, provider_rules::chat, provider_rules::responses];
    for (request, rules) in sound().iter().zip(rules) {
        assert_eq!(rules(request), Ok(()), "{request}");
    }
    for Breach { name, edits } in BREACHES {
        let places = sound().into_iter().zip(rules).zip(edits);
        for (format, ((mut request, rules), edit)) in places.enumerate() {
            let Some(edit) = edit else { continue };
            edit(&mut request);
            assert!(rules(&request).is_err(), "{name}, format {format}: {request}");
        }
    }
}
