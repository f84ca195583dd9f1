//! Publishes what is shown of an answer while it arrives.

use ennead_runtime::{event::Event, step5_model_call::stream::StreamDelta, turn::effect::Purpose};

use super::{CallAttempt, shown_deltas::ShownDeltas};

impl CallAttempt<'_> {
    /// Shows what was read, if somebody listens.
    pub(super) fn show(&mut self, answer: &mut ShownDeltas, read: &mut Vec<StreamDelta>) {
        if read.is_empty() {
            return;
        }
        self.pace.part(self.millis());
        let is_answer = self.order.purpose == Purpose::Turn;
        let is_event = |it: &&StreamDelta| is_answer && !matches!(it, StreamDelta::Usage(_));
        if self.hub().pass_over(read.iter().filter(is_event).count()) {
            answer.hold(read);
        } else {
            self.publish(answer.take(read));
        }
    }

    pub(super) fn publish(&self, shown: Vec<StreamDelta>) {
        let (hub, attempt) = (&self.session_context.hub, self.order.attempt);
        for delta in shown {
            match delta {
                // The text of a summary is not an answer.
                _ if self.order.purpose != Purpose::Turn => {}
                StreamDelta::Text(text) => {
                    hub.publish_delta(|| Event::TextDelta { attempt, text: text.into() });
                }
                StreamDelta::Reasoning(text) => {
                    hub.publish_delta(|| Event::ReasoningDelta { attempt, text: text.into() });
                }
                StreamDelta::ToolInput { id, name, preview } => hub.publish_delta(|| {
                    Event::ToolInputPreview { attempt, call: id, tool: name, input: preview.into() }
                }),
                StreamDelta::Event(json) => hub.publish_streamed(attempt, &json),
                StreamDelta::Usage(_) => {}
            }
        }
    }
}
