//! Step 8 of a turn: the permitted calls run, and all are answered in the order of the answer.

use std::sync::Arc;

use super::{Effect, Then, Turn, count};
use crate::{
    event::Event,
    hook::{Firing, HookVerdict},
    ids::ToolUseId,
    message::{Message, MessageKind},
    ports::agents::ends_shown,
    run::{
        RunEnd,
        facts::{ESCAPES_MARKS, EXPLAINS_ESCAPES},
        no_progress::Repetition,
    },
    step::Step,
    step2_state_initialization::{CallStage, CallState, FiringReason},
    step3_context_assembly::source8_tool_results::{
        escape_and_explain, escape_harness_marks, escape_harness_tags,
    },
    step8_tool_execution::{
        post_tool_use_hooks::{all_of, event_after, with_context},
        schedule::{self, Schedule, Scheduled},
    },
    tool::{Access, Concurrency, ToolEffect, ToolErrorKind, ToolNote, ToolOutcome},
    transcript::entry::{RecordKind, SidechainHead, StepDetail, ToolResultFields},
};

impl Turn {
    pub(super) fn execute_tools(&mut self) {
        if self.state.calls.is_empty() {
            self.record_step(StepDetail::Nothing { nothing: "there is no call".into() });
            return self.next(Step::StopCheck);
        }
        // What will not run takes no part in the schedule: its answer is there already.
        let allowed: Vec<usize> = (0..self.state.calls.len())
            .filter(|it| matches!(self.state.calls[*it].stage, CallStage::Allowed(_)))
            .collect();
        let scheduled: Vec<Scheduled> = allowed.iter().map(|it| self.scheduled(*it)).collect();
        let groups = schedule::groups(&scheduled).into_iter();
        self.state.groups = groups.map(|it| allowed[it].to_vec()).collect();
        self.answer_ended();
    }

    fn scheduled(&self, index: usize) -> Scheduled {
        let state = &self.state.calls[index];
        let concurrency = state.spec.as_ref().map_or(Concurrency::Alone, |it| it.concurrency);
        Scheduled { tool: state.call.name.clone(), concurrency }
    }

    /// Records the intents of the next group; it starts when they are as safe as they must be.
    fn next_group(&mut self) {
        let Some(group) = self.state.groups.pop_front() else { return };
        for index in &group {
            let state = &self.state.calls[*index];
            let effect = state.spec.as_ref().map_or(ToolEffect::SideEffects, |it| it.effect);
            if effect != ToolEffect::ReadOnly {
                self.journal.sync();
            }
            let (call, tool) = (state.call.id.clone(), state.call.name.clone());
            let digest = match &state.stage {
                CallStage::Allowed(permit) => permit.digest(),
                _ => state.call.digest(),
            };
            let what = RecordKind::ToolIntent { call, tool, digest, effect };
            self.journal.record(self.now, what);
        }
        let scheduled: Vec<Scheduled> = group.iter().map(|it| self.scheduled(*it)).collect();
        let schedule = Schedule::new(&scheduled, self.settings().max_parallel_calls);
        self.state.group = Some((group, schedule));
        self.once_recorded(Then::StartGroup);
    }

    pub(super) fn start_group(&mut self) {
        let Some((_, schedule)) = &mut self.state.group else { return };
        let ready = schedule.start_next();
        self.start(ready);
    }

    /// Starts calls of the group, given by their places in it.
    fn start(&mut self, ready: Vec<usize>) {
        for place in ready {
            let Some(index) = self.state.group.as_ref().and_then(|it| it.0.get(place)) else {
                continue;
            };
            let state = &mut self.state.calls[*index];
            let stage = std::mem::replace(&mut state.stage, CallStage::Running);
            let (CallStage::Allowed(permit), Some(spec)) = (stage, state.spec.clone()) else {
                continue;
            };
            let (call, must_check) = (state.call.clone(), state.is_rewritten);
            let (id, tool) = (call.id.clone(), call.name.clone());
            self.effects.push(Effect::Publish(Event::ToolStarted { call: id, tool }));
            self.effects.push(Effect::ExecuteTool { permit, call, spec, must_check });
        }
    }

    pub(super) fn tool_finished(&mut self, call: &ToolUseId, outcome: ToolOutcome) {
        let runs = |it: &CallState| it.call.id == *call && matches!(it.stage, CallStage::Running);
        let Some(index) = self.state.calls.iter().position(runs) else { return };
        self.state.calls[index].stage = CallStage::Ended(Box::new(outcome));
        let ready = self.state.group.as_mut().map(|(group, schedule)| {
            let place = group.iter().position(|it| *it == index);
            place.map(|it| schedule.finished(it)).unwrap_or_default()
        });
        self.start(ready.unwrap_or_default());
        self.answer_ended();
    }

    /// Answers the calls that have ended, as far as all before them are answered. What comes out
    /// does not depend on the order in which parallel calls end.
    pub(super) fn answer_ended(&mut self) {
        while !self.is_asking_after_call() {
            if self.fire_move() {
                break;
            }
            let index = self.state.n_answered;
            let Some(state) = self.state.calls.get_mut(index) else { return self.executed() };
            match std::mem::replace(&mut state.stage, CallStage::Answered) {
                CallStage::Refused(outcome) => self.answer_call(index, *outcome, None),
                CallStage::Ended(outcome) => self.call_ended(index, outcome),
                stage => {
                    state.stage = stage;
                    break;
                }
            }
        }
        // A group begins when everything before it is answered, so what its calls see (files that
        // were read, the working directory) is settled.
        let next = self.state.groups.front().and_then(|it| it.first());
        if next == Some(&self.state.n_answered) && !self.is_asking_after_call() {
            self.next_group();
        }
    }

    /// Fires when the call that was answered last has moved the working directory; false when it has not, or
    /// no hook waits for it.
    fn fire_move(&mut self) -> bool {
        if self.cwd() == &*self.state.cwd {
            return false;
        }
        let new: Arc<str> = self.cwd().into();
        let old = std::mem::replace(&mut self.state.cwd, Arc::clone(&new));
        self.watch_files(None);
        let firing = Firing::CwdChanged { old: (&*old).into(), new: (&*new).into() };
        self.fire(firing, None, FiringReason::CwdChanged)
    }

    /// Handles the end of the CwdChanged hooks.
    pub(super) fn cwd_answered(&mut self, verdict: HookVerdict) {
        if let Some(reason) = verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason));
        }
        self.answer_ended();
    }

    /// Has a model make the result of what sub-agents found or of a page, where that is to be done, before hooks see it.
    fn call_ended(&mut self, index: usize, outcome: Box<ToolOutcome>) {
        if self.synthesize(index, &outcome) {
            self.state.calls[index].stage = CallStage::Ended(outcome);
        } else {
            self.after_call(index, outcome);
        }
    }

    pub(super) fn after_call(&mut self, index: usize, outcome: Box<ToolOutcome>) {
        let call = self.state.calls[index].call.clone();
        let (id, tool) = (call.id.clone(), call.name.clone());
        let input = (&*call.input).into();
        let duration_ms = outcome.duration_ms;
        let firing = match outcome.error {
            None => Firing::PostToolUse {
                id,
                tool,
                input,
                response: outcome.structured.as_deref().unwrap_or(&outcome.text).into(),
                duration_ms,
            },
            Some(error) => Firing::PostToolUseFailure {
                id,
                tool,
                input,
                error: (&*outcome.text).into(),
                is_interrupt: error == ToolErrorKind::Interrupted,
                duration_ms,
            },
        };
        if self.fire(firing, Some(&call), FiringReason::AfterCall(index)) {
            self.state.calls[index].stage = CallStage::Ended(outcome);
        } else {
            self.answer_call(index, *outcome, None);
        }
    }

    /// Handles the end of the hooks after a call.
    pub(super) fn after_call_answered(&mut self, index: usize, verdict: HookVerdict) {
        let Some(state) = self.state.calls.get_mut(index) else { return };
        let CallStage::Ended(outcome) = std::mem::replace(&mut state.stage, CallStage::Answered)
        else {
            return;
        };
        self.answer_call(index, *outcome, Some(verdict));
        self.answer_ended();
    }

    /// Writes the result of a call.
    fn answer_call(&mut self, index: usize, outcome: ToolOutcome, verdict: Option<HookVerdict>) {
        self.state.n_answered = index + 1;
        let state = &self.state.calls[index];
        let (call, tool) = (state.call.clone(), state.call.name.clone());
        let polls = state.spec.as_ref().is_some_and(|it| it.polls);
        let access = state.spec.as_ref().map(|it| it.access.clone());
        // The session holds the memory as well, so taking anything in copies it.
        // Each command of a sub-agent starts where the agent works.
        let is_kept = |it: &&ToolNote| {
            self.facts.agent.is_none() || !matches!(it, ToolNote::CwdChanged { .. })
        };
        for note in outcome.notes.iter().filter(is_kept) {
            Arc::make_mut(&mut self.memory.tools).fold(note);
            if let ToolNote::FileSeen { path, .. } = note {
                let changes = matches!(access, Some(Access::WritePath { .. }));
                self.memory.touch(path, changes);
            }
        }
        let replaced = verdict.as_ref().and_then(|it| it.output_of(&tool));
        let replaced_it = replaced.is_some();
        let text = replaced.unwrap_or(&outcome.text);
        let shown_text = match self.facts.revision {
            ..ESCAPES_MARKS => escape_harness_tags(text),
            ESCAPES_MARKS..EXPLAINS_ESCAPES => escape_harness_marks(text),
            _ => escape_and_explain(text),
        };
        // Of a result that is hidden from the model nothing stays in its message.
        let structured = outcome.structured.as_ref().filter(|_| replaced.is_none()).cloned();
        let text = match &verdict {
            Some(verdict) => {
                let event = event_after(outcome.error);
                with_context(&shown_text, event, verdict, self.facts.revision)
            }
            None => shown_text.into_owned(),
        };
        if let Some(reason) = verdict.and_then(|it| it.stop) {
            self.end_with(RunEnd::HookStopped, Some(reason));
        }
        let sidechain = SidechainHead::of(&outcome.notes);
        let notes = (!outcome.notes.is_empty())
            .then(|| serde_json::to_string(&outcome.notes).ok())
            .flatten()
            .map(|it| self.journal.stored(&it));
        let what = RecordKind::ToolEnd {
            call: call.id.clone(),
            error: outcome.error,
            exit_code: outcome.exit_code,
            duration_ms: outcome.duration_ms,
            notes,
            truncation: outcome.truncation.clone(),
            sidechain,
        };
        self.journal.record(self.now, what);
        let is_error = outcome.error.is_some();
        // A result that a hook replaced is hidden as a whole.
        let media = if replaced_it { Vec::new() } else { outcome.media_blocks() };
        let block = crate::block::Block::media_result(&call.id, &text, &media, is_error);
        self.watch_call(&call, &block, &outcome, polls);
        let fields = ToolResultFields {
            structured: structured.map(Into::into),
            source: self.state.model.answer_entry.clone().unwrap_or_else(|| "".into()),
        };
        let message = self.journal.result(self.now, block, fields);
        // Written together with the result, so the next process knows, too, what the model has learned.
        ends_shown(&outcome).for_each(|it| self.journal.record(self.now, it));
        let wrote_tasks = outcome.notes.iter().any(|it| matches!(it, ToolNote::Todos(_)));
        if wrote_tasks && self.appends() {
            self.wrote_tasks(&message.id);
        }
        if !is_error && self.appends() {
            self.loaded_skill(&call, &text, &message.id);
        }
        self.history.push(message);
        let text = text.into();
        self.publish(Event::ToolFinished { call: call.id, tool, is_error, text });
    }

    /// Looks out for repetition and for denials without end.
    fn watch_call(
        &mut self,
        call: &crate::tool::ToolCall,
        block: &crate::block::Block,
        outcome: &ToolOutcome,
        polls: bool,
    ) {
        if outcome.error == Some(ToolErrorKind::PermissionDenied) {
            if let Some(end) = self.memory.denials.count_denial(call) {
                self.end_with(RunEnd::TooManyDenials, Some(end.code().into()));
            }
            return;
        }
        self.memory.denials.end_row();
        match self.memory.progress.note(call, block_digest(block), polls) {
            Repetition::Fine => {}
            Repetition::Remind(text) => self.state.reminders.push((None, text)),
            Repetition::End => {
                let why = format!("{} was called time and again with the same result", call.name);
                self.end_with(RunEnd::NoProgress, Some(why));
            }
        }
    }

    /// Goes on to step 9: all calls are answered.
    pub(super) fn executed(&mut self) {
        if self.step != Step::ToolExecution || self.fire_batch() {
            return;
        }
        let reminders = std::mem::take(&mut self.state.reminders);
        if !reminders.is_empty() {
            let blocks = vec![crate::block::Block::text(&all_of(&reminders, self.facts.revision))];
            let id = self.journal.next_id(self.now);
            self.remember(Message::user(id, MessageKind::Meta, blocks));
        }
        let n_calls = self.state.calls.len();
        let results =
            self.history.iter().rev().filter_map(|it| it.blocks.first()?.as_tool_result());
        let failed = results.take(n_calls).filter(|(_, _, is_error)| *is_error).count();
        let detail =
            StepDetail::Execution { succeeded: count(n_calls - failed), failed: count(failed) };
        self.record_step(detail);
        self.next(Step::StopCheck);
    }
}

/// Of what was answered, not of whom: the id of the call is left out.
fn block_digest(block: &crate::block::Block) -> crate::digest::Digest {
    block.as_tool_result().map_or_else(Default::default, |(_, text, is_error)| {
        let digest = crate::digest::Digest::of(text.as_bytes());
        // Two pictures of the same size are two results.
        let media = block.media_in_result();
        let digest = media.iter().fold(digest, |digest, it| digest.chain(it.digest()));
        // The same text as an error is another result.
        if is_error { digest.chain(Default::default()) } else { digest }
    })
}
