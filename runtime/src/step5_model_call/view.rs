//! The view compiler: the messages of a conversation as a provider will accept them.
//!
//! The only one: pairing of calls and results, the order of roles and what may not be
//! sent are decided here and nowhere else, so a request that would be refused cannot be built
//! (SHP-12). What is stored is never changed; what is left out or made up is named in the notes.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    block::{Block, BlockKind},
    ids::ToolUseId,
    message::{Message, Role},
};

#[cfg(test)]
mod acceptable;
mod fit_bytes;
mod grown;
mod note;
pub mod refused;
mod server_tools;
mod sized;
mod target;

#[cfg(test)]
pub(crate) use acceptable::is_acceptable_for;
pub use grown::{CarriedView, GrownView};
pub(super) use grown::{Extent, SettledMessage};
pub use note::ViewNote;
pub use target::ViewTarget;

/// What answers a call that has no result.
pub(crate) const INTERRUPTED: &str =
    "interrupted: the call has no result; what it did is not known";

/// Bytes of one image in base64 that a provider takes, 5 MiB before encoding.
pub(crate) const MAX_IMAGE_BYTES: usize = 7_000_000;

/// Bytes of all messages together; a whole request may hold 32 MB.
pub(crate) const MAX_VIEW_BYTES: usize = 31_000_000;

/// Bytes of one block of any other kind; a whole request may hold 32 MB.
pub(crate) const MAX_BLOCK_BYTES: usize = 30_000_000;

/// What a model is sent. Begins with a message of the user; roles alternate; every call is answered
/// in the message after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The messages, oldest first. None is empty.
    pub messages: Vec<ViewMessage>,
    /// What had to be repaired, in the order in which it was found.
    pub notes: Vec<ViewNote>,
}

/// One message of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewMessage {
    /// Author of the message; never [`Role::System`].
    pub role: Role,
    /// Never empty. Results of tools come first.
    pub blocks: Vec<Block>,
}

/// What asks a model to go on where a conversation ends with its own answer.
pub const GO_ON: &str =
    "<system-reminder>\nThe conversation was interrupted here. Go on.\n</system-reminder>";

impl View {
    /// Makes the conversation end with the user, as providers demand.
    pub fn end_with_user(&mut self) {
        if self.messages.last().is_some_and(|it| it.role == Role::Assistant) {
            let blocks = vec![Block::text(GO_ON)];
            self.messages.push(ViewMessage { role: Role::User, blocks });
            self.notes.push(ViewNote::EndsWithAnswer);
        }
    }

    /// Adds the begin of an answer that the provider has paused (`pause_turn`): it goes back
    /// unchanged, as the last message.
    pub(crate) fn push_answer(&mut self, blocks: &[Block]) {
        match self.messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some(last) if last.role == Role::Assistant => last.blocks.extend_from_slice(blocks),
            _ => {
                let blocks = blocks.to_vec();
                self.messages.push(ViewMessage { role: Role::Assistant, blocks });
            }
        }
    }
}

/// Compiles the view of a conversation, for the model that has answered so far.
pub fn compile(messages: &[Arc<Message>]) -> View {
    compile_for(messages, ViewTarget::default())
}

/// Compiles the view of a conversation, for a provider and a model that may not have been the ones before. What they
/// cannot read is left out or replaced by a text.
pub fn compile_for(messages: &[Arc<Message>], target: ViewTarget<'_>) -> View {
    let mut compiler = Compiler::new(target, None);
    compiler.compile(messages);
    compiler.fit(MAX_VIEW_BYTES);
    compiler.view
}

struct Compiler<'a> {
    target: ViewTarget<'a>,
    view: View,
    /// What is in front of the messages, where they go on from others.
    before: Option<&'a CarriedView>,
    results: BTreeMap<&'a ToolUseId, FoundCall<'a>>,
    /// The answer that is being put together, if its calls are not yet answered.
    open: Option<OpenAnswer<'a>>,
    /// Where answers begin: the place in the view, and that of the first message.
    starts: Vec<(usize, usize)>,
    /// Whether a result is of a call in front of the messages that had none.
    is_late: bool,
}

/// The place of a call's message, and the result once one is found after it, with the place of its.
type FoundCall<'a> = (usize, Option<(usize, &'a Block)>);

struct OpenAnswer<'a> {
    api_id: Option<&'a str>,
    calls: Vec<ToolUseId>,
}

type KeptMessages<'a> = Vec<(usize, &'a Message, Vec<Block>)>;

impl<'a> Compiler<'a> {
    fn new(target: ViewTarget<'a>, before: Option<&'a CarriedView>) -> Self {
        let (view, results) = (View::default(), BTreeMap::new());
        Self { target, view, before, results, open: None, starts: Vec::new(), is_late: false }
    }

    /// Everything but what follows from the size of all messages. Gives the first message of the view
    /// that holds a block of a server tool.
    fn compile(&mut self, messages: &'a [Arc<Message>]) -> Option<usize> {
        for (at, message, blocks) in self.sort_out(messages) {
            self.place(at, message, blocks);
        }
        self.answer_open_calls();
        self.drop_last_thinking();
        let View { messages, notes } = &mut self.view;
        messages.iter_mut().flat_map(|it| &mut it.blocks).for_each(target::give_plain_id);
        let served = messages.iter().position(|it| it.blocks.iter().any(server_tools::is_of_one));
        server_tools::settle(messages, self.target.format.features().server_tools, notes);
        served
    }

    fn fit(&mut self, max: usize) {
        fit_bytes::fit(&mut self.view.messages, max, &mut self.view.notes);
    }

    fn is_call(&self, id: &ToolUseId) -> bool {
        self.results.contains_key(id) || self.before.is_some_and(|it| it.has_call(id))
    }

    /// Leaves out what cannot be sent and finds the result of each call.
    fn sort_out(&mut self, messages: &'a [Arc<Message>]) -> KeptMessages<'a> {
        let mut kept: KeptMessages<'a> = Vec::with_capacity(messages.len());
        for (at, message) in messages.iter().enumerate() {
            let blocks: Vec<Block> = match message.role {
                Role::System => continue,
                Role::User => message.blocks.iter().filter_map(|it| self.of_user(at, it)).collect(),
                Role::Assistant if kept.is_empty() && self.before.is_none() => {
                    self.note_once(ViewNote::LeadingAnswer);
                    continue;
                }
                Role::Assistant => {
                    message.blocks.iter().filter_map(|it| self.of_answer(at, message, it)).collect()
                }
            };
            if !blocks.is_empty() {
                kept.push((at, message, blocks));
            }
        }
        kept
    }

    fn of_user(&mut self, at: usize, block: &'a Block) -> Option<Block> {
        match block.kind() {
            BlockKind::Text(_) | BlockKind::Opaque { .. } if block.is_odd() => self.doubtful(block),
            BlockKind::Text(text) => {
                (!text.trim().is_empty()).then(|| self.sized(self.target.text(block)))
            }
            BlockKind::Opaque { kind } => self.opaque(None, block, kind),
            BlockKind::ToolResult { id, .. } => {
                match self.results.get_mut(id) {
                    Some((_, result @ None)) => *result = Some((at, block)),
                    Some(_) => self.view.notes.push(ViewNote::SecondResult(id.clone())),
                    None if self.before.is_some_and(|it| it.has_call(id)) => {
                        self.is_late |= self.before.is_some_and(|it| it.lacks_result(id));
                        self.view.notes.push(ViewNote::SecondResult(id.clone()));
                    }
                    None => self.view.notes.push(ViewNote::ResultWithoutCall(id.clone())),
                }
                None
            }
            BlockKind::Thinking { .. }
            | BlockKind::RedactedThinking
            | BlockKind::ToolUse { .. } => {
                self.view.notes.push(ViewNote::WrongRole);
                None
            }
            BlockKind::StopRequest | BlockKind::Error(_) => None,
        }
    }

    fn of_answer(&mut self, at: usize, message: &Message, block: &'a Block) -> Option<Block> {
        match block.kind() {
            BlockKind::Text(_)
            | BlockKind::Opaque { .. }
            | BlockKind::Thinking { .. }
            | BlockKind::RedactedThinking
                if block.is_odd() =>
            {
                self.doubtful(block)
            }
            BlockKind::Text(text) => {
                (!text.trim().is_empty()).then(|| self.sized(self.target.text(block)))
            }
            BlockKind::Opaque { kind } => self.opaque(message.model.as_deref(), block, kind),
            BlockKind::Thinking { signature: None, .. } => {
                self.view.notes.push(ViewNote::UnsignedThinking);
                None
            }
            BlockKind::Thinking { .. } | BlockKind::RedactedThinking => {
                if self.target.reads_reasoning_of(message.model.as_deref()) {
                    return Some(block.clone());
                }
                self.note_once(ViewNote::ForeignReasoning);
                None
            }
            BlockKind::ToolUse { id, name, input } => {
                if self.is_call(id) {
                    self.view.notes.push(ViewNote::SecondCall(id.clone()));
                    return None;
                }
                self.results.insert(id, (at, None));
                Some(self.valid_call(block, id, name, input))
            }
            BlockKind::ToolResult { .. } => {
                self.view.notes.push(ViewNote::WrongRole);
                None
            }
            BlockKind::StopRequest | BlockKind::Error(_) => None,
        }
    }

    /// What may be sent of a block whose bytes a provider may refuse.
    fn doubtful(&mut self, block: &Block) -> Option<Block> {
        let (kind, kept): (&str, _) = match block.kind() {
            BlockKind::Text(text) => ("text", (!text.trim().is_empty()).then(|| Block::text(text))),
            BlockKind::Opaque { kind } => (kind, Some(server_tools::as_text(block))),
            BlockKind::RedactedThinking => ("redacted_thinking", None),
            _ => ("thinking", None),
        };
        let kept = kept.filter(|it| it.as_text().is_some_and(|it| !it.trim().is_empty()));
        self.view.notes.push(ViewNote::Doubtful { kind: kind.into() });
        kept.map(|it| self.sized(it))
    }

    /// A block that only its provider knows; `model` is the one that made it.
    fn opaque(&mut self, model: Option<&str>, block: &Block, kind: &str) -> Option<Block> {
        let kept = self.target.opaque(model, block, kind);
        let kind = kind.into();
        match &kept {
            None => self.view.notes.push(ViewNote::LeftOut { kind }),
            Some(kept) if kept.as_text().is_some() => {
                self.view.notes.push(ViewNote::AsText { kind });
            }
            Some(_) => {}
        }
        kept.map(|it| self.sized(it))
    }

    /// Puts a message after what is there, joined with its neighbour where roles are the same.
    fn place(&mut self, at: usize, message: &'a Message, mut blocks: Vec<Block>) {
        if message.role == Role::User {
            self.answer_open_calls();
            match self.view.messages.last_mut() {
                Some(last) if last.role == Role::User => last.blocks.append(&mut blocks),
                _ => self.push(Role::User, blocks),
            }
            return;
        }
        let api_id = message.api_id.as_deref();
        // Lines of one response belong together, also when results were written between them.
        // After the open calls of another response, their results come first.
        let joins = self.open.as_ref().is_some_and(|open| {
            open.calls.is_empty() || (api_id.is_some() && open.api_id == api_id)
        });
        if !joins {
            self.answer_open_calls();
        }
        let calls = blocks.iter().filter_map(Block::as_tool_use).map(|(id, ..)| id.clone());
        match self.open.as_mut() {
            Some(open) => {
                open.calls.extend(calls);
                open.api_id = api_id;
            }
            None => self.open = Some(OpenAnswer { api_id, calls: calls.collect() }),
        }
        match self.view.messages.last_mut() {
            Some(last) if last.role == Role::Assistant => last.blocks.append(&mut blocks),
            _ => {
                self.starts.push((self.view.messages.len(), at));
                self.push(Role::Assistant, blocks);
            }
        }
    }

    /// Closes the answer before: the results of its calls, in their order, begin a new message.
    fn answer_open_calls(&mut self) {
        let calls = self.open.take().map(|it| it.calls).unwrap_or_default();
        if calls.is_empty() {
            return;
        }
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            match self.results.get(&call) {
                Some((_, Some((_, result)))) => {
                    results.push(self.sized_result(result, &call));
                }
                Some((_, None)) | None => {
                    results.push(Block::tool_result(&call, INTERRUPTED, true));
                    self.view.notes.push(ViewNote::MissingResult(call));
                }
            }
        }
        self.push(Role::User, results);
    }

    /// An answer of reasoning alone at the end would be taken for the begin of the next one.
    fn drop_last_thinking(&mut self) {
        let is_thinking = |block: &Block| {
            matches!(block.kind(), BlockKind::Thinking { .. } | BlockKind::RedactedThinking)
        };
        let last = self.view.messages.last();
        if last.is_some_and(|it| it.role == Role::Assistant && it.blocks.iter().all(is_thinking)) {
            self.view.messages.pop();
            self.view.notes.push(ViewNote::ThinkingOnly);
        }
    }

    fn push(&mut self, role: Role, blocks: Vec<Block>) {
        self.view.messages.push(ViewMessage { role, blocks });
    }

    fn note_once(&mut self, note: ViewNote) {
        if !self.view.notes.contains(&note) {
            self.view.notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests;
