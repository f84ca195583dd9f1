//! What became of calls: whether they were let in, and how they ended.

use std::collections::BTreeMap;

use super::{super::texts::text_of, RecordedInputs, ReplayError, record};
use crate::{
    block::Block,
    hook::HookEvent,
    ids::ToolUseId,
    run::PromptBlock,
    step3_context_assembly::source8_tool_results::unexplained,
    step6_tool_dispatch::Admission,
    step8_tool_execution::post_tool_use_hooks::{event_after, with_context},
    tool::{ToolCall, ToolErrorKind, ToolNote, ToolOutcome},
    transcript::{
        entry::{LinksRecord, RecordKind, StepDetail},
        replay::window::conversation_line,
    },
    turn::{Turn, TurnInput},
};

/// Around the reason for which an input was refused.
const INVALID: (&str, &str) = ("<tool_use_error>InputValidationError: ", "</tool_use_error>");

impl<'a> RecordedInputs<'a> {
    /// Returns the dispatcher's answers. Calls that were let in left something at the gate; the others have their
    /// answers.
    pub(super) fn dispatched(&self, calls: &[ToolCall]) -> TurnInput {
        let mut admissions = self.admissions();
        let mut known: Vec<Option<Admission>> =
            calls.iter().map(|it| admissions.remove(&it.id)).collect();
        // The gate takes one call after another: what it passed over was refused.
        let reached = known.iter().rposition(|it| *it == Some(Admission::Admitted)).unwrap_or(0);
        for admission in &mut known[..reached] {
            admission.get_or_insert(Admission::TooMany);
        }
        // Where the turn ended before, only the number of refused calls is known; the last ones
        // are refused first.
        let n_known = known.iter().flatten().filter(|it| **it != Admission::Admitted).count();
        let mut n_left = self.n_refused(calls.len()).saturating_sub(n_known);
        for admission in known.iter_mut().rev().filter(|it| it.is_none()) {
            *admission = Some(match n_left {
                0 => Admission::Admitted,
                _ => Admission::TooMany,
            });
            n_left = n_left.saturating_sub(1);
        }
        TurnInput::Dispatched(known.into_iter().flatten().collect())
    }

    /// How many of the calls that were open the dispatch refused.
    fn n_refused(&self, n_open: usize) -> usize {
        let detail = self.lines[self.next..].iter().find_map(|it| match &record(it)?.what {
            RecordKind::TurnStep { detail: StepDetail::Dispatch { calls, refused }, .. } => {
                Some((*calls as usize, *refused as usize))
            }
            _ => None,
        });
        let (n_calls, n_refused) = detail.unwrap_or_default();
        n_refused.saturating_sub(n_calls.saturating_sub(n_open))
    }

    /// Whether calls were let in, as far as lines show.
    fn admissions(&self) -> BTreeMap<&'a ToolUseId, Admission> {
        let mut admissions = BTreeMap::new();
        for (i, line) in self.lines.iter().enumerate().skip(self.next) {
            let (call, admission) = match record(line).map(|it| &it.what) {
                Some(
                    RecordKind::Permission { call, .. }
                    | RecordKind::Path { call, .. }
                    | RecordKind::Links(LinksRecord { call, .. })
                    | RecordKind::Question { call, .. }
                    | RecordKind::Approval { call, .. }
                    | RecordKind::Hook { event: HookEvent::PreToolUse, call: Some(call), .. },
                ) => (call, Admission::Admitted),
                Some(RecordKind::ToolEnd { call, error: Some(error), .. }) => match error {
                    ToolErrorKind::InvalidInput => {
                        let text = self.lines.get(i + 1).and_then(|it| result_text(it));
                        let text = text.unwrap_or_default();
                        let why =
                            text.strip_prefix(INVALID.0).and_then(|it| it.strip_suffix(INVALID.1));
                        (call, Admission::InvalidInput(why.unwrap_or(text).to_owned()))
                    }
                    _ => (call, Admission::TooMany),
                },
                _ => continue,
            };
            // The first line about a call counts.
            admissions.entry(call).or_insert(admission);
        }
        admissions
    }

    /// Returns whether the next line is about the end of this call.
    pub(in crate::transcript::replay) fn is_about(&self, of: &ToolUseId) -> bool {
        match self.ahead(self.n_before_hooks()).and_then(record).map(|it| &it.what) {
            Some(RecordKind::ToolEnd { call, .. }) => call == of,
            Some(RecordKind::Hook {
                event: HookEvent::PostToolUse | HookEvent::PostToolUseFailure,
                call,
                ..
            }) => call.as_ref() == Some(of),
            _ => false,
        }
    }

    /// Returns how a call ended; `None` when the turn ended before it.
    pub(super) fn finished(
        &self,
        asked: &ToolCall,
        turn: &Turn,
    ) -> Result<Option<TurnInput>, ReplayError> {
        let lines = &self.lines[self.next..];
        let found = lines.iter().enumerate().find_map(|(i, line)| match &record(line)?.what {
            RecordKind::ToolEnd {
                call, error, exit_code, duration_ms, notes, truncation, ..
            } if *call == asked.id => {
                Some((i, *error, *exit_code, *duration_ms, notes, truncation.clone()))
            }
            _ => None,
        });
        let Some((i, error, exit_code, duration_ms, notes, truncation)) = found else {
            return Ok(None);
        };
        let Some(text) = lines.get(i + 1).and_then(|it| result_text(it)) else { return Ok(None) };
        let number = lines[i].number;
        let notes = notes.as_ref().map(|it| text_of(it, number, self.stored)).transpose()?;
        let notes: Vec<ToolNote> =
            notes.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or_default();
        let event = event_after(error);
        let added = self.added(event, asked, turn)?;
        let fields = lines.get(i + 1).and_then(|it| conversation_line(it)?.tool_result.as_ref());
        let answered =
            lines.get(i + 1).and_then(|it| conversation_line(it)?.message.blocks.first());
        let media = answered.map(Block::media_in_result).unwrap_or_default();
        let media = media.into_iter().map(PromptBlock::recorded).collect();
        let text = text.strip_suffix(added.as_str()).unwrap_or(text);
        let outcome = ToolOutcome {
            text: unexplained(text).unwrap_or_else(|| text.to_owned()),
            structured: fields.and_then(|it| it.structured.as_deref()).map(str::to_owned),
            error,
            exit_code,
            duration_ms,
            truncation,
            media,
            notes,
        };
        Ok(Some(TurnInput::ToolFinished { call: asked.id.clone(), outcome: Box::new(outcome) }))
    }

    /// What hooks added to the result of a call.
    fn added(&self, event: HookEvent, call: &ToolCall, turn: &Turn) -> Result<String, ReplayError> {
        let settings = turn.settings();
        let handlers = turn.matching_hooks(event, Some(call.name.as_str()));
        let mut answers = Vec::new();
        let mut handlers = handlers.into_iter();
        for line in &self.lines[self.next..] {
            if let Some(output) = self.hook(line, event, Some(&call.id))?
                && let Some(handler) = handlers.next()
            {
                let fail_closed = settings.hooks_fail_closed;
                answers.push(handler.answer(event, &output, fail_closed, turn.revision()));
            }
        }
        Ok(with_context("", event, &turn.join(event, answers).0, turn.revision()))
    }
}

fn result_text<'a>(line: &super::SealedLine<'a>) -> Option<&'a str> {
    let block = conversation_line(line)?.message.blocks.first().and_then(Block::as_tool_result);
    block.map(|(_, text, _)| text)
}
