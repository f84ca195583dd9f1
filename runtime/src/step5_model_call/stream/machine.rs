//! The state machine of the stream: which event may come when, and what it adds.
//!
//! Whatever cannot be trusted ends it: a message with a piece left out would be a wrong message.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
};

use serde_json::value::RawValue;

use super::{
    DeltaBatch, StreamDelta, StreamPhase,
    block_builder::{AddedPiece, BlockBuilder, Finished, Malformed, TEXT_ROOM, ToolBuilder},
    plain::{self, Plain},
    wire::{Addition, KindOnly, MessagesEvent, OddDelta, ReportedUsage, WireText, refusal_of},
};
use crate::{
    ids::ToolUseId,
    json::without_lone_halves,
    step5_model_call::{InvalidInput, ModelAnswer, StopReason, failure, sse::SseEvent},
};

/// Bytes of content that one answer may hold, 64 MiB: some hundred times what a model can say.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Blocks or calls that one answer may hold: some hundred times what a model sends, and few enough
/// that everything after this may look at each of them for each.
pub(crate) const MAX_BLOCKS: usize = 4_096;

/// The code of an answer that goes beyond a bound.
pub(crate) const TOO_LARGE: &str = "too_large";

const BLOCK_DELTAS: [&str; 5] =
    ["text_delta", "citations_delta", "thinking_delta", "signature_delta", "input_json_delta"];

/// What has been read of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamMachine {
    pub(super) phase: StreamPhase,
    pub(super) partial_text: String,
    pub(super) usage: ReportedUsage,
    /// Why it ended, if it did so early.
    pub(super) error: Option<StreamError>,
    id: Arc<str>,
    model: Arc<str>,
    stop_reason: Option<Arc<str>>,
    stop_sequence: Option<Arc<str>>,
    refusal: Option<Arc<str>>,
    blocks: BTreeMap<u64, BlockSlot>,
    n_bytes: usize,
    /// Blocks whose input grew since the last read.
    previews_due: BTreeSet<u64>,
}

/// Ends a stream early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamError {
    /// The provider's name for it, or `protocol_error`, `malformed_event`, `too_large`.
    pub(super) code: String,
    pub(super) message: String,
    /// The provider reported it, by an `error` event.
    pub(super) reported: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BlockSlot {
    Open(Box<BlockBuilder>),
    Done(Finished),
}

type Handled = Result<(), StreamError>;

fn ours(code: &str, message: &str) -> StreamError {
    StreamError { code: code.into(), message: message.into(), reported: false }
}

pub(super) fn protocol(message: &str) -> StreamError {
    ours("protocol_error", message)
}

pub(super) fn too_large(message: &str) -> StreamError {
    ours(TOO_LARGE, message)
}

impl From<Malformed> for StreamError {
    fn from(malformed: Malformed) -> Self {
        ours("malformed_event", malformed.0)
    }
}

impl StreamMachine {
    /// Counts the bytes of content so far.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns the number of blocks so far.
    pub(super) fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Takes one event; breaks when the outcome is settled.
    pub(super) fn handle(
        &mut self,
        event: &SseEvent<'_>,
        out: &mut DeltaBatch<'_>,
    ) -> ControlFlow<()> {
        if let Err(error) = self.read(event, out) {
            self.error = Some(error);
        }
        if self.error.is_some() || self.phase == StreamPhase::Complete {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn read(&mut self, raw: &SseEvent<'_>, out: &mut DeltaBatch<'_>) -> Handled {
        match plain::event(&raw.data) {
            Some(Plain::Delta(index, addition)) => {
                return self.add_to_block(Some(index), Some(addition), out);
            }
            Some(Plain::BlockStart(index, n_bytes, builder)) => {
                let index = self.new_index(Some(index), n_bytes)?;
                self.start_block(index, builder, out);
                return Ok(());
            }
            Some(Plain::BlockStop(index)) => return self.stop_block(Some(index), out),
            Some(Plain::MessageStop) => return self.stop_message(),
            Some(Plain::Ping) => return Ok(()),
            None => {}
        }
        // A struct would also be read from an array, so the shape is looked at first.
        let is_object = raw.data.trim_start().starts_with('{');
        if is_object {
            if let Ok(event) = serde_json::from_str::<MessagesEvent<'_>>(&raw.data) {
                return self.take(event, &raw.event, out);
            }
            let mended = without_lone_halves(&raw.data);
            if let Some(Ok(event)) =
                mended.as_deref().map(serde_json::from_str::<MessagesEvent<'_>>)
            {
                return self.take(event, &raw.event, out);
            }
        }
        let seen: Option<KindOnly<'_>> = serde_json::from_str(&raw.data).ok().filter(|_| is_object);
        let kind = seen.as_ref().and_then(|it| it.kind.as_ref());
        match kind.map_or(raw.event.as_ref(), |it| it.0.as_ref()) {
            "message_stop" if seen.is_some() => self.stop_message(),
            "content_block_delta" if self.is_unknown_delta(&raw.data) => Ok(()),
            "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
            | "error" => Err(Malformed("a known event cannot be read").into()),
            _ => Ok(()),
        }
    }

    fn take(&mut self, event: MessagesEvent<'_>, name: &str, out: &mut DeltaBatch<'_>) -> Handled {
        let kind = event.kind.as_ref().map_or(name, |it| it.0.as_ref());
        match kind {
            "content_block_delta" => {
                self.add_to_block(event.index, event.delta.map(|it| it.addition()), out)
            }
            "message_start" => self.start_message(event, out),
            "content_block_start" => {
                let raw = event.content_block.map(RawValue::get);
                let index = self.new_index(event.index, raw.map_or(0, str::len))?;
                let raw = raw.ok_or(Malformed("the start has no block"))?;
                self.start_block(index, BlockBuilder::start(raw)?, out);
                Ok(())
            }
            "content_block_stop" => self.stop_block(event.index, out),
            "message_delta" => self.add_to_message(event, out),
            "message_stop" => self.stop_message(),
            "error" => Err(reported_error(event)),
            _ => Ok(()),
        }
    }

    fn start_message(&mut self, event: MessagesEvent<'_>, out: &mut DeltaBatch<'_>) -> Handled {
        if self.phase != StreamPhase::Idle {
            return Err(protocol("a second message begins"));
        }
        let message = *event.message.ok_or(Malformed("the start has no message"))?;
        let shared = |text: Option<WireText<'_>>| text.map(|it| Arc::from(it.0.as_ref()));
        self.id = shared(message.id).unwrap_or_default();
        self.model = shared(message.model).unwrap_or_default();
        self.stop_reason = shared(message.stop_reason);
        self.stop_sequence = shared(message.stop_sequence);
        self.phase = StreamPhase::MessageStart;
        self.take_usage(message.usage, out);
        Ok(())
    }

    /// Where a block of this many bytes may begin.
    fn new_index(&mut self, index: Option<u64>, n_bytes: usize) -> Result<u64, StreamError> {
        let index = self.index(index)?;
        if self.blocks.contains_key(&index) {
            return Err(protocol("a block begins twice"));
        }
        if MAX_BLOCKS <= self.blocks.len() {
            return Err(too_large("the answer has too many blocks"));
        }
        self.count(n_bytes)?;
        Ok(index)
    }

    fn start_block(&mut self, index: u64, builder: Box<BlockBuilder>, out: &mut DeltaBatch<'_>) {
        self.phase = phase_of(&builder);
        self.show(index, builder.initial(), out);
        self.blocks.insert(index, BlockSlot::Open(builder));
    }

    fn add_to_block(
        &mut self,
        index: Option<u64>,
        addition: Option<Addition<'_>>,
        out: &mut DeltaBatch<'_>,
    ) -> Handled {
        let index = self.index(index)?;
        let Some(BlockSlot::Open(builder)) = self.blocks.get_mut(&index) else {
            return Err(protocol("a delta for a block that is not open"));
        };
        let addition = addition.ok_or(Malformed("the event has no delta"))?;
        let n_bytes = addition.len();
        let added = builder.add(addition)?;
        self.phase = phase_of(builder);
        self.show(index, added, out);
        self.count(n_bytes)
    }

    fn stop_block(&mut self, index: Option<u64>, out: &mut DeltaBatch<'_>) -> Handled {
        let index = self.index(index)?;
        let Some(BlockSlot::Open(mut builder)) = self.blocks.remove(&index) else {
            return Err(protocol("the end of a block that is not open"));
        };
        self.previews_due.remove(&index);
        preview(&mut builder, ToolBuilder::last_preview, out);
        self.blocks.insert(index, BlockSlot::Done(builder.finish()?));
        self.phase = StreamPhase::Content;
        Ok(())
    }

    fn add_to_message(&mut self, event: MessagesEvent<'_>, out: &mut DeltaBatch<'_>) -> Handled {
        if self.phase == StreamPhase::Idle {
            return Err(protocol("a delta before the message"));
        }
        if let Some(delta) = event.delta {
            let shared = |text: WireText<'_>| Arc::from(text.0.as_ref());
            self.stop_reason = delta.stop_reason.map(shared).or(self.stop_reason.take());
            self.stop_sequence = delta.stop_sequence.map(shared).or(self.stop_sequence.take());
            let details = refusal_of(delta.stop_details);
            self.refusal = details.or(self.refusal.take());
        }
        self.take_usage(event.usage, out);
        Ok(())
    }

    fn stop_message(&mut self) -> Handled {
        if self.phase == StreamPhase::Idle {
            return Err(protocol("the end of a message that did not begin"));
        }
        if self.blocks.values().any(|it| matches!(it, BlockSlot::Open(_))) {
            return Err(protocol("the message ends inside a block"));
        }
        if self.blocks.keys().copied().ne(0..self.blocks.len() as u64) {
            return Err(protocol("a block is missing"));
        }
        self.phase = StreamPhase::Complete;
        Ok(())
    }

    /// Shows the tool inputs that came on, once per read.
    pub(super) fn show_previews(&mut self, out: &mut DeltaBatch<'_>) {
        for index in std::mem::take(&mut self.previews_due) {
            if let Some(BlockSlot::Open(builder)) = self.blocks.get_mut(&index) {
                preview(builder, ToolBuilder::next_preview, out);
            }
        }
    }

    /// Returns the message, once it is complete.
    pub(super) fn into_answer(self) -> ModelAnswer {
        let mut blocks = Vec::with_capacity(self.blocks.len());
        let mut invalid_inputs: Vec<(ToolUseId, InvalidInput)> = Vec::new();
        for slot in self.blocks.into_values() {
            if let BlockSlot::Done(Finished { block, invalid }) = slot {
                let call = block.as_tool_use().map(|(id, ..)| id.clone());
                invalid_inputs.extend(call.zip(invalid));
                blocks.push(block);
            }
        }
        ModelAnswer {
            message_id: self.id,
            model: self.model,
            blocks,
            stop_reason: StopReason::read(self.stop_reason.as_deref().unwrap_or_default()),
            stop_sequence: self.stop_sequence,
            refusal: self.refusal,
            usage: self.usage.usage(),
            invalid_inputs,
        }
    }

    fn index(&self, index: Option<u64>) -> Result<u64, StreamError> {
        if self.phase == StreamPhase::Idle {
            return Err(protocol("a block before the message"));
        }
        index.ok_or_else(|| Malformed("the event has no index").into())
    }

    fn is_unknown_delta(&self, data: &str) -> bool {
        serde_json::from_str::<OddDelta<'_>>(data).is_ok_and(|it| {
            let kind = it.delta.kind.as_ref().map(|it| it.0.as_ref()).unwrap_or_default();
            matches!(self.blocks.get(&it.index), Some(BlockSlot::Open(_)))
                && !BLOCK_DELTAS.contains(&kind)
        })
    }

    fn take_usage(&mut self, usage: Option<ReportedUsage>, out: &mut DeltaBatch<'_>) {
        if let Some(usage) = usage {
            self.usage.replace_with(usage);
            out.deltas.push(StreamDelta::Usage(self.usage.usage()));
        }
    }

    fn show(&mut self, index: u64, added: AddedPiece<'_>, out: &mut DeltaBatch<'_>) {
        match added {
            AddedPiece::Text(text) => {
                if self.partial_text.is_empty() {
                    self.partial_text.reserve(TEXT_ROOM);
                }
                self.partial_text.push_str(&text);
                out.text(&text);
            }
            AddedPiece::Reasoning(text) => out.reasoning(&text),
            AddedPiece::ToolInput => {
                self.previews_due.insert(index);
            }
            AddedPiece::Nothing => {}
        }
    }

    fn count(&mut self, n_bytes: usize) -> Handled {
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        if MAX_ANSWER_BYTES < self.n_bytes {
            return Err(too_large("the answer is too long"));
        }
        Ok(())
    }
}

fn phase_of(builder: &BlockBuilder) -> StreamPhase {
    match builder {
        BlockBuilder::Tool(_) => StreamPhase::ToolInput,
        BlockBuilder::Text { .. } | BlockBuilder::Thinking { .. } | BlockBuilder::Whole { .. } => {
            StreamPhase::Content
        }
    }
}

fn preview(
    builder: &mut BlockBuilder,
    take: impl FnOnce(&mut ToolBuilder) -> Option<String>,
    out: &mut DeltaBatch<'_>,
) {
    if let BlockBuilder::Tool(tool) = builder
        && let Some(preview) = take(tool)
    {
        let (id, name) = (tool.id.clone(), tool.name.clone());
        out.deltas.push(StreamDelta::ToolInput { id, name, preview });
    }
}

fn reported_error(event: MessagesEvent<'_>) -> StreamError {
    let text = |text: Option<WireText<'_>>| text.map(|it| it.0.into_owned()).unwrap_or_default();
    let (kind, message) = event.error.map(|it| (it.kind, it.message)).unwrap_or_default();
    let kind = text(kind);
    let code = if kind.is_empty() { failure::UNNAMED_ERROR.to_owned() } else { kind };
    StreamError { code, message: text(message), reported: true }
}
