//! A provider refuses a picture: it is left out from then on, so that no later request is refused for it.

use std::sync::Arc;

use super::Turn;
use crate::{
    message::{Message, Messages, SharedMessages},
    run::facts::{LEAVES_OUT_MEDIA, REBUILDS},
    step4_context_shapers::recorded_view::refusals,
    step5_model_call::{
        FailureClass, ModelFailure,
        view::refused::{has_media, without_media},
    },
    transcript::entry::RecordKind,
    turn::effect::Purpose,
};

/// Words of failures that are about a picture or a document, in lower case.
const OF_MEDIA: [&str; 3] = ["image", "pdf", "document"];

/// Whether a provider refused a request because of a picture or document in it.
fn is_about_media(failure: &ModelFailure) -> bool {
    let message = failure.message.to_lowercase();
    failure.class == FailureClass::InvalidRequest && OF_MEDIA.iter().any(|it| message.contains(it))
}

impl Turn {
    /// Takes note of a refusal that is about pictures or documents; returns whether some are left out for the
    /// first time, so that the model can be asked again.
    ///
    /// It goes by the recorded words, so a replay comes to the same.
    pub(super) fn leaves_media_out(&mut self, purpose: Purpose, failure: &ModelFailure) -> bool {
        if self.facts.revision < LEAVES_OUT_MEDIA
            || matches!(purpose, Purpose::Classification | Purpose::Hook | Purpose::Synthesis)
            || !is_about_media(failure)
        {
            return false;
        }
        let is_new =
            |it: &&Arc<Message>| !self.memory.refused_media.contains(&it.id) && has_media(it);
        let found: Vec<_> = self.history.iter().filter(is_new).map(|it| it.id.clone()).collect();
        let are_there = !found.is_empty();
        if REBUILDS <= self.facts.revision {
            refusals(&found)
                .into_iter()
                .for_each(|it| self.journal.record(self.now, RecordKind::View(it)));
        }
        self.memory.refused_media.extend(found);
        if are_there {
            self.alert("the provider refused a picture or document: the model reads a text in the place of each");
        }
        are_there
    }

    /// Returns what is sent, the harness's own messages and the conversation after them, as the provider takes it, as
    /// far as it has refused some of it before.
    pub(super) fn accepted(&self, conversation: &SharedMessages) -> (Messages, SharedMessages) {
        let front = self.without_refused(self.in_front().to_vec());
        if self.memory.refused_media.is_empty() {
            return (front, conversation.clone());
        }
        (front, self.without_refused(conversation.walk().cloned().collect()).into())
    }

    /// Returns messages without what was refused in them.
    pub(super) fn without_refused(&self, messages: Messages) -> Messages {
        let refused = &self.memory.refused_media;
        if refused.is_empty() { messages } else { without_media(&messages, refused) }
    }
}
