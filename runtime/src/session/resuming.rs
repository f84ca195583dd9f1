//! A run goes on that a killed process left while somebody was asked about a call.
//!
//! Nothing of the turn had run. It is given up where it was, and the next turn of the run takes the calls
//! of its answer through the gate again, under the rules that hold now.

use std::{mem, sync::Arc};

use super::{
    Machine, Now, SessionEffect,
    names::RunOrigin,
    recorder::{PendingLines, WriteOrigin},
    run::{ActiveRun, record},
    servers::alert,
};
use crate::{
    event::Event,
    message::{Message, MessageKind, Messages},
    run::Run,
    step::Step,
    step7_permission_gate::Handler,
    transcript::{
        entry::{RecordKind, Stored},
        load::{Loaded, OpenRun},
    },
};

impl Machine {
    /// Returns the run of an earlier process that goes on: it waits for an answer, its time is not over, and somebody
    /// is there who can answer.
    pub(super) fn run_to_resume<'a>(&self, now: Now, loaded: &'a Loaded) -> Option<&'a OpenRun> {
        let facts = &self.conversation.facts;
        let can_answer = facts.handler == Handler::Approver || facts.has_policy;
        let open = loaded.open_run.as_ref().filter(|_| can_answer && facts.agent.is_none())?;
        let (asked, expires) = open.asked.as_ref()?;
        let last = loaded.recorded.last().filter(|it| it.kind == MessageKind::Answer)?;
        let is_at_gate = open.step.is_none_or(|it| it <= Step::ToolDispatch);
        let is_open = last.tool_uses().any(|(id, ..)| id == asked) && open.ended.is_empty();
        (is_at_gate && is_open && now.at < *expires).then_some(open)
    }

    /// Resumes the run. `system` is the text that its turns have after the system prompt.
    pub(super) fn resume_run(&mut self, now: Now, open: &OpenRun, system: Option<String>) {
        let mut stored = Vec::new();
        self.conversation.has_begun = true;
        let what = RecordKind::RunResumed {
            prompt: open.prompt.clone(),
            stream: self.conversation.stream.to_hex(),
            setup: self.setup_text(&mut stored),
            system: system.as_deref().map(|it| Stored::stored_externally(it, &mut stored)),
        };
        let alerts = mem::take(&mut self.alerts);
        let mut lines = vec![record(now.at, &open.run, what)];
        lines.extend(alerts.iter().map(|what| alert(now.at, &open.run, what)));
        self.recorder.append(
            WriteOrigin::Unawaited,
            PendingLines { lines, stored, title: None, sync: true },
            &mut self.effects,
        );
        self.effects.push(SessionEffect::Publish(Event::RunStarted {
            run: open.run.clone(),
            woken: false,
        }));
        let notices = alerts.into_iter().chain(mem::take(&mut self.notices));
        self.effects.extend(notices.map(|what| SessionEffect::Publish(Event::Alert { what })));
        self.last_run.advance();
        let mut run = Run::new(open.run.clone(), open.prompt.clone());
        run = run.with_system(system.map(Into::into));
        (run.turns, run.usage) = (open.turn, open.usage);
        let mut active = ActiveRun::new(run, RunOrigin::Resumed, now.elapsed, self.last_run);
        active.messages = messages_of(open, self.conversation.history.iter());
        active.denied.clone_from(&open.denied);
        active.questions = open.questions.clone();
        active.sender.clone_from(&open.sender);
        self.active = Some(Box::new(active));
        self.agents.begin_run();
        self.limit_time();
    }
}

/// The messages of a run, as far as they were not summed up.
fn messages_of<'a>(
    open: &OpenRun,
    history: impl DoubleEndedIterator<Item = &'a Arc<Message>>,
) -> Messages {
    let mut messages: Messages = Vec::new();
    for message in history.rev() {
        messages.push(Arc::clone(message));
        if message.id == open.prompt {
            break;
        }
    }
    messages.reverse();
    messages
}
