//! The nine steps of each turn, for people to read.
//!
//! Shows what the records say and checks nothing: that is the audit's.

use std::fmt::{self, Write};

use super::{
    entry::{ConversationLine, Record, StepDetail, What},
    read::{Entry, read_line},
};
use crate::{block::BlockKind, run::Sender};

/// The nine sources of the context, in order.
const SOURCES: usize = 9;

/// Writes the records of a file as text, one line per fact. Lines that cannot be read are named.
pub fn render(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (i, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            continue;
        }
        // Writing to a string does not fail.
        let _written = match read_line(&text).map(|read| read.entry) {
            Ok(Entry::Harness(it)) => record(&it, &mut out),
            Ok(Entry::Conversation { line, .. }) => said(&line, &mut out),
            Ok(Entry::Other { kind, .. }) => writeln!(out, "line {}: {kind}", i + 1),
            Err(error) => writeln!(out, "line {}: {error}", i + 1),
        };
    }
    out
}

fn said(line: &ConversationLine, out: &mut String) -> fmt::Result {
    if let Some(boundary) = &line.boundary {
        let tokens = boundary.pre_tokens.0;
        return writeln!(out, "  compacted ({}) at {tokens} tokens", boundary.trigger);
    }
    for block in &line.message.blocks {
        match block.kind() {
            BlockKind::Text(text) => {
                let who = match line.message.role {
                    crate::message::Role::Assistant => "answer",
                    _ => "said",
                };
                writeln!(out, "  {who}: {}", short(text))?;
            }
            BlockKind::ToolUse { id, name, input } => {
                writeln!(out, "  tool use {id}: {name} {}", short(input))?;
            }
            BlockKind::ToolResult { id, text, is_error } => {
                let what = if *is_error { "error" } else { "result" };
                writeln!(out, "  {what} of {id}: {}", short(text))?;
            }
            BlockKind::StopRequest => writeln!(out, "  stop requested")?,
            BlockKind::Error(text) => writeln!(out, "  error: {}", short(text))?,
            _ => {}
        }
    }
    Ok(())
}

fn record(record: &Record, out: &mut String) -> fmt::Result {
    match &record.what {
        What::RunStart { origin, sender, .. } => {
            let run = record.run.as_ref().map_or("?", |run| run.as_str());
            write!(out, "run {run} from {origin}")?;
            if let Some(Sender { id, is_owner }) = sender {
                let who = if *is_owner { "the owner" } else { "the guest" };
                write!(out, ", asked for by {who} {id}")?;
            }
            writeln!(out)
        }
        What::TurnStep { number, step, detail } => {
            if *number == 1 {
                writeln!(out, "turn {}", record.turn)?;
            }
            write!(out, "  {number} {}: ", step.name())?;
            step_detail(detail, out)
        }
        What::ShapersPassed { tokens, stages } => {
            for it in stages {
                let (stage, why) = (&it.stage, &it.why);
                writeln!(out, "    {stage} passed over: {n} -> {n} tokens, {why}", n = tokens.0)?;
            }
            Ok(())
        }
        What::Shaper { stage, fired, tokens_before, tokens_after, why, attempt, .. } => {
            let did = if *fired { "fired" } else { "passed over" };
            write!(out, "    {stage} {did}: {} -> {} tokens", tokens_before.0, tokens_after.0)?;
            if let Some(attempt) = attempt {
                write!(out, " (model attempt {attempt})")?;
            }
            writeln!(out, ", {why}")
        }
        What::ModelAttempt {
            attempt,
            purpose,
            cause,
            model,
            outcome,
            usage,
            duration_ms,
            parked_ms,
            ..
        } => {
            write!(out, "    attempt {attempt} ({purpose})")?;
            if let Some(model) = model {
                write!(out, " of {model}")?;
            }
            if let Some(cause) = cause {
                write!(out, " because of {cause}")?;
            }
            let (input, output) = (usage.context().0, usage.output_tokens);
            write!(out, ": {outcome}, {input} tokens in, {output} out, {duration_ms} ms")?;
            if let Some(ms) = parked_ms {
                write!(out, ", parked for {ms} ms")?;
            }
            writeln!(out)
        }
        What::Permission { call, tool, mode, decision, .. } => {
            let verdict = if decision.allowed { "allowed" } else { "denied" };
            write!(out, "    {call} {tool} {verdict} at {:?}", decision.stage)?;
            if let Some(rule) = &decision.rule {
                write!(out, " by {:?}:{}", rule.scope, rule.text)?;
            }
            writeln!(out, " in {mode:?}: {}", short(&decision.reason))
        }
        What::Hook { event, handler, ended, effect, .. } => {
            writeln!(out, "    hook {event:?} {}: {ended}, {effect}", short(handler))
        }
        What::Approval { call, allowed, reason } => {
            let verdict = if *allowed { "yes" } else { "no" };
            writeln!(out, "    {call} answered {verdict}: {}", short(reason))
        }
        What::ToolIntent { call, tool, .. } => writeln!(out, "    {call} {tool} starts"),
        What::ToolEnd { call, error, duration_ms, .. } => match error {
            Some(error) => writeln!(out, "    {call} failed ({error:?}) after {duration_ms} ms"),
            None => writeln!(out, "    {call} ended after {duration_ms} ms"),
        },
        What::TurnEnd { reason, at_step, .. } => match at_step {
            Some(step) => writeln!(out, "  ended at {}: {reason}", step.name()),
            None => writeln!(out, "  ended: {reason}"),
        },
        What::RunEnd { reason, turns, usage, .. } => {
            writeln!(out, "end: {reason} after {turns} turns, {} tokens", usage.total().0)
        }
        What::Alert { what } => writeln!(out, "  alert: {}", short(what)),
        What::Repair { offset, length, .. } => {
            writeln!(out, "  {length} bytes at {offset} are no line")
        }
        What::Path { path, .. } => writeln!(out, "    path {}", short(&path.real)),
    }
}

fn step_detail(detail: &StepDetail, out: &mut String) -> fmt::Result {
    match detail {
        StepDetail::Settings { sources, warnings, .. } => {
            writeln!(out, "from {}, {warnings} warnings", list(sources))
        }
        StepDetail::State { messages, session_retries, .. } => {
            writeln!(out, "{messages} messages, {session_retries} retries so far")
        }
        StepDetail::Context { sizes, tokens, .. } => {
            let sizes: [String; SOURCES] = sizes.map(|size| size.to_string());
            writeln!(out, "sources of {} characters, {} tokens", sizes.join(" "), tokens.0)
        }
        StepDetail::Shaping { tokens, fired, remaining } => {
            writeln!(out, "{} tokens, {fired} shapers fired, {} left", tokens.0, remaining.0)
        }
        StepDetail::Model { attempts, outcome } => {
            writeln!(out, "{outcome} in {attempts} attempts")
        }
        StepDetail::Dispatch { calls, refused } => {
            writeln!(out, "{calls} calls, {refused} refused")
        }
        StepDetail::Gate { allowed, denied } => writeln!(out, "{allowed} allowed, {denied} denied"),
        StepDetail::Execution { succeeded, failed } => {
            writeln!(out, "{succeeded} succeeded, {failed} failed")
        }
        StepDetail::Stop { done: true, reason } => {
            writeln!(out, "done, {}", reason.as_deref().unwrap_or("no reason"))
        }
        StepDetail::Stop { done: false, .. } => writeln!(out, "go on"),
        StepDetail::Nothing { nothing } => writeln!(out, "nothing to do, {nothing}"),
    }
}

fn list(sources: &[String]) -> String {
    if sources.is_empty() { "defaults".into() } else { sources.join(", ") }
}

/// The first line of a text, cut to what fits on one.
fn short(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    match first.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &first[..at]),
        None => first.to_owned(),
    }
}
