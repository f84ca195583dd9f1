//! Tools of your own: a function with a typed input, and a closure that shares state.
//!
//! A tool says what it may do; what it does not say is the careful side: it counts as having side
//! effects, and every call needs a rule or an answer. Here rules allow two calls and no more. The
//! model is the simulated one; its playbook asks for the tools as a real model would.

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::sync::{Arc, Mutex, PoisonError};

use ennead::{
    Endpoint, Ennead, Options, SessionOptions,
    testing::Playbook,
    tool::{CustomTool, ToolOutcome},
};

/// What the simulated model says. It adds two numbers, notes the sum, tries what no rule allows,
/// and tells what came back.
const PLAYBOOK: &str = r#"
[[rule]]
name = "adds"
when.turns = 0
reply = [{ tool = "add", input_json = '{"a": 19, "b": 23}' }]

[[rule]]
name = "notes"
when.turns = 1
reply = [
  { tool = "note", input = { text = "the sum is {{ results[0].text }}" } },
  { tool = "forget", input = {} },
]

[[rule]]
name = "tells"
reply = [{ text = "{% for it in results %}{{ it.name }}: {{ it.text }}\n{% endfor %}" }]
"#;

/// The input of `add`: the schema that the model sees is made from it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

/// `Err` is a failure that the model reads, and can do something about.
async fn add(Add { a, b }: Add) -> Result<String, String> {
    a.checked_add(b).map(|sum| sum.to_string()).ok_or_else(|| "the sum is too large".into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let add =
        CustomTool::typed("add", "Adds two numbers.", |input, _| add(input)).read_only().build()?;

    // A closure with its schema as text. It gets the input as JSON text that fits the schema.
    let notes = Arc::new(Mutex::new(Vec::<String>::new()));
    let shared = Arc::clone(&notes);
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    let note = CustomTool::raw("note", "Keeps a note.", schema, move |input, _| {
        let mut notes = shared.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(input.to_string());
        let n_notes = notes.len();
        async move { ToolOutcome::ok(format!("{n_notes} note(s) kept")) }
    })
    .build()?;

    let forgotten = Arc::clone(&notes);
    let forget =
        CustomTool::raw("forget", "Drops all notes.", r#"{"type":"object"}"#, move |_, _| {
            forgotten.lock().unwrap_or_else(PoisonError::into_inner).clear();
            async { ToolOutcome::ok("all gone") }
        })
        .build()?;

    let workspace = tempfile::tempdir()?;
    let ennead = Ennead::start(Options::simulated(Playbook::parse(PLAYBOOK, "tools")?)).await?;
    let options = SessionOptions::new(workspace.path(), Endpoint::simulated())
        .isolated()
        .tool(Arc::new(add))
        .tool(Arc::new(note))
        .tool(Arc::new(forget))
        .allow("add")?
        .allow("note")?;
    let session = ennead.open(options).await?;

    let answer = session.prompt("Add 19 and 23, and note the sum.").await?.into_answer()?;
    println!("{answer}");
    for denial in &answer.outcome.denials {
        println!("{} was denied: no rule allows it, and nobody is there to ask", denial.tool);
    }
    println!("kept: {:?}", notes.lock().unwrap_or_else(PoisonError::into_inner));

    ennead.shutdown().await;
    Ok(())
}
