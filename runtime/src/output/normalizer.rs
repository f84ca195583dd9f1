//! One channel: events of a session in, payloads out.
//!
//! What is delivered while it arrives can turn out wrong: an attempt fails, or the whole message
//! says something else. Then tags, edges, blocks and what counts as delivered go back to where they were
//! before, and [`Payload::Retracted`] names what the channel got. Text that did not leave yet is
//! dropped without a word.
//!
//! Linear: a delta is looked at once by each stage; the whole message is compared once with what
//! its deltas held.

use std::sync::Arc;

use super::{
    OutputEvent, Payload, Piece,
    message::OpenMessage,
    pipe::{Out, Pipe},
    policy::{ChannelPolicy, ChunkPolicy, Chunking, Delivery, OutputSettings},
    tool_result::on_tool_result,
};
use crate::event::Event;

/// See the module. Times are milliseconds of any clock that does not go back.
#[derive(Clone, Debug)]
pub struct Normalizer {
    policy: ChannelPolicy,
    settings: Arc<OutputSettings>,
    next_id: u64,
    message: Option<OpenMessage>,
    /// Text that is gathered before it is delivered.
    gathered: String,
    due: Option<u64>,
    /// The last message, for the end of the run: its reasoning and its text.
    last: Option<(String, String)>,
    /// Part of the message under way was missed: only the whole of it can be used.
    is_incomplete: bool,
}

impl Normalizer {
    /// Returns a normalizer that is between two messages.
    pub fn new(policy: ChannelPolicy, settings: Arc<OutputSettings>) -> Self {
        Self {
            policy,
            settings,
            next_id: 1,
            message: None,
            gathered: String::new(),
            due: None,
            last: None,
            is_incomplete: false,
        }
    }

    /// Returns whether no message has begun.
    pub fn is_between_messages(&self) -> bool {
        self.message.is_none()
    }

    /// Sets other defaults. To be called between two messages.
    pub fn set_settings(&mut self, settings: Arc<OutputSettings>) {
        self.settings = settings;
    }

    /// Returns when [`Normalizer::tick`] has something to do, unless a piece comes earlier.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// Delivers what has waited as long as the policy allows.
    pub fn tick(&mut self, now: u64, out: &mut Vec<Payload>) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.due = None;
        self.deliver_gathered(out);
        let mut pieces = Vec::new();
        if let Some(message) = &mut self.message {
            message.flush(&mut pieces);
        }
        self.deliver(pieces, out);
    }

    /// Takes what happened at `now`; pushes what is to be delivered.
    pub fn take(&mut self, now: u64, piece: &OutputEvent<'_>, out: &mut Vec<Payload>) {
        match *piece {
            OutputEvent::Text { attempt, text } => {
                self.say(now, attempt, out, |message, pieces| message.say(text, pieces));
            }
            OutputEvent::Block { attempt, text } => {
                self.say(now, attempt, out, |message, pieces| message.push_block(text, pieces));
            }
            OutputEvent::Reasoning { attempt, text } => self.think(attempt, text, out),
            OutputEvent::Other { .. } => {
                if let Some(message) = &mut self.message {
                    message.turn_elsewhere();
                }
            }
            OutputEvent::Completed { text } => self.complete(text, out),
            OutputEvent::Withdrawn { attempt } => self.withdraw(attempt, out),
            OutputEvent::ToolResult { event } => self.tool_result(event, out),
            OutputEvent::TurnStarted => self.close(out),
            OutputEvent::Missed { events } => {
                let from = self.message.take().and_then(|it| it.first_id());
                self.retract(from, out);
                self.is_incomplete = true;
                out.push(Payload::Missed { events });
            }
            OutputEvent::Ended { reason, is_failure } => self.end(reason, is_failure, out),
        }
    }

    fn say(
        &mut self,
        now: u64,
        attempt: u32,
        out: &mut Vec<Payload>,
        say: impl FnOnce(&mut OpenMessage, &mut Vec<Out>),
    ) {
        if self.policy.delivery != Delivery::Partial || self.is_incomplete {
            return;
        }
        let mut pieces = Vec::new();
        say(self.attempt(attempt, out), &mut pieces);
        self.deliver(pieces, out);
        let (idle, gather) = (self.settings.flush_idle_ms, self.settings.coalesce_ms);
        if !self.gathered.is_empty() {
            self.due = self.due.or(Some(now.saturating_add(gather)));
        } else if 0 < idle && self.message.as_ref().is_some_and(OpenMessage::is_waiting) {
            self.due = Some(now.saturating_add(idle));
        } else {
            self.due = None;
        }
    }

    fn think(&mut self, attempt: u32, text: &str, out: &mut Vec<Payload>) {
        if !self.policy.reasoning || self.is_incomplete {
            if let Some(message) = &mut self.message {
                message.turn_elsewhere();
            }
            return;
        }
        self.attempt(attempt, out).turn_elsewhere();
        self.deliver(vec![Out::Reasoning(text.to_owned())], out);
    }

    /// The message under way, about to go on with this attempt.
    fn attempt(&mut self, number: u32, out: &mut Vec<Payload>) -> &mut OpenMessage {
        if self.message.as_ref().is_some_and(|it| it.is_other_attempt(number)) {
            let mut pieces = Vec::new();
            if let Some(message) = &mut self.message {
                message.part(&mut pieces);
            }
            self.deliver(pieces, out);
            self.deliver_gathered(out);
        }
        let (chunking, next_id) = (self.chunking(), self.next_id);
        let message =
            self.message.get_or_insert_with(|| OpenMessage::new(&self.settings, chunking));
        if message.is_other_attempt(number) {
            message.begin_attempt(number, next_id);
        }
        message
    }

    fn complete(&mut self, text: &str, out: &mut Vec<Payload>) {
        self.is_incomplete = false;
        let message = self.message.take();
        match self.policy.delivery {
            Delivery::Partial => {
                let chunking = self.chunking();
                let mut message =
                    message.unwrap_or_else(|| OpenMessage::new(&self.settings, chunking));
                let mut pieces = Vec::new();
                if !message.complete(text, &mut pieces) {
                    self.retract(message.first_id(), out);
                    message = OpenMessage::new(&self.settings, chunking);
                    message.say(text, &mut pieces);
                }
                self.message = Some(message);
                self.deliver(pieces, out);
                self.close(out);
            }
            delivery => {
                let thought = message.map(|it| it.thought).unwrap_or_default();
                match delivery {
                    Delivery::Final => self.last = Some((thought, text.to_owned())),
                    _ => self.deliver_whole(thought, text, out),
                }
            }
        }
    }

    fn withdraw(&mut self, attempt: u32, out: &mut Vec<Payload>) {
        let from = self.message.as_mut().and_then(|it| it.withdraw(attempt));
        if from.is_some() {
            self.retract(from, out);
        }
    }

    /// What is out from this id on does not count, and what is not out never leaves.
    fn retract(&mut self, from: Option<u64>, out: &mut Vec<Payload>) {
        self.gathered.clear();
        self.due = None;
        if let Some(first_id) = from.filter(|it| *it < self.next_id) {
            out.push(Payload::Retracted { first_id, last_id: self.next_id - 1 });
        }
    }

    /// Ends the message: what was gathered of it goes out.
    fn close(&mut self, out: &mut Vec<Payload>) {
        self.is_incomplete = false;
        let mut pieces = Vec::new();
        if let Some(message) = self.message.take()
            && self.policy.delivery == Delivery::Partial
        {
            message.finish(&mut pieces);
        }
        self.deliver(pieces, out);
        self.deliver_gathered(out);
        self.due = None;
    }

    fn end(&mut self, reason: &str, is_failure: bool, out: &mut Vec<Payload>) {
        self.close(out);
        if let Some((thought, text)) = self.last.take()
            && !is_failure
        {
            self.deliver_whole(thought, &text, out);
        }
        out.push(Payload::Ended { reason: reason.into(), is_failure });
    }

    fn tool_result(&self, event: &Event, out: &mut Vec<Payload>) {
        if let Event::ToolFinished { call, tool, is_error, text } = event
            && let Some(max_chars) = self.policy.tool_results
        {
            let result = on_tool_result(call, tool, *is_error, text, max_chars);
            out.push(Payload::ToolResult(result));
        }
    }

    /// A message that is complete, reasoning first.
    fn deliver_whole(&mut self, mut thought: String, text: &str, out: &mut Vec<Payload>) {
        let mut pipe = Pipe::new(&self.settings, self.chunking());
        let mut pieces = Vec::new();
        pipe.push(text, &mut pieces);
        pipe.finish(&mut pieces);
        let mut texts = Vec::new();
        for piece in pieces {
            match piece {
                Out::Text(piece) => texts.push(piece),
                Out::Reasoning(more) => thought.push_str(&more),
            }
        }
        let thought = thought.trim();
        if self.policy.reasoning && !thought.is_empty() {
            let id = self.take_id();
            out.push(Payload::Reasoning { id, text: thought.to_owned() });
        }
        // Without cuts a text that reasoning interrupted is one all the same.
        if self.chunking().is_none() {
            let text: String = texts.drain(..).map(|it| it.text).collect();
            texts.extend((!text.is_empty()).then(|| text.into()));
        }
        for piece in texts {
            self.deliver_piece(piece, out);
        }
    }

    fn deliver(&mut self, pieces: Vec<Out>, out: &mut Vec<Payload>) {
        let is_partial = self.policy.delivery == Delivery::Partial;
        let gathers = self.chunking().is_none() && 0 < self.settings.coalesce_ms;
        for piece in pieces {
            match piece {
                Out::Text(piece) if gathers => self.gathered.push_str(&piece.text),
                Out::Text(piece) => self.deliver_piece(piece, out),
                Out::Reasoning(_) if !self.policy.reasoning => {}
                Out::Reasoning(text) => {
                    let Some(message) = &mut self.message else { continue };
                    if !is_partial {
                        message.thought.push_str(&text);
                        continue;
                    }
                    let text = message.think(&text);
                    if !text.is_empty() {
                        self.deliver_gathered(out);
                        let id = self.take_id();
                        out.push(Payload::Reasoning { id, text });
                    }
                }
            }
        }
    }

    fn deliver_gathered(&mut self, out: &mut Vec<Payload>) {
        if !self.gathered.is_empty() {
            let text = std::mem::take(&mut self.gathered);
            self.deliver_piece(text.into(), out);
        }
    }

    fn deliver_piece(&mut self, piece: Piece, out: &mut Vec<Payload>) {
        let id = self.take_id();
        out.push(Payload::Text { id, piece });
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn chunking(&self) -> Option<Chunking> {
        match self.policy.chunking {
            ChunkPolicy::Whole => None,
            ChunkPolicy::Session => Some(self.settings.chunking()),
            ChunkPolicy::Blocks(chunking) => Some(chunking),
        }
    }
}
