//! Runs one case of `tests/cases/shapers.jsonl` through the shapers.
//!
//! Cases are a format of their own. The numbers of the case are parameters of the
//! product's code; nothing is taken from `expected`.

pub(crate) mod invariants;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ShapedContext, ShaperSetup, Sharing, SummaryRequest,
    chain::{Summarised, shape},
};
use crate::{
    ids::EntryId,
    message::{Messages, Role, tokens_of},
    saturating::Saturating as _,
    step1_settings_resolution::ShaperSettings,
    step9_stop_check::conformance::{BadCase, read_messages},
    tokens::{Counting, Tokens},
};

/// What the stand-in for a model answers: 40 tokens.
const SUMMARY: &str = "The user asked, the tools were called, and what they found was reported. \
                       Nothing is open, and the next step is to go on from the newest messages \
                       below here.";

/// One case, as read from its file.
#[derive(Clone, Debug)]
pub(crate) struct ShaperCase {
    /// What is to be shaped.
    pub messages: Messages,
    /// Its size, as the case gives it.
    pub tokens: Tokens,
    /// Parameters that the stages run with.
    pub setup: ShaperSetup,
    /// How the stand-in for a model behaves.
    pub summariser: Summariser,
}

/// How the stand-in for a model behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summariser {
    /// Answers with 40 tokens.
    Works,
    /// Every request for a summary fails.
    Fails,
    /// Answers with more than it got.
    TooLong,
}

impl Summariser {
    /// Returns the answer to a request for a summary.
    pub(crate) fn answer(self, request: &SummaryRequest) -> Summarised {
        match self {
            Summariser::Works => Summarised::Text(SUMMARY.into()),
            Summariser::Fails => Summarised::Failed { why: "the summariser failed".into() },
            Summariser::TooLong => {
                let tokens = usize::saturating(tokens_of(&request.messages).0);
                Summarised::Text("long ".repeat(tokens.saturating_add(1)))
            }
        }
    }
}

/// Runs the shapers on one parsed case and returns `{"fired": …, "outcome": …, "tokens_after": …, "model_calls": …,
/// "result": …, "violated": …}`.
///
/// # Errors
///
/// [`BadCase`] when the case is none.
pub fn run_case(case: &Value) -> Result<Value, BadCase> {
    let case = read_case(case)?;
    let id = EntryId::from("summary");
    let context = ShapedContext { messages: case.messages.clone().into(), tokens: case.tokens };
    let shaped = shape(context, &case.setup, &id, |it| case.summariser.answer(it));
    let tokens_after = shaped.context.tokens;
    let outcome = if case.setup.context_budget < tokens_after {
        "overflow"
    } else if super::pressure::token_limit(&case.setup) < tokens_after {
        "over_trigger"
    } else if shaped.context.messages[..] == case.messages {
        "unchanged"
    } else {
        "fits"
    };
    let result: Vec<Value> = shaped.context.messages.iter().map(|it| write_message(it)).collect();
    Ok(json!({
        "fired": shaped.fired().map(super::Stage::name).collect::<Vec<_>>(),
        "outcome": outcome,
        "tokens_after": tokens_after.0,
        "model_calls": shaped.n_model_calls,
        "result": result,
        "violated": invariants::violated(&case, &shaped),
    }))
}

/// Reads a parsed case.
///
/// # Errors
///
/// [`BadCase`] when something is missing.
pub(crate) fn read_case(case: &Value) -> Result<ShaperCase, BadCase> {
    let mut list = case["input"]["messages"].clone();
    expand(&mut list);
    let config = &case["config"];
    let number = |value: &Value, part| value.as_u64().ok_or(BadCase::Missing { part });
    let small = |value: &Value, part| number(value, part).map(u32::saturating);
    let is_on = |gate: &str| config[gate].as_bool().unwrap_or(false);
    let exempt = config["exempt_tools"].as_array().into_iter().flatten();
    let max_tokens = number(&case["budget"]["max_tokens"], "budget.max_tokens")?;
    let trigger_tokens = number(&case["budget"]["trigger_tokens"], "budget.trigger_tokens")?;
    let settings = ShaperSettings {
        per_result_cap_chars: number(&config["per_result_cap_chars"], "per_result_cap_chars")?,
        exempt_tools: exempt.filter_map(|it| it.as_str().map(Into::into)).collect(),
        history_snip: is_on("history_snip"),
        context_collapse: is_on("context_collapse"),
        cached_microcompact: is_on("cached_microcompact"),
        auto_compact: is_on("auto_compact"),
        auto_compact_max_tokens: Some(trigger_tokens),
        // Cases know no pressure by number.
        max_messages: u32::MAX,
        keep_newest: small(&config["keep_newest"], "config.keep_newest")?,
        idle_minutes_threshold: small(&config["idle_minutes_threshold"], "idle_minutes_threshold")?,
    };
    let idle_minutes = number(&case["idle_minutes"], "idle_minutes")?;
    let setup = ShaperSetup {
        settings: Arc::new(settings),
        context_budget: Tokens(max_tokens),
        trigger_override: None,
        fixed: Tokens(0),
        spent_micro_usd: 0,
        reference_prefix: "tool-results".into(),
        idle_ms: idle_minutes.saturating_mul(60_000),
        cold: None,
        exempt_tools: Arc::new([]),
        own_caps: Arc::new([]),
        grades: true,
        clears: true,
        keeps_frames: true,
        counts_cleared: true,
        clears_uncapped: true,
        sharing: Sharing::default(),
        summary_pause: 0,
        pauses_where_it_fits: true,
        asked: None,
        // Cases count four characters as a token.
        counting: Counting::Chars,
    };
    let summariser = match config["summariser"].as_str().or(case["summariser"].as_str()) {
        Some("fails") => Summariser::Fails,
        Some("too_long") => Summariser::TooLong,
        _ => Summariser::Works,
    };
    Ok(ShaperCase {
        messages: read_messages(&list)?,
        tokens: Tokens(number(&case["tokens_before"], "tokens_before")?),
        setup,
        summariser,
    })
}

/// Puts the text in the place of each `{"$repeat": [text, n]}`.
fn expand(value: &mut Value) {
    let repeated = value.get("$repeat").and_then(|it| {
        let n = usize::try_from(it[1].as_u64()?).ok()?;
        Some(it[0].as_str()?.repeat(n))
    });
    match value {
        _ if repeated.is_some() => *value = Value::from(repeated.unwrap_or_default()),
        Value::Array(items) => items.iter_mut().for_each(expand),
        Value::Object(fields) => fields.values_mut().for_each(expand),
        _ => {}
    }
}

fn write_message(message: &crate::message::Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    };
    let blocks = message.blocks.iter().map(|block| {
        let mut wire = Vec::new();
        block.push_wire(&mut wire);
        serde_json::from_slice::<Value>(&wire).unwrap_or_default()
    });
    json!({ "id": message.id, "role": role, "content": blocks.collect::<Vec<_>>() })
}
