//! The messages since the last compaction, and what every turn asks about it.
//!
//! The session keeps the history before a turn until the lines of the turn are recorded, so each turn
//! has one of its own, which it adds to. A clone therefore shares what is there, and what a turn
//! asks is known without a walk: the cost of a turn does not follow the length of its run.

use std::sync::Arc;

use crate::{
    block::{Block, BlockKind},
    ids::{EntryId, ToolUseId},
    message::{Message, Messages, SharedMessages},
    run::derived_settings::DerivedSettings,
    shared::{SharedList, SharedSet},
    step9_stop_check::{RunBudget, StopDecision, StopState},
    transcript::entry::ShownPart,
};

/// Messages, oldest first. Cloning takes time logarithmic in their number, adding one as well, on
/// average.
#[derive(Clone, Debug, Default)]
pub struct History {
    messages: SharedList<Arc<Message>>,
    /// Tool uses in them.
    calls: SharedSet<ToolUseId>,
    /// The names that providers gave the answers in them.
    answers: SharedSet<Arc<str>>,
    stop: StopState,
}

/// Something that a session remembers.
#[derive(Clone, Debug)]
pub enum HistoryUpdate {
    /// The first run of the session is under way, by these settings.
    RunBegun(Arc<DerivedSettings>),
    /// A message was added to the conversation.
    Message(Arc<Message>),
    /// A summary that represents everything but these messages, which follow it.
    Compacted {
        /// The summary that replaces what came before it.
        summary: Arc<Message>,
        /// The newest messages, verbatim.
        preserved: Messages,
    },
    /// A message that follows shows a part of the context.
    ContextShown(ShownPart),
    /// A prompt that gets no answer is not part of the conversation any more.
    Withdrawn(EntryId),
}

impl History {
    /// Returns the bytes of all messages as JSON.
    pub(crate) fn n_bytes(&self) -> u64 {
        let blocks = self.iter().flat_map(|it| it.blocks.iter());
        blocks.map(|it| it.wire_len() as u64).sum()
    }
}

impl HistoryUpdate {
    /// Returns the message that this update adds.
    pub fn message(&self) -> Option<&Arc<Message>> {
        match self {
            HistoryUpdate::Message(message) => Some(message),
            HistoryUpdate::Compacted { .. }
            | HistoryUpdate::ContextShown(_)
            | HistoryUpdate::RunBegun(_)
            | HistoryUpdate::Withdrawn(_) => None,
        }
    }

    /// Returns whether it is the mark of a request to end the run.
    pub(crate) fn is_stop_request(&self) -> bool {
        let is_mark = |it: &Block| *it.kind() == BlockKind::StopRequest;
        self.message().is_some_and(|it| it.blocks.iter().any(is_mark))
    }
}

impl History {
    /// Adds a message at the end.
    pub fn push(&mut self, message: Arc<Message>) {
        self.stop.note(&message);
        for (id, ..) in message.tool_uses() {
            self.calls.insert(id.clone());
        }
        if let Some(id) = &message.api_id {
            self.answers.insert(id.clone());
        }
        self.messages.push(message);
    }

    /// Returns the number of messages in the history.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all messages, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.iter()
    }

    /// Returns the messages from this place on.
    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.iter_from(first)
    }

    /// Returns the last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.iter().next_back()
    }

    /// Returns whether a tool use in it bears this id.
    pub(crate) fn has_call(&self, id: &ToolUseId) -> bool {
        self.calls.contains(id)
    }

    /// Returns whether an answer in it has this name of its provider.
    pub(crate) fn has_answer(&self, api_id: &str) -> bool {
        self.answers.contains(api_id)
    }

    /// Returns whether the run is over; see [`check_stop_condition`](crate::step9_stop_check::check_stop_condition).
    pub(crate) fn stop_decision(&self, budget: RunBudget) -> StopDecision {
        self.stop.decision(budget)
    }

    /// Returns all messages as a list.
    #[cfg(test)]
    pub(crate) fn to_messages(&self) -> Messages {
        self.iter().cloned().collect()
    }

    /// Returns all messages, which the history goes on to share.
    pub(crate) fn to_shared(&self) -> SharedMessages {
        self.messages.clone().into()
    }

    /// Returns the message at this place.
    pub(crate) fn get(&self, at: usize) -> Option<&Arc<Message>> {
        self.messages.get(at)
    }
}

impl FromIterator<Arc<Message>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut history = Self::default();
        messages.into_iter().for_each(|it| history.push(it));
        history
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{block::Block, message::MessageKind, step9_stop_check::check_stop_condition};

    fn message(i: usize) -> Arc<Message> {
        let id = format!("m{i}");
        Arc::new(match i % 3 {
            0 => Message::prompt(id.into(), "go"),
            1 => {
                let call = Block::tool_use(&format!("c{i}").into(), &"Read".into(), "{}");
                Message::answer(id.into(), "msg", vec![call])
            }
            _ => {
                let result = Block::tool_result(&format!("c{}", i - 1).into(), "r", false);
                Message::user(id.into(), MessageKind::ToolResults, vec![result])
            }
        })
    }

    // REQ: SES-4, TRN-6
    #[test]
    fn history_says_of_its_messages_what_a_walk_over_them_says() {
        let (mut history, mut messages) = (History::default(), Messages::new());
        for i in 0..500 {
            let before = history.clone();
            history.push(message(i));
            messages.push(message(i));
            assert_eq!((before.len(), history.len()), (i, i + 1));
            let budget = RunBudget { used: 1, max: None };
            assert_eq!(history.stop_decision(budget), check_stop_condition(&messages, budget));
        }
        assert!(history.to_shared().walk().eq(&messages));
        assert!(history.iter().rev().eq(messages.iter().rev()));
        assert!((0..=501).all(|at| history.iter_from(at).eq(messages.iter().skip(at))));
        assert!((0..500).all(|i| history.has_call(&format!("c{i}").into()) == (i % 3 == 1)));
    }
}
