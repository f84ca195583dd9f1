//! Reads the stream of a Chat Completions answer.
//!
//! The format has no frame around calls and no event for the end of a part, so what a chunk means
//! follows from what came before it. When it is over: `[DONE]` settles the outcome. Many compatible
//! servers close without it; then a stream that gave a `finish_reason` is a whole message, and any
//! other is incomplete. `[DONE]` without a `finish_reason` is not a message: nothing says that the
//! text is whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use super::wire::{ChatChoice, ChatChunk, Fragment, Function};
use crate::{
    block::Block,
    digest::Digest,
    step5_model_call::{
        FailureClass, ModelAnswer, StopReason,
        openai_shared::{
            call::{CallIds, PartialCall},
            failure,
            reader::{Broken, Format, ReadProgress},
        },
        sse::SseEvent,
        stream::{DeltaBatch, MAX_BLOCKS, StreamPhase, wire::WireText},
    },
};

/// What has been read of a message.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    id: Arc<str>,
    model: Arc<str>,
    text: String,
    refuses: bool,
    calls: Vec<CallSlot>,
    /// The newest call of each index, and of each id that the server gave.
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
    ids: CallIds,
    finish_reason: Option<String>,
    /// Calls whose arguments grew since the last read.
    previews_due: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
struct CallSlot {
    /// As the server gave it; empty when it did not.
    said_id: String,
    call: PartialCall,
}

impl Chat {
    /// Makes a reader at the start of the answer to this request. Ids that a server leaves out are made from it.
    pub(crate) fn new(request: Digest) -> Self {
        Self {
            id: Arc::default(),
            model: Arc::default(),
            text: String::new(),
            refuses: false,
            calls: Vec::new(),
            by_index: BTreeMap::new(),
            by_id: BTreeMap::new(),
            ids: CallIds::new(request),
            finish_reason: None,
            previews_due: BTreeSet::new(),
        }
    }

    /// Takes a chunk or a whole answer.
    pub(super) fn read(
        &mut self,
        data: &str,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken> {
        let chunk: ChatChunk<'_> = serde_json::from_str(data)
            .map_err(|error| Broken::malformed(&format!("a chunk cannot be read: {error}")))?;
        if let Some(error) = chunk.error(data) {
            let error: Value = serde_json::from_str(error).unwrap_or_default();
            return Err(failure::from_object(&error, progress.phase));
        }
        if let Some(usage) = chunk.usage() {
            progress.take_usage(usage, out);
        }
        let shared = |text: Option<WireText<'_>>| text.map(|it| Arc::from(it.0.as_ref()));
        let name = |known: &Arc<str>, given: Option<WireText<'_>>| {
            if known.is_empty() { shared(given).unwrap_or_default() } else { Arc::clone(known) }
        };
        self.id = name(&self.id, chunk.id);
        self.model = name(&self.model, chunk.model);
        for choice in chunk.choices.into_iter().flatten() {
            // Further choices were not asked for.
            if choice.index.unwrap_or(0) == 0 {
                progress.begin();
                self.take_choice(choice, progress, out)?;
            }
        }
        Ok(())
    }

    fn take_choice(
        &mut self,
        mut choice: ChatChoice<'_>,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken> {
        let delta = choice.delta();
        if let Some(text) = delta.reasoning() {
            progress.reasoning(&text, out)?;
        }
        if let Some(text) = delta.content() {
            self.text.push_str(&text);
            progress.text(&text, out)?;
        }
        if let Some(WireText(text)) = delta.refusal.filter(|it| !it.0.is_empty()) {
            self.refuses = true;
            self.text.push_str(&text);
            progress.text(&text, out)?;
        }
        for fragment in delta.tool_calls.into_iter().flatten() {
            self.take_fragment(&fragment, progress)?;
        }
        if let Some(function) = delta.function_call {
            let fragment = Fragment { function: Some(function), ..Fragment::default() };
            self.take_fragment(&fragment, progress)?;
        }
        if let Some(WireText(reason)) = choice.finish_reason.filter(|it| !it.0.is_empty()) {
            if let Some(broken) = failure_of(&reason) {
                return Err(broken);
            }
            self.finish_reason = Some(reason.into_owned());
        }
        Ok(())
    }

    fn take_fragment(
        &mut self,
        fragment: &Fragment<'_>,
        progress: &mut ReadProgress,
    ) -> Result<(), Broken> {
        let word =
            |text: Option<&WireText<'_>>| text.map(|it| it.0.to_string()).unwrap_or_default();
        let said_id = word(fragment.id.as_ref());
        let function = fragment.function.as_ref();
        let name = word(function.and_then(|it| it.name.as_ref()));
        let arguments = function.map(Function::arguments).unwrap_or_default();
        progress.arguments(said_id.len() + name.len() + arguments.len())?;
        let at = self.slot_of(fragment.index, &said_id, &name, &arguments);
        let at = match at {
            Some(at) => at,
            None => self.begin_call(fragment.index, said_id)?,
        };
        if let Some(CallSlot { call, .. }) = self.calls.get_mut(at) {
            if call.name.is_empty() {
                call.name = name;
            }
            call.arguments.push_str(&arguments);
            self.previews_due.insert(at);
        }
        Ok(())
    }

    fn begin_call(&mut self, index: Option<u64>, said_id: String) -> Result<usize, Broken> {
        let at = self.calls.len();
        if MAX_BLOCKS <= at {
            return Err(Broken::too_large("the answer has too many calls"));
        }
        self.by_index.extend(index.map(|it| (it, at)));
        if !said_id.is_empty() {
            self.by_id.insert(said_id.clone(), at);
        }
        let call = PartialCall::new(self.ids.next(Some(&said_id)), "");
        self.calls.push(CallSlot { said_id, call });
        Ok(at)
    }

    /// The call that a fragment adds to; `None` when it begins one.
    ///
    /// By index. Without one: by id, and a fragment without id belongs to the call before unless it
    /// names a function. Some servers give every call the same index, or name id and function in
    /// every fragment; so a fragment with a name begins another call if its id is another one, or
    /// if the call it would add to is whole already.
    fn slot_of(
        &mut self,
        index: Option<u64>,
        said_id: &str,
        name: &str,
        arguments: &str,
    ) -> Option<usize> {
        let at = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if !said_id.is_empty() => self.by_id.get(said_id).copied(),
            None => self.calls.len().checked_sub(1),
        }?;
        let slot = self.calls.get_mut(at)?;
        let is_named = !name.is_empty() && !slot.call.name.is_empty();
        let other_id = !said_id.is_empty() && !slot.said_id.is_empty() && slot.said_id != said_id;
        let other_name = index.is_none() && slot.call.name != name;
        let is_another =
            is_named && (other_id || other_name || (!arguments.is_empty() && slot.call.is_whole()));
        (!is_another).then_some(at)
    }
}

/// A reason that means: there is no answer.
fn failure_of(finish_reason: &str) -> Option<Broken> {
    let class = match finish_reason {
        "error" | "abort" => FailureClass::StreamBroken,
        "insufficient_system_resource" => FailureClass::Overloaded,
        _ => return None,
    };
    let message = "the server gave up on its answer".into();
    Some(Broken { class, code: finish_reason.into(), message, is_ours: false })
}

impl Format for Chat {
    fn take(
        &mut self,
        event: &SseEvent<'_>,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken> {
        let data = event.data.trim();
        if data == "[DONE]" {
            if self.finish_reason.is_none() {
                return Err(Broken::protocol("the stream is done without a finish reason"));
            }
            progress.phase = StreamPhase::Complete;
            return Ok(());
        }
        // The format has no event names. One that is there belongs to something else, unless it
        // reads like a chunk; and an array would be read like a struct.
        if !data.starts_with('{') {
            return if data.is_empty() || !event.event.is_empty() {
                Ok(())
            } else {
                Err(Broken::malformed("a chunk is not an object"))
            };
        }
        self.read(data, progress, out)
    }

    fn show_previews(&mut self, out: &mut DeltaBatch<'_>) {
        for at in std::mem::take(&mut self.previews_due) {
            self.calls.get_mut(at).into_iter().for_each(|it| it.call.show(out));
        }
    }

    fn is_whole(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn into_answer(self, progress: &ReadProgress) -> ModelAnswer {
        let mut invalid_inputs = Vec::new();
        let mut blocks = Vec::with_capacity(self.calls.len() + 1);
        if !self.text.is_empty() {
            blocks.push(Block::text(&self.text));
        }
        let has_calls = !self.calls.is_empty();
        blocks.extend(self.calls.into_iter().map(|it| it.call.finish(&mut invalid_inputs)));
        let stop_reason = match self.finish_reason.as_deref().unwrap_or_default() {
            "length" | "max_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            _ if self.refuses => StopReason::Refusal,
            // Servers say "stop" with calls, and "tool_calls" without.
            _ if has_calls => StopReason::ToolUse,
            "" | "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn" => {
                StopReason::EndTurn
            }
            "stop_sequence" => StopReason::StopSequence,
            other => StopReason::Other(other.into()),
        };
        ModelAnswer {
            message_id: self.id,
            model: self.model,
            blocks,
            stop_reason,
            stop_sequence: None,
            refusal: None,
            usage: progress.usage.usage(),
            invalid_inputs,
        }
    }
}
