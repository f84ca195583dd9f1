//! What tests write down: tools, settings, answers, failures.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use crate::{
    block::Block,
    permission::Scope,
    run::facts::SessionFacts,
    step1_settings_resolution::LayerText,
    step5_model_call::{
        FailureClass, ModelAnswer, ModelFailure, StopReason, wire_format::Provider,
    },
    step7_permission_gate::Handler,
    tokens::Usage,
    tool::{Access, Concurrency, ToolEffect, ToolSpec},
};

fn spec(name: &str, access: Access, effect: ToolEffect, concurrency: Concurrency) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("does {name}").into(),
        input_schema: r#"{"type":"object"}"#.into(),
        effect,
        concurrency,
        access,
        // As in the tools that these stand for: Read limits itself.
        output_cap: (name != "Read").then_some(50_000),
        timeout_ms: None,
        polls: name == "Poll",
    }
}

/// Read, Edit, Bash, and Note and Poll that need no permission, and Fetch that does.
pub(crate) fn tools() -> Vec<Arc<ToolSpec>> {
    let file = || Cow::Borrowed("file_path");
    let together = Concurrency::Together { max: 10 };
    let (alone, read_only) = (Concurrency::Alone, ToolEffect::ReadOnly);
    let (changes, command) = (ToolEffect::SideEffects, Access::Command { field: "command".into() });
    [
        spec("Bash", command, ToolEffect::Destructive, alone),
        spec("Edit", Access::WritePath { field: file() }, changes, alone),
        spec("Fetch", Access::Ask, read_only, Concurrency::Together { max: 3 }),
        spec("Note", Access::Free, changes, alone),
        spec("Poll", Access::Free, read_only, together),
        spec("Read", Access::ReadPath { field: file() }, read_only, together),
    ]
    .map(Arc::new)
    .to_vec()
}

pub(crate) fn facts(handler: Handler) -> SessionFacts {
    SessionFacts {
        revision: crate::run::facts::REVISION,
        session: "5f1c0000-0000-4000-8000-000000000001".into(),
        agent: None,
        agent_type: "".into(),
        depth: 0,
        verifies: false,
        within: Vec::new(),
        workspace: "/w".into(),
        home: "/h".into(),
        real: Default::default(),
        directory: "/t/s".into(),
        note_tools: Vec::new(),
        memory: None,
        plans: None,
        transcript: "/t/s.jsonl".into(),
        tools: tools(),
        agents: Default::default(),
        agent_types: Vec::new(),
        handler,
        has_policy: false,
        may_bypass: false,
        shows_secrets: false,
        layers: vec![layer(Scope::CliArg, json!({ "model": "m" }))],
        reads_settings: true,
        streams: true,
        providers: vec![Provider { name: "anthropic".into(), format: Default::default() }],
    }
}

pub(crate) fn layer(scope: Scope, settings: Value) -> LayerText {
    LayerText { scope, source: format!("{}.json", scope.name()), text: settings.to_string() }
}

/// Settings under which Read, Edit and Bash pass, with these keys in addition.
pub(crate) fn allowing(mut more: Value) -> LayerText {
    let rules = json!(["Read", "Edit", "Bash", "Fetch"]);
    match more.pointer_mut("/permissions") {
        Some(permissions) => permissions["allow"] = rules,
        None => more["permissions"] = json!({ "allow": rules }),
    }
    layer(Scope::User, more)
}

/// `hooks` with one command handler for an event. See `world::run_handler` for the commands.
pub(crate) fn hook(event: &str, matcher: &str, commands: &[&str]) -> Value {
    let handlers: Vec<_> =
        commands.iter().map(|it| json!({ "type": "command", "command": it })).collect();
    json!({ "hooks": { event: [{ "matcher": matcher, "hooks": handlers }] } })
}

/// The name of answers to which the world gives numbers.
pub(crate) const NUMBERED: &str = "msg_";

/// An answer whose request is reported with the size that it had.
pub(crate) fn answer(stop: &str, blocks: Vec<Block>) -> Result<ModelAnswer, ModelFailure> {
    let chars: u64 = blocks.iter().map(Block::chars).sum();
    Ok(ModelAnswer {
        message_id: NUMBERED.into(),
        model: "m-1".into(),
        blocks,
        stop_reason: StopReason::read(stop),
        stop_sequence: None,
        refusal: None,
        usage: Usage {
            output_tokens: chars.div_ceil(4),
            cache_read_input_tokens: 7,
            ..Usage::default()
        },
        invalid_inputs: Vec::new(),
    })
}

pub(crate) fn text(text: &str) -> Result<ModelAnswer, ModelFailure> {
    answer("end_turn", vec![Block::text(text)])
}

/// Calls as `id:Tool:value`; the value is the input's path, command or text.
pub(crate) fn calls(calls: &[&str]) -> Result<ModelAnswer, ModelFailure> {
    answer("tool_use", calls.iter().map(|it| call(it)).collect())
}

pub(crate) fn call(call: &str) -> Block {
    let mut parts = call.splitn(3, ':');
    let id = parts.next().unwrap_or_default();
    let tool = parts.next().unwrap_or("Note");
    let value = parts.next().unwrap_or("x");
    let input = match tool {
        "Read" | "Edit" => json!({ "file_path": value }),
        "Bash" => json!({ "command": value }),
        "Skill" => json!({ "skill": value }),
        "TodoWrite" => serde_json::from_str(value).unwrap(),
        _ => json!({ "text": value }),
    };
    Block::tool_use(&id.into(), &tool.into(), &input.to_string())
}

pub(crate) fn failure(class: FailureClass) -> Result<ModelAnswer, ModelFailure> {
    Err(ModelFailure {
        class,
        status: Some(500),
        message: format!("provider said {}", class.code()),
        retry_after_ms: None,
        partial_text: "par".into(),
    })
}

/// The answer with the token of a question for the classifier.
pub(crate) fn with_token(answer: ModelAnswer, token: &str) -> ModelAnswer {
    let answer_text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
    ModelAnswer { blocks: vec![Block::text(&answer_text.replace("TOKEN", token))], ..answer }
}
