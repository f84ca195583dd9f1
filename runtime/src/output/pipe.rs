//! The stages that the text of one message goes through, one after the other.

use super::{
    chunking::{Chunker, Piece},
    heartbeat::Edges,
    policy::{Chunking, OutputSettings},
    reasoning_tags::{TagStripper, TaggedSegment},
};

/// What comes out, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Out {
    Text(Piece),
    Reasoning(String),
}

impl Out {
    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(piece) => Some(piece.text),
            Self::Reasoning(_) => None,
        }
    }
}

/// A copy of it is where an attempt can be taken back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipe {
    tags: TagStripper,
    edges: Edges,
    chunker: Option<Chunker>,
}

impl Pipe {
    /// Makes a pipe. `chunking` is `None` when the text is not to be cut.
    pub(super) fn new(settings: &OutputSettings, chunking: Option<Chunking>) -> Self {
        Self {
            tags: TagStripper::default(),
            edges: Edges::new(settings.heartbeat_tokens.clone()),
            chunker: chunking.map(Chunker::new),
        }
    }

    /// Takes a piece of the message.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Out>) {
        let mut segments = Vec::new();
        self.tags.push(text, &mut segments);
        self.take(segments, out);
    }

    /// Delivers what came so far by itself; the message goes on.
    pub(super) fn part(&mut self, out: &mut Vec<Out>) {
        self.cut(out, Chunker::part);
    }

    /// Sends what is held back, after a while without input.
    pub(super) fn flush(&mut self, out: &mut Vec<Out>) {
        self.cut(out, Chunker::flush);
    }

    /// Ends the message: sends all that is held back.
    pub(super) fn finish(mut self, out: &mut Vec<Out>) {
        let mut segments = Vec::new();
        self.tags.finish(&mut segments);
        self.take(segments, out);
        let mut text = String::new();
        self.edges.finish(&mut text);
        push_text(&mut self.chunker, text, out);
        if let Some(chunker) = self.chunker.take() {
            let mut pieces = Vec::new();
            chunker.finish(&mut pieces);
            out.extend(pieces.into_iter().map(Out::Text));
        }
    }

    /// Returns whether text waits for more.
    pub(super) fn is_waiting(&self) -> bool {
        self.chunker.as_ref().is_some_and(Chunker::is_waiting)
    }

    fn take(&mut self, segments: Vec<TaggedSegment>, out: &mut Vec<Out>) {
        for segment in segments {
            match segment {
                TaggedSegment::Reasoning(text) => out.push(Out::Reasoning(text)),
                TaggedSegment::Text(text) => {
                    let mut kept = String::new();
                    self.edges.push(&text, &mut kept);
                    push_text(&mut self.chunker, kept, out);
                }
            }
        }
    }

    fn cut(&mut self, out: &mut Vec<Out>, cut: fn(&mut Chunker, &mut Vec<Piece>)) {
        if let Some(chunker) = &mut self.chunker {
            let mut pieces = Vec::new();
            cut(chunker, &mut pieces);
            out.extend(pieces.into_iter().map(Out::Text));
        }
    }
}

fn push_text(chunker: &mut Option<Chunker>, text: String, out: &mut Vec<Out>) {
    if text.is_empty() {
        return;
    }
    match chunker {
        Some(chunker) => {
            let mut pieces = Vec::new();
            chunker.push(&text, &mut pieces);
            out.extend(pieces.into_iter().map(Out::Text));
        }
        None => out.push(Out::Text(text.into())),
    }
}
