//! The nine steps of each turn, for people to read.
//!
//! Shows what the records say and checks nothing: that is the audit's.

use std::fmt::{self, Write};

use super::{
    entry::{ConversationLine, Record, RecordKind, SkippedBytes, StepDetail, Stored},
    read::{Entry, read_line},
};
use crate::{
    block::BlockKind,
    ids::ToolUseId,
    output::terminal::clean_line,
    run::Sender,
    tool::{ToolErrorKind, Truncation},
    transcript::entry::ShownPart,
};

/// The nine sources of the context, in order.
const SOURCES: usize = 9;

/// Writes the records of a file as text, one line per fact. Lines that cannot be read are named.
/// `None` when not one line is a message or a record of the harness.
pub fn render(bytes: &[u8]) -> Option<String> {
    let mut out = TraceLines::default();
    let mut is_transcript = false;
    for (i, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            continue;
        }
        let entry = read_line(&text).map(|read| read.entry);
        is_transcript |= matches!(entry, Ok(Entry::Harness(_) | Entry::Conversation { .. }));
        // Writing to a string does not fail.
        let _written = match entry {
            Ok(Entry::Harness(it)) => record(&it, &mut out),
            Ok(Entry::Conversation { line, .. }) => message_lines(&line, &mut out),
            Ok(Entry::Other { kind, .. }) => out.end(format_args!("line {}: {kind}", i + 1)),
            Err(error) => out.end(format_args!("line {}: {error}", i + 1)),
        };
    }
    is_transcript.then_some(out.all)
}

/// Lines for people. What a record holds cannot begin another line, nor move the cursor: a forged
/// name would read as a step that never was.
#[derive(Default)]
struct TraceLines {
    all: String,
    /// The line under way.
    line: String,
}

impl TraceLines {
    /// Ends the line with these words.
    fn end(&mut self, words: fmt::Arguments<'_>) -> fmt::Result {
        self.line.write_fmt(words)?;
        self.all.push_str(&clean_line(&self.line));
        self.all.push('\n');
        self.line.clear();
        Ok(())
    }
}

impl Write for TraceLines {
    fn write_str(&mut self, words: &str) -> fmt::Result {
        self.line.push_str(words);
        Ok(())
    }
}

fn message_lines(line: &ConversationLine, out: &mut TraceLines) -> fmt::Result {
    if let Some(boundary) = &line.boundary {
        let tokens = boundary.pre_tokens.0;
        return out.end(format_args!("  compacted ({}) at {tokens} tokens", boundary.trigger));
    }
    for block in &line.message.blocks {
        match block.kind() {
            BlockKind::Text(text) => {
                let who = match line.message.role {
                    crate::message::Role::Assistant => "answer",
                    _ => "said",
                };
                out.end(format_args!("  {who}: {}", short(text)))?;
            }
            BlockKind::ToolUse { id, name, input } => {
                out.end(format_args!("  tool use {id}: {name} {}", short(input)))?;
            }
            BlockKind::ToolResult { id, text, is_error } => {
                let what = if *is_error { "error" } else { "result" };
                out.end(format_args!("  {what} of {id}: {}", short(text)))?;
            }
            BlockKind::StopRequest => out.end(format_args!("  stop requested"))?,
            BlockKind::Error(text) => out.end(format_args!("  error: {}", short(text)))?,
            _ => {}
        }
    }
    Ok(())
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

fn record(record: &Record, out: &mut TraceLines) -> fmt::Result {
    match &record.what {
        RecordKind::RunStart { origin, sender, .. } => {
            let run = record.run.as_ref().map_or("?", |run| run.as_str());
            write!(out, "run {run} from {origin}")?;
            if let Some(Sender { id, is_owner }) = sender {
                let who = if *is_owner { "the owner" } else { "the guest" };
                write!(out, ", asked for by {who} {id}")?;
            }
            out.end(format_args!(""))
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
        RecordKind::ShapersPassed { tokens, stages } => {
            for it in stages {
                let (stage, why) = (&it.stage, &it.why);
                out.end(format_args!(
                    "    {stage} passed over: {n} -> {n} tokens, {why}",
                    n = tokens.0
                ))?;
            }
            Ok(())
        }
        RecordKind::Shaper { stage, fired, tokens_before, tokens_after, why, attempt, .. } => {
            let did = if *fired { "fired" } else { "passed over" };
            write!(out, "    {stage} {did}: {} -> {} tokens", tokens_before.0, tokens_after.0)?;
            if let Some(attempt) = attempt {
                write!(out, " (model attempt {attempt})")?;
            }
            out.end(format_args!(", {why}"))
        }
        RecordKind::ModelAttempt {
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
            out.end(format_args!(""))
        }
        RecordKind::Permission { call, tool, mode, decision, .. } => {
            let verdict = if decision.allowed { "allowed" } else { "denied" };
            write!(out, "    {call} {tool} {verdict} at {:?}", decision.stage)?;
            if let Some(rule) = &decision.rule {
                write!(out, " by {:?}:{}", rule.scope, rule.text)?;
            }
            out.end(format_args!(" in {mode:?}: {}", short(&decision.reason)))
        }
        RecordKind::Hook { event, handler, ended, effect, message, .. } => {
            write!(out, "    hook {event:?} {}: {ended}, {effect}", short(handler))?;
            match message {
                Some(Stored::Text(text)) => out.end(format_args!("; says: {}", short(text))),
                Some(Stored::At(digest) | Stored::Again(digest)) => {
                    out.end(format_args!("; says: (stored as {digest})"))
                }
                None => out.end(format_args!("")),
            }
        }
        RecordKind::PromptWithdrawn { prompt } => {
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
            let by = by.map(|it| format!(" by {}", it.code())).unwrap_or_default();
            out.end(format_args!("    {call} answered {verdict}{by}: {}", short(reason)))
        }
        RecordKind::Mode { mode } => out.end(format_args!("    the mode is now {mode:?}")),
        RecordKind::ToolIntent { call, tool, .. } => {
            out.end(format_args!("    {call} {tool} starts"))
        }
        RecordKind::ToolEnd { call, error, duration_ms, truncation, .. } => {
            tool_end(call, *error, *duration_ms, truncation.as_ref(), out)
        }
        RecordKind::Shell { shell, command, state, exit_code, .. } => {
            write!(out, "    {shell} in the background: {state}")?;
            if let Some(code) = exit_code {
                write!(out, " {code}")?;
            }
            out.end(format_args!(", {}", short(command)))
        }
        RecordKind::TurnEnd { reason, at_step, .. } => match at_step {
            Some(step) => out.end(format_args!("  ended at {}: {reason}", step.name())),
            None => out.end(format_args!("  ended: {reason}")),
        },
        RecordKind::RunEnd { reason, turns, usage, .. } => {
            out.end(format_args!("end: {reason} after {turns} turns, {} tokens", usage.total().0))
        }
        RecordKind::Alert { what } => out.end(format_args!("  alert: {}", short(what))),
        RecordKind::Repair(SkippedBytes { offset, length, .. }) => {
            out.end(format_args!("  {length} bytes at {offset} are no line"))
        }
        RecordKind::Links { .. } => out.end(format_args!("    its paths lead through links")),
        RecordKind::Path { path, .. } => out.end(format_args!("    path {}", short(&path.real))),
    }
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
            let sizes: [String; SOURCES] = sizes.map(|size| size.to_string());
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

/// The first line of a text, cut to what fits on one.
fn short(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    match first.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &first[..at]),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TRN-3
    #[test]
    fn record_cannot_forge_a_line_or_send_a_control_sequence() {
        // As JSON escapes, and raw where JSON allows that.
        let hostile = "x\\n  9 stop_check: done\\u001b[2J\\r\u{9b}1m\\u009b1m\u{202e}";
        let shown_line = format!(
            r#"{{"type":"assistant","uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"2025-01-01T00:02:00Z","isSidechain":false,"message":{{"role":"assistant","content":[{{"type":"tool_use","id":"{hostile}","name":"{hostile}","input":{{}}}}]}}}}"#
        );
        let shown = |text: &str| render(text.as_bytes()).unwrap();
        assert!(shown(&shown_line).starts_with("  tool use x"), "{}", shown(&shown_line));
        for line in
            [shown_line.clone(), format!(r#"{{"type":"{hostile}"}}"#), format!("{{{hostile}")]
        {
            let text = shown(&format!("{shown_line}\n{line}"));
            assert_eq!(text.lines().count(), 2, "{text:?}");
            assert!(text.ends_with('\n') && !text.contains("\n  9"), "{text:?}");
            let is_shown = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
            assert!(text.chars().all(is_shown), "{text:?}");
        }
    }
}
