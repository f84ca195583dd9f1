//! Five transcripts, each of real runs in real sessions.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead::tool::{Access, CustomTool, ToolOutcome};
use serde_json::json;

use crate::support::scripted::{
    Reply, SESSION, Scripted, TestDirs, call, calls, model, says, text,
};
use crate::support::settings::SettingsJson as _;

/// A tool whose results are of this size.
fn tool(n: usize) -> Arc<CustomTool> {
    let tool = CustomTool::raw("effect", "", r#"{"type":"object"}"#, move |_, _| {
        std::future::ready(ToolOutcome::ok("done it ".repeat(n)))
    });
    Arc::new(tool.access(Access::Free).build().unwrap())
}

async fn story(n: usize, models: &[Arc<Scripted>]) -> Vec<u8> {
    let place = TestDirs::new();
    place.write("workspace/a.txt", "one\ntwo\n");
    for model in models {
        let options = place.session().tool(tool(n)).allow("Write").unwrap().allow("Bash").unwrap();
        let shapers = json!({"autoCompactMaxTokens": 4_000});
        place.run(model, options.own_setting("shapers", shapers)).await;
    }
    fs::read(place.path(&format!("transcripts/{SESSION}.jsonl"))).unwrap()
}

/// The stories by name.
pub(super) async fn all() -> Vec<(&'static str, Vec<u8>)> {
    let say = |answers: Vec<Reply>| says(answers);
    let parallel = calls(&[
        ("a", "effect", json!({"n": 1})),
        ("b", "Nope", json!({})),
        ("c", "effect", json!({})),
    ]);
    let files = vec![
        call("w", "Write", json!({"file_path": "b.txt", "content": "text"})),
        call("r", "Read", json!({"file_path": "a.txt"})),
        call("s", "Bash", json!({"command": "echo out; exit 3"})),
    ];
    let n = AtomicUsize::new(0);
    let compacted = model(move |asked| {
        let n = n.fetch_add(1, Ordering::SeqCst);
        if asked.body.to_string().contains("is about to be replaced by a summary") {
            text("All was well.")
        } else if n < 9 {
            call(&format!("t{n}"), "effect", json!({ "n": n }))
        } else {
            text("done")
        }
    });
    vec![
        ("talk", story(1, &[say(vec![text("one")]), say(vec![text("one"), text("two")])]).await),
        ("one call", story(1, &[say(vec![call("a", "effect", json!({}))])]).await),
        ("parallel", story(1, &[say(vec![parallel]), say(vec![])]).await),
        ("files", story(1, &[say(files)]).await),
        ("compacted", story(400, &[compacted]).await),
    ]
}
