//! The beginning of a run: from the queue to its first lines.

use std::{collections::BTreeMap, sync::Arc};

use ennead_runtime::{
    cost::CostLedger,
    event::Event,
    lease::Spent,
    run::Run,
    transcript::entry::{ConversationLine, Line, RecordKind, Stored, StoredText},
};
use ractor::ActorRef;

use super::{Active, Phase, record};
use crate::{
    mailbox::Slot,
    session::{Prompt, RunError, SessionMsg, SessionState, recorder::Lines},
    supervision::HandlerResult,
};

impl SessionState {
    /// Begins the next run of the queue, when nothing is under way.
    pub(in crate::session) fn next_run(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        while self.active.is_none() && !self.is_measuring() && matches!(self.ready, Some(Ok(()))) {
            let Some((prompt, slot)) = self.queue.pop_front() else { break };
            if self.is_measured_first(myself, &prompt.request)? {
                self.queue.push_front((prompt, slot));
                break;
            }
            self.begin(myself, *prompt, slot)?;
        }
        if matches!(self.ready, Some(Err(_))) {
            for (prompt, _slot) in self.queue.drain(..) {
                (prompt.reply)(Err(RunError::Failed("the transcript is not open".into())));
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        prompt: Prompt,
        slot: Slot,
    ) -> HandlerResult {
        let Prompt { request, reply } = prompt;
        if let Some(outcome) = request.run.as_ref().and_then(|it| self.outcomes.get(it)) {
            reply(Ok(outcome.clone()));
            return Ok(());
        }
        let content = request.blocks();
        if let Err(wrong) = request.check().and_then(|()| self.conversation.check_prompt(&content))
        {
            reply(Err(wrong.into()));
            return Ok(());
        }
        let at = self.shared.world.clock.now();
        self.n_runs += 1;
        let made = || self.conversation.stream.uuid(at, "run", self.n_runs).into();
        let id = request.run.clone().unwrap_or_else(made);
        let message = Arc::new(self.conversation.prompt(at, id.as_str(), content));
        let mut stored = Vec::new();
        let system = request.system.filter(|it| !it.trim().is_empty());
        let start = RecordKind::RunStart {
            prompt: message.id.clone(),
            origin: request.origin.into(),
            stream: self.conversation.stream.to_hex(),
            first: !std::mem::replace(&mut self.conversation.has_begun, true),
            setup: self.setup_text(&mut stored),
            system: system.as_deref().map(|it| Stored::stored_externally(it, &mut stored)),
            sender: request.sender.clone(),
        };
        let lines = vec![
            Line::Conversation(Box::new(ConversationLine {
                at,
                parent: self.conversation.last_entry.clone(),
                message: Arc::clone(&message),
                answer: None,
                tool_result: None,
                boundary: None,
            })),
            record(at, &id, 0, start),
        ];
        self.shared.hub.publish(Event::RunStarted { run: id.clone() });
        for what in std::mem::take(&mut self.untold) {
            self.shared.hub.publish(Event::Alert { what });
        }
        let run = Run::new(id, message.id.clone()).with_system(system.map(Into::into));
        self.active = Some(Box::new(Active {
            run,
            sender: request.sender,
            reply,
            _slot: slot,
            started: self.shared.world.clock.elapsed(),
            number: self.n_runs,
            time_limit: request.time_limit,
            limit: None,
            phase: Phase::Next,
            stops: false,
            error: None,
            said: vec![Arc::clone(&message)],
            denied: Vec::new(),
            compactions: Vec::new(),
            cache_drops: Vec::new(),
            cost: CostLedger::default(),
            settled: Spent::default(),
            in_doubt: Spent::default(),
            turn_costs: BTreeMap::new(),
            fallback: None,
        }));
        self.conversation.begin_run(message);
        // The first turn has more to write at once.
        self.recorder.hold(Lines { lines, stored, sync: true });
        self.agents.begin_run();
        self.limit_time(myself);
        Ok(())
    }

    /// What was fixed when the session was opened. A long text is stored once and named by digest; a
    /// short one is in each run anew, since it lies nowhere else, and is made anew for it, since
    /// 3 KB are a lot to keep for a session that waits.
    fn setup_text(&mut self, stored: &mut Vec<StoredText>) -> Stored {
        if let Some(digest) = self.conversation.setup {
            return Stored::At(digest);
        }
        let setup = Stored::alone(&self.shared.facts.to_json(), stored);
        if let Stored::At(digest) = setup {
            self.conversation.setup = Some(digest);
        }
        setup
    }
}
