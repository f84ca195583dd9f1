//! Shortens a record that is too long for a line.
//!
//! What a record decides (names, digests, counts, verdicts) is short; what can be long is words and
//! paths. They are cut to the same length each until the record fits, and a cut is visible.

use std::sync::Arc;

use super::{MAX_RECORD, harness};
use crate::transcript::entry::{
    BackgroundRecord, LinksRecord, Record, RecordKind, ShellRecord, StepDetail, Stored,
};

/// Marks where a text was cut.
const MARK: char = '…';

/// Shortens the free texts of the record so that it takes at most `limit` bytes, if that can be done by cutting free
/// texts. `len` is what it takes now.
pub(super) fn shortened(record: &Record, len: usize, limit: usize) -> Record {
    let mut cut = record.clone();
    let mut len = len;
    let mut cap = MAX_RECORD;
    let mut bytes = Vec::new();
    while limit < len && 8 < cap {
        cap /= 2;
        for text in texts(&mut cut.what) {
            shorten(text, cap);
        }
        for text in stored_texts(&mut cut.what) {
            let mut short = text.to_string();
            shorten(&mut short, cap);
            *text = short.into();
        }
        // Half the list goes with half the length: many short entries are long, too.
        for list in lists(&mut cut.what) {
            list.truncate(cap / 32 + 1);
            list.iter_mut().for_each(|text| shorten(text, cap));
        }
        bytes.clear();
        harness(&cut, &mut bytes);
        len = bytes.len();
    }
    cut
}

fn shorten(text: &mut String, max_chars: usize) {
    if let Some((at, _)) = text.char_indices().nth(max_chars) {
        text.truncate(at);
        text.push(MARK);
    }
}

/// Texts that would lie next to the transcript if they were longer.
fn stored_texts(what: &mut RecordKind) -> Vec<&mut Arc<str>> {
    let stored: Vec<&mut Stored> = match what {
        RecordKind::RunStart { setup: text, .. }
        | RecordKind::RunResumed { setup: text, .. }
        | RecordKind::TurnStep { detail: StepDetail::Settings { layers: text, .. }, .. }
        | RecordKind::TurnStep { detail: StepDetail::Context { texts: text, .. }, .. }
        | RecordKind::SourcesSeen { seen: text }
        | RecordKind::Links(LinksRecord { seen: text, .. }) => vec![text],
        RecordKind::Hook { message, stdout, stderr, .. } => {
            message.iter_mut().chain([stdout, stderr]).collect()
        }
        RecordKind::Permission { input: text, .. }
        | RecordKind::Question { input: text, .. }
        | RecordKind::ToolEnd { notes: text, .. } => text.iter_mut().collect(),
        _ => Vec::new(),
    };
    let inline = |stored| match stored {
        &mut Stored::Text(ref mut text) => Some(text),
        Stored::At(_) | Stored::Again(_) => None,
    };
    stored.into_iter().filter_map(inline).collect()
}

fn texts(what: &mut RecordKind) -> Vec<&mut String> {
    match what {
        RecordKind::RunStart { origin, .. } => vec![origin],
        RecordKind::TurnStep { detail, .. } => match detail {
            StepDetail::Model { outcome, .. } => vec![outcome],
            StepDetail::Stop { reason, .. } => reason.iter_mut().collect(),
            StepDetail::Nothing { nothing } => vec![nothing.to_mut()],
            _ => Vec::new(),
        },
        RecordKind::Shaper { why, cause, .. } => cause.iter_mut().chain([why]).collect(),
        RecordKind::ModelAttempt { cause, provider, model, outcome, message, .. } => {
            let named = cause.iter_mut().chain(provider).chain(model);
            named.chain(message).chain([outcome]).collect()
        }
        RecordKind::Path { path, .. } => vec![&mut path.given, &mut path.lexical, &mut path.real],
        RecordKind::Hook { handler, matcher, file, effect, .. } => {
            file.iter_mut().chain(matcher).chain([handler, effect]).collect()
        }
        RecordKind::Permission { decision, .. } => {
            let rule = decision.rule.iter_mut().map(|rule| &mut rule.text);
            rule.chain([&mut decision.reason]).collect()
        }
        RecordKind::Question { reason, .. }
        | RecordKind::Passed { reason, .. }
        | RecordKind::TurnEnd { reason, .. } => vec![reason],
        // Its input is stored next to the transcript where it is long, and its rules are short.
        RecordKind::Approval { reason, surface, .. } => {
            surface.iter_mut().chain([reason]).collect()
        }
        RecordKind::ToolEnd { truncation, .. } => {
            truncation.iter_mut().filter_map(|it| it.stored_at.as_mut()).collect()
        }
        RecordKind::RunEnd { reason, .. } => vec![reason],
        RecordKind::Alert { what } => vec![what],
        RecordKind::Shell(ShellRecord { command, .. }) => vec![command],
        RecordKind::BackgroundAgent(BackgroundRecord { description, .. }) => vec![description],
        // A text that does not fit lies next to the transcript.
        RecordKind::AgentMessage(_) => Vec::new(),
        // Their texts are stored ones, if any.
        RecordKind::RunResumed { .. } | RecordKind::SourcesSeen { .. } | RecordKind::Links(_) => {
            Vec::new()
        }
        // Names of parts are bounded where they are made.
        RecordKind::ContextAppended { .. } | RecordKind::View(_) => Vec::new(),
        // The words about passed stages are fixed and short.
        RecordKind::ShapersPassed { .. }
        | RecordKind::ToolIntent { .. }
        | RecordKind::Mode(_)
        | RecordKind::PromptWithdrawn { .. }
        | RecordKind::Repair { .. } => Vec::new(),
    }
}

fn lists(what: &mut RecordKind) -> Vec<&mut Vec<String>> {
    match what {
        RecordKind::TurnStep { detail: StepDetail::Settings { sources, refused, .. }, .. } => {
            vec![sources, refused]
        }
        RecordKind::Path { path, .. } => vec![&mut path.passed],
        RecordKind::Question { suggestions, .. } => vec![suggestions],
        _ => Vec::new(),
    }
}
