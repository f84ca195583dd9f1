//! A message that is being delivered: what came of it, and where each attempt can be taken back to.

use std::sync::Arc;

use super::{
    dedupe,
    heartbeat::Edges,
    pipe::{Out, Pipe},
    policy::{Chunking, OutputSettings},
};

#[derive(Clone, Debug)]
pub(super) struct OpenMessage {
    now: MessageState,
    /// Everything that was delivered of it, as it came.
    sent: String,
    /// Reasoning that is delivered with the message.
    pub(super) thought: String,
    attempts: Vec<Attempt>,
}

/// How far it is.
#[derive(Clone, Debug)]
struct MessageState {
    pipe: Pipe,
    /// Blanks around reasoning are not delivered either.
    thoughts: Edges,
    /// The next text is another block.
    is_elsewhere: bool,
}

#[derive(Clone, Debug)]
struct Attempt {
    number: u32,
    /// Of what was delivered of it, if anything was.
    first_id: u64,
    before: MessageState,
    n_said: usize,
    n_thought: usize,
}

impl OpenMessage {
    pub(super) fn new(settings: &OutputSettings, chunking: Option<Chunking>) -> Self {
        let thoughts = Edges::new(Arc::new([]));
        let pipe = Pipe::new(settings, chunking);
        let now = MessageState { pipe, thoughts, is_elsewhere: false };
        Self { now, sent: String::new(), thought: String::new(), attempts: Vec::new() }
    }

    /// Returns whether what follows is of another attempt than what came.
    pub(super) fn is_other_attempt(&self, number: u32) -> bool {
        self.attempts.last().is_none_or(|it| it.number != number)
    }

    /// Pushes what waits of this attempt, to be delivered by itself, since another one follows.
    pub(super) fn part(&mut self, out: &mut Vec<Out>) {
        self.now.pipe.part(out);
    }

    /// Begins an attempt, which is delivered from this id on.
    pub(super) fn begin_attempt(&mut self, number: u32, first_id: u64) {
        self.attempts.push(Attempt {
            number,
            first_id,
            before: self.now.clone(),
            n_said: self.sent.len(),
            n_thought: self.thought.len(),
        });
        self.now.is_elsewhere = true;
    }

    /// Forgets the attempt, if it is the last one; gives back the id from which on its pieces were
    /// delivered.
    pub(super) fn withdraw(&mut self, number: u32) -> Option<u64> {
        let attempt = self.attempts.pop_if(|it| it.number == number)?;
        self.now = attempt.before;
        self.sent.truncate(attempt.n_said);
        self.thought.truncate(attempt.n_thought);
        Some(attempt.first_id)
    }

    /// Returns the id from which on its pieces were delivered.
    pub(super) fn first_id(&self) -> Option<u64> {
        self.attempts.first().map(|it| it.first_id)
    }

    pub(super) fn say(&mut self, text: &str, out: &mut Vec<Out>) {
        if std::mem::take(&mut self.now.is_elsewhere) && !self.sent.is_empty() {
            self.add("\n", out);
        }
        self.add(text, out);
    }

    /// Adds a whole block, of which pieces may have come.
    pub(super) fn push_block(&mut self, block: &str, out: &mut Vec<Out>) {
        let fresh = dedupe::beyond(&self.sent, block);
        if fresh.len() == block.len() {
            self.now.is_elsewhere = true;
        }
        if !fresh.is_empty() {
            self.say(fresh, out);
        }
        self.now.is_elsewhere = true;
    }

    /// Completes the message with its whole text; returns whether that continues what was delivered of it.
    pub(super) fn complete(&mut self, whole: &str, out: &mut Vec<Out>) -> bool {
        let Some(rest) = dedupe::rest(&self.sent, whole) else { return false };
        self.add(rest, out);
        true
    }

    /// Notes that the model does something else.
    pub(super) fn turn_elsewhere(&mut self) {
        self.now.is_elsewhere = true;
    }

    /// Adds reasoning, and returns it as it is delivered.
    pub(super) fn think(&mut self, text: &str) -> String {
        let mut out = String::new();
        self.now.thoughts.push(text, &mut out);
        out
    }

    pub(super) fn flush(&mut self, out: &mut Vec<Out>) {
        self.now.pipe.flush(out);
    }

    pub(super) fn finish(self, out: &mut Vec<Out>) {
        self.now.pipe.finish(out);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.now.pipe.is_waiting()
    }

    fn add(&mut self, text: &str, out: &mut Vec<Out>) {
        self.sent.push_str(text);
        self.now.pipe.push(text, out);
    }
}
