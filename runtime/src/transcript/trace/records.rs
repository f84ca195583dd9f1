//! The lines of what the harness recorded.

use std::fmt::{self, Display, Write};

use super::lines::{TraceLines, short};
use crate::{
    ids::{ToolName, ToolUseId},
    permission::PermissionMode,
    run::Sender,
    step::Step,
    step7_permission_gate::Decision,
    tool::{ToolErrorKind, Truncation},
    transcript::entry::{
        BackgroundRecord, ModeChange, PassedStage, Record, RecordKind, ShellRecord, ShownPart,
        SkippedBytes, StepDetail, Stored, ViewChange, WithdrawnPrompt,
    },
};

/// Writes what a record of the harness says.
pub(super) fn write(record: &Record, out: &mut TraceLines) -> fmt::Result {
    match &record.what {
        RecordKind::RunStart { origin, sender, .. } => {
            let run = record.run.as_ref().map_or("?", |run| run.as_str());
            let sender = after(", asked for by ", sender.as_ref().map(sender_text));
            out.end(format_args!("run {run} from {origin}{sender}"))
        }
        RecordKind::TurnStep { number, step, detail } => {
            if *number == 1 {
                out.end(format_args!("turn {}", record.turn))?;
            }
            write!(out, "  {number} {}: ", step.name())?;
            step_detail(detail, out)
        }
        RecordKind::SourcesSeen { .. } => {
            out.end(format_args!("    the sources are not as they were"))
        }
        RecordKind::ContextAppended { part: ShownPart { part, chars, .. } } => {
            out.end(format_args!("    appended {}: {chars} characters", short(part)))
        }
        RecordKind::View(_) | RecordKind::ShapersPassed { .. } | RecordKind::Shaper { .. } => {
            shaping(&record.what, out)
        }
        RecordKind::ModelAttempt { .. } => model_attempt(&record.what, out),
        RecordKind::Permission { call, tool, mode, decision, .. } => {
            permission(call, tool, *mode, decision, out)
        }
        RecordKind::Hook { event, handler, matcher, file, ended, effect, message, .. } => {
            let matcher = after(" for ", matcher.as_deref().map(short));
            let file = after(" of ", file.as_deref().map(short));
            let message = after("; says: ", message.as_ref().map(stored));
            let handler = short(handler);
            out.end(format_args!(
                "    hook {event:?}{matcher}{file} {handler}: {ended}, {effect}{message}"
            ))
        }
        RecordKind::PromptWithdrawn(WithdrawnPrompt { prompt }) => {
            out.end(format_args!("    the prompt {prompt} was taken back"))
        }
        RecordKind::RunResumed { .. } => {
            out.end(format_args!("  the run goes on in another process"))
        }
        RecordKind::Question { id, call, tool, reason, .. } => {
            out.end(format_args!("    {call} {tool} is asked about ({id}): {}", short(reason)))
        }
        RecordKind::Passed { call, by, reason } => {
            let by = by.code();
            out.end(format_args!(
                "    {call} is left to the next handler by {by}: {}",
                short(reason)
            ))
        }
        RecordKind::Approval { call, allowed, reason, by, .. } => {
            let verdict = if *allowed { "yes" } else { "no" };
            let by = after(" by ", by.map(|it| it.code()));
            out.end(format_args!("    {call} answered {verdict}{by}: {}", short(reason)))
        }
        RecordKind::Mode(ModeChange { mode, call }) => {
            let by = after(" by ", call.as_ref());
            out.end(format_args!("    the mode is now {mode:?}{by}"))
        }
        RecordKind::ToolIntent { call, tool, .. } => {
            out.end(format_args!("    {call} {tool} starts"))
        }
        RecordKind::ToolEnd { call, error, duration_ms, truncation, .. } => {
            tool_end(call, *error, *duration_ms, truncation.as_ref(), out)
        }
        RecordKind::Shell(ShellRecord { shell, command, state, exit_code, .. }) => {
            let (code, command) = (after(" ", *exit_code), short(command));
            out.end(format_args!("    {shell} in the background: {state}{code}, {command}"))
        }
        RecordKind::BackgroundAgent(BackgroundRecord { agent, description, state, .. }) => {
            let description = short(description);
            out.end(format_args!("    agent {agent} in the background: {state}, {description}"))
        }
        RecordKind::AgentMessage(_) => out.end(format_args!("    a message for it was received")),
        RecordKind::TurnEnd { reason, at_step, .. } => {
            let step = after(" at ", at_step.map(Step::name));
            out.end(format_args!("  ended{step}: {reason}"))
        }
        RecordKind::RunEnd { reason, turns, usage, .. } => {
            out.end(format_args!("end: {reason} after {turns} turns, {} tokens", usage.total().0))
        }
        RecordKind::Alert { what } => out.end(format_args!("  alert: {}", short(what))),
        RecordKind::Repair(SkippedBytes { offset, length, .. }) => {
            out.end(format_args!("  {length} bytes at {offset} are not a line"))
        }
        RecordKind::Links(_) => out.end(format_args!("    its paths lead through links")),
        RecordKind::Path { path, .. } => out.end(format_args!("    path {}", short(&path.real))),
    }
}

/// What was taken out of what the model is shown, and by which stage.
fn shaping(what: &RecordKind, out: &mut TraceLines) -> fmt::Result {
    match what {
        RecordKind::View(ViewChange { dropped, cut, without_media, .. }) => {
            let (n_parts, n_texts, n_media) = (dropped.len(), cut.len(), without_media.len());
            out.end(format_args!(
                "    later turns are shown less: without {n_parts} parts, {n_texts} texts cut, \
                 {n_media} messages without pictures"
            ))
        }
        RecordKind::ShapersPassed { tokens, stages } => {
            stages.iter().try_for_each(|PassedStage { stage, why, .. }| {
                let n = tokens.0;
                out.end(format_args!("    {stage} passed over: {n} -> {n} tokens, {why}"))
            })
        }
        RecordKind::Shaper { stage, fired, tokens_before, tokens_after, why, attempt, .. } => {
            let did = if *fired { "fired" } else { "passed over" };
            let attempt = attempt.map(|it| format!(" (model attempt {it})")).unwrap_or_default();
            let (from, to) = (tokens_before.0, tokens_after.0);
            out.end(format_args!("    {stage} {did}: {from} -> {to} tokens{attempt}, {why}"))
        }
        _ => Ok(()),
    }
}

/// What one request to a model came to, and what it cost.
fn model_attempt(what: &RecordKind, out: &mut TraceLines) -> fmt::Result {
    let RecordKind::ModelAttempt {
        attempt,
        purpose,
        cause,
        model,
        outcome,
        usage,
        duration_ms,
        parked_ms,
        ..
    } = what
    else {
        return Ok(());
    };
    let model = after(" of ", model.as_ref());
    let cause = after(" because of ", cause.as_ref());
    let (input, output) = (usage.context().0, usage.output_tokens);
    write!(out, "    attempt {attempt} ({purpose}){model}{cause}: {outcome}, ")?;
    let parked = parked_ms.map(|ms| format!(", parked for {ms} ms")).unwrap_or_default();
    out.end(format_args!("{input} tokens in, {output} out, {duration_ms} ms{parked}"))
}

/// What the gate decided about a tool call.
fn permission(
    call: &ToolUseId,
    tool: &ToolName,
    mode: PermissionMode,
    decision: &Decision,
    out: &mut TraceLines,
) -> fmt::Result {
    let verdict = if decision.allowed { "allowed" } else { "denied" };
    let rule = decision.rule.as_ref().map(|it| format!("{:?}:{}", it.scope, it.text));
    let (stage, rule) = (decision.stage, after(" by ", rule));
    write!(out, "    {call} {tool} {verdict} at {stage:?}{rule}")?;
    out.end(format_args!(" in {mode:?}: {}", short(&decision.reason)))
}

/// How a tool call ended.
fn tool_end(
    call: &ToolUseId,
    error: Option<ToolErrorKind>,
    duration_ms: u64,
    truncation: Option<&Truncation>,
    out: &mut TraceLines,
) -> fmt::Result {
    match error {
        Some(error) => write!(out, "    {call} failed ({error:?}) after {duration_ms} ms")?,
        None => write!(out, "    {call} ended after {duration_ms} ms")?,
    }
    if let Some(Truncation { original_chars, kept_chars, stored_at }) = truncation {
        write!(out, ", shown are {kept_chars} of {original_chars} characters")?;
        if let Some(path) = stored_at {
            write!(out, ", all are in {path}")?;
        }
    }
    out.end(format_args!(""))
}

fn step_detail(detail: &StepDetail, out: &mut TraceLines) -> fmt::Result {
    match detail {
        StepDetail::Settings { sources, warnings, tools, .. } => {
            let joined = if tools.is_some() { ", tools of MCP servers joined" } else { "" };
            out.end(format_args!("from {}, {warnings} warnings{joined}", list(sources)))
        }
        StepDetail::State { messages, session_retries, .. } => {
            out.end(format_args!("{messages} messages, {session_retries} retries so far"))
        }
        StepDetail::Context { sizes, tokens, .. } => {
            let sizes = sizes.map(|size| size.to_string());
            out.end(format_args!("sources of {} characters, {} tokens", sizes.join(" "), tokens.0))
        }
        StepDetail::Shaping { tokens, fired, remaining } => out
            .end(format_args!("{} tokens, {fired} shapers fired, {} left", tokens.0, remaining.0)),
        StepDetail::Model { attempts, outcome, .. } => {
            out.end(format_args!("{outcome} in {attempts} attempts"))
        }
        StepDetail::Dispatch { calls, refused } => {
            out.end(format_args!("{calls} calls, {refused} refused"))
        }
        StepDetail::Gate { allowed, denied } => {
            out.end(format_args!("{allowed} allowed, {denied} denied"))
        }
        StepDetail::Execution { succeeded, failed } => {
            out.end(format_args!("{succeeded} succeeded, {failed} failed"))
        }
        StepDetail::Stop { done: true, reason } => {
            out.end(format_args!("done, {}", reason.as_deref().unwrap_or("no reason")))
        }
        StepDetail::Stop { done: false, .. } => out.end(format_args!("go on")),
        StepDetail::Nothing { nothing } => out.end(format_args!("nothing to do, {nothing}")),
    }
}

fn list(sources: &[String]) -> String {
    if sources.is_empty() { "defaults".into() } else { sources.join(", ") }
}

/// What is known, after these words; nothing where it is not.
fn after(words: &str, known: Option<impl Display>) -> String {
    known.map(|it| format!("{words}{it}")).unwrap_or_default()
}

fn sender_text(Sender { id, is_owner }: &Sender) -> String {
    format!("{} {id}", if *is_owner { "the owner" } else { "the guest" })
}

/// A text of a record, or where it is.
fn stored(text: &Stored) -> String {
    match text {
        Stored::Text(text) => short(text),
        Stored::At(digest) | Stored::Again(digest) => format!("(stored as {digest})"),
    }
}
