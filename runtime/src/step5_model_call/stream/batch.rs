//! What is shown of an answer while it arrives, one batch per read.

use super::StreamDelta;

/// What one read makes visible. Texts that follow each other become one.
pub(crate) struct DeltaBatch<'o> {
    pub(crate) deltas: &'o mut Vec<StreamDelta>,
    from: usize,
}

impl<'o> DeltaBatch<'o> {
    pub(crate) fn new(deltas: &'o mut Vec<StreamDelta>) -> Self {
        let from = deltas.len();
        Self { deltas, from }
    }

    pub(crate) fn text(&mut self, text: &str) {
        match self.deltas[self.from..].last_mut() {
            _ if text.is_empty() => {}
            Some(StreamDelta::Text(last)) => last.push_str(text),
            _ => self.deltas.push(StreamDelta::Text(text.to_owned())),
        }
    }

    pub(crate) fn reasoning(&mut self, text: &str) {
        match self.deltas[self.from..].last_mut() {
            _ if text.is_empty() => {}
            Some(StreamDelta::Reasoning(last)) => last.push_str(text),
            _ => self.deltas.push(StreamDelta::Reasoning(text.to_owned())),
        }
    }
}
