//! Reads the stream of a Responses answer.
//!
//! Deltas are for showing. What an item is says its `response.output_item.done`, and an item
//! whose end did not come is taken from the response that the last event holds. Only a terminal
//! event settles the outcome: a stream that ends without one is incomplete. Events are found by the
//! `type` in the data; unknown ones are passed over, and so is an event whose number has come
//! before.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    items::{BlockCollector, ItemSlot},
    wire::{OutputItem, Response, ResponsesEvent},
};
use crate::{
    digest::Digest,
    step5_model_call::{
        ModelAnswer, StopReason,
        openai_shared::{
            call::{CallIds, PartialCall},
            failure,
            reader::{Broken, Format, ReadProgress},
        },
        sse::SseEvent,
        stream::{DeltaBatch, MAX_BLOCKS, StreamPhase, block_builder::single_line, wire::WireText},
    },
};

/// What has been read of a response.
#[derive(Clone, Debug)]
pub(crate) struct Responses {
    id: Arc<str>,
    model: Arc<str>,
    slots: Vec<ItemSlot>,
    /// The newest item of each id, and of each index.
    by_id: BTreeMap<String, usize>,
    by_index: BTreeMap<u64, usize>,
    /// Items before this one are whole.
    first_open: usize,
    n_parts: usize,
    ids: CallIds,
    last_number: u64,
    stop_reason: Option<StopReason>,
    /// Items whose arguments grew since the last read.
    previews_due: BTreeSet<usize>,
}

impl Responses {
    /// Makes a reader at the start of the answer to this request. Ids that a server leaves out are made from it.
    pub(crate) fn new(request: Digest) -> Self {
        Self {
            id: Arc::default(),
            model: Arc::default(),
            slots: Vec::new(),
            by_id: BTreeMap::new(),
            by_index: BTreeMap::new(),
            first_open: 0,
            n_parts: 0,
            ids: CallIds::new(request),
            last_number: 0,
            stop_reason: None,
            previews_due: BTreeSet::new(),
        }
    }

    /// The newest item that an event means: by the id of the item, else by its index.
    fn slot(&self, event: &ResponsesEvent<'_>) -> Option<usize> {
        let (id, index) = (event.item_id(), event.output_index());
        let by_id = id.and_then(|it| self.by_id.get(it.0.as_ref()));
        by_id.or_else(|| self.by_index.get(&index?)).copied()
    }

    /// The call that an event means.
    fn call(&mut self, event: &ResponsesEvent<'_>) -> Option<&mut PartialCall> {
        let at = self.slot(event)?;
        let call = self.slots.get_mut(at)?.call.as_mut()?;
        self.previews_due.insert(at);
        Some(call)
    }

    fn add_item(&mut self, raw: &str, index: Option<u64>) -> Result<usize, Broken> {
        let at = self.slots.len();
        if MAX_BLOCKS <= at {
            return Err(Broken::too_large("the answer has too many items"));
        }
        let item =
            OutputItem::read(raw).ok_or_else(|| Broken::malformed("an item cannot be read"))?;
        let word =
            |text: Option<&WireText<'_>>| text.map(|it| it.0.to_string()).unwrap_or_default();
        let call = (item.kind() == "function_call").then(|| {
            let id = self.ids.next(item.call_id.as_ref().map(|it| it.0.as_ref()));
            PartialCall::new(id, &word(item.name.as_ref()))
        });
        let item_id = word(item.id.as_ref());
        self.by_index.extend(index.map(|it| (it, at)));
        if !item_id.is_empty() {
            self.by_id.insert(item_id.clone(), at);
        }
        self.slots.push(ItemSlot { index, item_id, text: String::new(), call, whole: None });
        Ok(at)
    }

    /// An item is whole: what it says now is what counts.
    fn finish_item(
        &mut self,
        raw: &str,
        index: Option<u64>,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken> {
        let item =
            OutputItem::read(raw).ok_or_else(|| Broken::malformed("an item cannot be read"))?;
        progress.count(raw.len())?;
        let id = item.id.as_ref().map_or("", |it| it.0.as_ref());
        let is_same = |it: &ItemSlot| {
            it.whole.is_none()
                && if id.is_empty() || it.item_id.is_empty() {
                    it.index == index
                } else {
                    it.item_id == id
                }
        };
        let open = self.slots.iter().enumerate().skip(self.first_open);
        let at = match open.filter(|(_, it)| is_same(it)).map(|(at, _)| at).next() {
            Some(at) => at,
            None => self.add_item(raw, index)?,
        };
        self.n_parts += item.parts().len();
        if MAX_BLOCKS < self.n_parts {
            return Err(Broken::too_large("the answer has too many parts"));
        }
        let Some(slot) = self.slots.get_mut(at) else { return Ok(()) };
        slot.whole = Some(single_line(raw).into_owned());
        if let Some(call) = &mut slot.call {
            if let Some(WireText(name)) = item.name {
                call.name = name.into_owned();
            }
            call.arguments = item.arguments.map(|it| it.0.into_owned()).unwrap_or_default();
            progress.phase = StreamPhase::ToolInput;
            self.previews_due.insert(at);
        } else if slot.text.is_empty() && item.kind() == "message" {
            // A server that sends no deltas.
            for part in item.parts() {
                let text = part.text.or(part.refusal).map(|it| it.0).unwrap_or_default();
                slot.text.push_str(&text);
                progress.text(&text, out)?;
            }
        }
        let is_whole = |it: &ItemSlot| it.whole.is_some();
        while self.slots.get(self.first_open).is_some_and(is_whole) {
            self.first_open += 1;
        }
        Ok(())
    }

    /// Takes the response of a terminal event, or a whole answer.
    pub(super) fn conclude(
        &mut self,
        raw: &str,
        event_status: &str,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken> {
        let response: Response<'_> = serde_json::from_str(raw)
            .map_err(|error| Broken::malformed(&format!("no response: {error}")))?;
        self.begin(&response, progress);
        if let Some(usage) = response.usage() {
            progress.take_usage(usage, out);
        }
        let status = response.status.as_ref().map_or(event_status, |it| it.0.as_ref());
        self.stop_reason = match status {
            "completed" => None,
            "incomplete" => Some(match response.reason().as_ref().map_or("", |it| it.0.as_ref()) {
                "max_output_tokens" | "max_tokens" => StopReason::MaxTokens,
                "content_filter" => StopReason::Refusal,
                other => StopReason::Other(other.into()),
            }),
            _ if response.is_nothing() => {
                return Err(Broken::malformed("the answer is not a response"));
            }
            _ => {
                let error = response.error.map_or("{}", |it| it.get());
                let error: Value = serde_json::from_str(error).unwrap_or_default();
                let broken = failure::from_object(&error, progress.phase);
                let message = if broken.message.is_empty() {
                    format!("the response has the status `{status}`")
                } else {
                    broken.message
                };
                return Err(Broken { message, ..broken });
            }
        };
        let is_listed = response.output.as_ref().is_some_and(|it| !it.is_empty());
        for (at, item) in response.output.into_iter().flatten().enumerate() {
            let index = Some(at as u64);
            let is_known = |it: &ItemSlot| it.index == index && it.whole.is_some();
            if !self.slots.iter().any(is_known) {
                self.finish_item(item.get(), index, progress, out)?;
            }
        }
        self.slots.sort_by_key(|it| it.index.unwrap_or(u64::MAX));
        if self.stop_reason.is_none() {
            let indexes: BTreeSet<u64> = self.slots.iter().filter_map(|it| it.index).collect();
            if self.slots.iter().any(|it| it.whole.is_none())
                || (!is_listed && indexes.iter().copied().ne(0..indexes.len() as u64))
            {
                return Err(Broken::protocol("an item of the response is missing"));
            }
        }
        progress.phase = StreamPhase::Complete;
        Ok(())
    }

    fn begin(&mut self, response: &Response<'_>, progress: &mut ReadProgress) {
        progress.begin();
        let shared = |text: &WireText<'_>| Arc::from(text.0.as_ref());
        if let Some(id) = response.id.as_ref().map(shared) {
            self.id = id;
        }
        if let Some(model) = response.model.as_ref().map(shared) {
            self.model = model;
        }
    }

    fn take_event(
        &mut self,
        kind: &str,
        event: &ResponsesEvent<'_>,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken> {
        let no_item = || Broken::malformed("the event has no item");
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                let response = event.response.map_or("{}", |it| it.get());
                self.begin(&serde_json::from_str(response).unwrap_or_default(), progress);
            }
            "response.output_item.added" => {
                progress.begin();
                self.add_item(event.item.ok_or_else(no_item)?.get(), event.output_index())?;
            }
            "response.output_item.done" => {
                let item = event.item.ok_or_else(no_item)?.get();
                self.finish_item(item, event.output_index(), progress, out)?;
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let WireText(text) = event.delta().ok_or_else(|| Broken::malformed("no delta"))?;
                if let Some(slot) = self.slot(event).and_then(|it| self.slots.get_mut(it)) {
                    slot.text.push_str(&text);
                }
                progress.text(&text, out)?;
            }
            "response.function_call_arguments.delta" => {
                let WireText(text) = event.delta().ok_or_else(|| Broken::malformed("no delta"))?;
                progress.arguments(text.len())?;
                if let Some(call) = self.call(event) {
                    call.arguments.push_str(&text);
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(WireText(text)) = event.arguments()
                    && let Some(call) = self.call(event)
                {
                    call.arguments = text.into_owned();
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let WireText(text) = event.delta().ok_or_else(|| Broken::malformed("no delta"))?;
                progress.reasoning(&text, out)?;
            }
            "response.reasoning_summary_part.added" if event.is_further_summary() => {
                progress.reasoning("\n\n", out)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Format for Responses {
    fn take(
        &mut self,
        raw: &SseEvent<'_>,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken> {
        let data = raw.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event: ResponsesEvent<'_> = match serde_json::from_str(data) {
            Ok(event) if data.starts_with('{') => event,
            _ if raw.event.is_empty()
                || raw.event.starts_with("response.")
                || raw.event == "error" =>
            {
                return Err(Broken::malformed("an event cannot be read"));
            }
            _ => return Ok(()),
        };
        // Some servers count from 0, and some write the same number everywhere: 0 or less.
        if let Some(number) = event.number().filter(|it| 0 < *it) {
            if number <= self.last_number {
                return Ok(());
            }
            self.last_number = number;
        }
        let kind = event.kind.as_ref().map_or(raw.event.as_ref(), |it| it.0.as_ref());
        let response = event.response.map(|it| it.get());
        match (kind, response) {
            ("response.completed" | "response.done", Some(response)) => {
                self.conclude(response, "completed", progress, out)
            }
            ("response.incomplete", Some(response)) => {
                self.conclude(response, "incomplete", progress, out)
            }
            ("response.failed" | "response.cancelled", Some(response)) => {
                self.conclude(response, "failed", progress, out)
            }
            ("error" | "response.error", _) => {
                let error: Value = serde_json::from_str(data).unwrap_or_default();
                Err(failure::from_object(&error, progress.phase))
            }
            ("response.completed" | "response.incomplete" | "response.failed", None) => {
                Err(Broken::malformed("the last event has no response"))
            }
            _ => self.take_event(kind, &event, progress, out),
        }
    }

    fn show_previews(&mut self, out: &mut DeltaBatch<'_>) {
        for at in std::mem::take(&mut self.previews_due) {
            let call = self.slots.get_mut(at).and_then(|it| it.call.as_mut());
            call.into_iter().for_each(|it| it.show(out));
        }
    }

    fn is_whole(&self) -> bool {
        false
    }

    fn into_answer(self, progress: &ReadProgress) -> ModelAnswer {
        let mut content = BlockCollector::default();
        self.slots.into_iter().for_each(|it| content.add(it));
        let stop_reason = match self.stop_reason {
            Some(reason) => reason,
            None if content.refuses => StopReason::Refusal,
            None if content.blocks.iter().any(|it| it.as_tool_use().is_some()) => {
                StopReason::ToolUse
            }
            None => StopReason::EndTurn,
        };
        ModelAnswer {
            message_id: self.id,
            model: self.model,
            blocks: content.blocks,
            stop_reason,
            stop_sequence: None,
            refusal: None,
            usage: progress.usage.usage(),
            invalid_inputs: content.invalid_inputs,
        }
    }
}
