//! What a session of a test does when a turn was cut off: closes it, and opens the transcript again.
//!
//! Built under `#[cfg(test)]` only.

use super::{play::Play, trace::asked_last};
use crate::{
    entropy::EntropyStream,
    run::{Run, RunEnd, conversation::Conversation},
    step::Step,
    tokens::Usage,
    transcript::{
        entry::RecordKind,
        load::{Ended, LoadAs, load},
    },
    turn::{DenialReason, OpenTurn, close},
};

impl Play {
    /// Opens the session again in another process, which draws otherwise.
    pub(crate) fn reopen(&mut self) {
        self.now += 1000;
        let loaded = load(&self.bytes(), LoadAs::Session);
        let facts = self.conversation.facts.clone();
        let stream = EntropyStream::from_seed(self.now).child(facts.session.as_str());
        self.conversation = Conversation::new(facts, stream);
        self.conversation.resume(&loaded);
        (self.first, self.is_killed, self.last_layers) = (true, false, None);
        if let Some(open) = loaded.open_run {
            let mut run = Run::new(open.run, "".into());
            run.turns = open.turn;
            let stream = self.conversation.stream.child(run.id.as_str());
            self.close(open.step, &run, stream, RunEnd::Crashed, open.ended);
            let (turns, usage) = (run.turns, Usage::default());
            let reason = RunEnd::Crashed.code().into();
            self.record(&run, RecordKind::RunEnd { reason, turns, usage, head: None });
        }
    }

    /// Ends a turn from outside, as a session does.
    pub(super) fn close(
        &mut self,
        at: Option<Step>,
        run: &Run,
        stream: EntropyStream,
        end: RunEnd,
        ended: Ended,
    ) {
        let asked = asked_last(self.records());
        let has_ended = |it: &String| self.trace.contains(&format!("-{it}"));
        let outcomes =
            self.world.outcomes.iter().filter(|it| self.world.commits && has_ended(it.0));
        let committed = outcomes.map(|(id, it)| (id.as_str().into(), it.clone())).collect();
        let open = OpenTurn {
            run: run.id.clone(),
            number: run.turns,
            stream,
            at_step: at,
            history: self.conversation.history.clone(),
            last_entry: self.conversation.last_entry.clone(),
            committed,
            ended,
            asked,
            denial: DenialReason::default(),
            in_doubt: None,
        };
        let closing = close(open, self.at(), end);
        closing.append.lines.iter().for_each(|it| self.conversation.note(it));
        self.lines.extend(closing.append.lines);
        closing.append.updates.into_iter().for_each(|it| self.conversation.apply(it));
    }
}
