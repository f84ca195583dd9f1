//! The view of a conversation that only grows: what cannot change any more is kept.
//!
//! A message that is added joins the newest ones at most: results go to the last answer, and text to
//! what the user said after it. So whatever is in front of an answer whose results are all in front of
//! the next one is settled, and the next view goes on from there. Where a message before that is another
//! one or the answer after it is, a call that had no result gets one, or all messages together are too
//! large, the whole is compiled anew: the view is always what [`compile_for`](super::compile_for) makes.

use std::sync::Arc;

use super::{Compiler, MAX_VIEW_BYTES, View, ViewMessage, ViewTarget};
use crate::{
    block::Block,
    digest::Digest,
    ids::ToolUseId,
    message::{Message, Messages, Role, SharedMessages},
    shared::{SharedList, SharedSet},
    step5_model_call::wire_format::WireFormat,
};

/// Mark, among the digests of blocks, where a message begins. No digest of a block takes these values
/// but by chance.
const USER: Digest = Digest(*b"ennead role user");
const ASSISTANT: Digest = Digest(*b"ennead role asst");

/// Messages of a view that are never settled, the newest: where marks go and what a request says in
/// front of its messages depends on them.
const NEWEST: usize = 4;

/// What of the view before is still so. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CarriedView {
    format: WireFormat,
    model: Option<Arc<str>>,
    /// The messages in front of the conversation.
    front: Messages,
    /// The conversation as it was compiled last.
    conversation: SharedMessages,
    /// Messages of both that are settled. After them comes an answer, if there is one; another message in its place
    /// may be joined with what is settled.
    n_sources: usize,
    /// The calls in them.
    calls: SharedSet<ToolUseId>,
    /// Those of the calls that have no result.
    unanswered: SharedSet<ToolUseId>,
    settled: SharedList<SettledMessage>,
    looks: u64,
}

/// A view in two parts: what is settled, and what follows it.
#[derive(Clone, Debug, Default)]
pub struct GrownView {
    pub(in crate::step5_model_call) settled: SharedList<SettledMessage>,
    /// What follows. Its notes are those that are new.
    pub rest: View,
}

/// A settled message, and how much there is up to and with it.
#[derive(Clone, Debug)]
pub(in crate::step5_model_call) struct SettledMessage {
    pub(in crate::step5_model_call) message: Arc<ViewMessage>,
    pub(in crate::step5_model_call) up_to: Extent,
}

/// How much is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::step5_model_call) struct Extent {
    /// Number of items: the role and each block of a message.
    pub(in crate::step5_model_call) n_items: usize,
    /// Bytes of the messages in a request, each with a comma after it.
    pub(in crate::step5_model_call) n_bytes: usize,
    /// Bytes of the messages, as [`View`] counts them.
    n_view_bytes: usize,
    /// The digest of the items, in order.
    pub(in crate::step5_model_call) digest: Digest,
}

impl CarriedView {
    /// Compiles the view of a conversation, and of the messages in front of it, for this reader; the next one goes on
    /// from it.
    pub fn compile(
        &mut self,
        front: &[Arc<Message>],
        conversation: &SharedMessages,
        target: ViewTarget<'_>,
    ) -> GrownView {
        let goes_on = self.format == target.format
            && self.model.as_deref() == target.model
            && self.holds(front, conversation);
        self.conversation = conversation.clone();
        if goes_on && let Some(view) = self.go_on(target) {
            return view;
        }
        *self = Self {
            format: target.format,
            model: target.model.map(Into::into),
            front: front.to_vec(),
            conversation: conversation.clone(),
            looks: self.looks,
            ..Self::default()
        };
        // Where nothing is settled there always is one.
        self.go_on(target).unwrap_or_default()
    }

    /// Returns whether what is settled, and the answer after it, are the same messages here.
    fn holds(&self, front: &[Arc<Message>], conversation: &SharedMessages) -> bool {
        let is_same = |(a, b): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(a, b);
        let n_of_conversation = match self.n_sources {
            0 => 0,
            n_sources => (n_sources + 1).saturating_sub(front.len()),
        };
        self.front.len() == front.len()
            && self.front.iter().zip(front).all(is_same)
            && self.conversation.shares(conversation, n_of_conversation)
    }

    /// Counts the messages of conversations that were compiled so far.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// Returns whether a list was made of the conversation that was compiled last.
    #[cfg(test)]
    pub(crate) fn has_slice(&self) -> bool {
        self.conversation.has_slice()
    }

    pub(super) fn has_call(&self, id: &ToolUseId) -> bool {
        self.calls.contains(id)
    }

    pub(super) fn lacks_result(&self, id: &ToolUseId) -> bool {
        self.unanswered.contains(id)
    }

    /// Compiles what follows the settled part; nothing when that part does not hold any more.
    fn go_on(&mut self, target: ViewTarget<'_>) -> Option<GrownView> {
        let n_front = self.n_sources.min(self.front.len());
        let of_conversation = self.conversation.walk_from(self.n_sources - n_front);
        let new: Messages = self.front[n_front..].iter().chain(of_conversation).cloned().collect();
        self.looks += new.len() as u64;
        let is_settled = self.n_sources != 0;
        let mut compiler = Compiler::new(target, is_settled.then_some(&*self));
        let served = compiler.compile(&new);
        let is_large =
            MAX_VIEW_BYTES < self.extent().n_view_bytes + bytes_of(&compiler.view.messages);
        if is_settled && (is_large || compiler.is_late) {
            return None;
        }
        compiler.fit(MAX_VIEW_BYTES);
        let end = (!is_large).then(|| settled_end(&compiler, new.len(), served)).flatten();
        let (n_settled, n_sources) = end.unwrap_or_default();
        let calls = compiler.results.iter().filter(|(_, (at, _))| *at < n_sources);
        let calls: Vec<_> = calls.map(|(id, (_, it))| ((*id).clone(), it.is_some())).collect();
        let mut rest = compiler.view;
        for (id, is_answered) in calls {
            if !is_answered {
                self.unanswered.insert(id.clone());
            }
            self.calls.insert(id);
        }
        self.n_sources += n_sources;
        for message in rest.messages.drain(..n_settled) {
            let up_to = self.extent().with(&message);
            self.settled.push(SettledMessage { message: Arc::new(message), up_to });
        }
        Some(GrownView { settled: self.settled.clone(), rest })
    }

    fn extent(&self) -> Extent {
        self.settled.last().map(|it| it.up_to).unwrap_or_default()
    }
}

impl GrownView {
    /// Returns the view in one part.
    pub fn whole(&self) -> View {
        let settled = self.settled.iter().map(|it| ViewMessage::clone(&it.message));
        let messages = settled.chain(self.rest.messages.iter().cloned()).collect();
        View { messages, notes: self.rest.notes.clone() }
    }
}

impl From<View> for GrownView {
    fn from(rest: View) -> Self {
        Self { settled: SharedList::default(), rest }
    }
}

impl Extent {
    fn with(self, message: &ViewMessage) -> Self {
        Self {
            n_items: self.n_items + message.blocks.len() + 1,
            n_bytes: self.n_bytes + message.wire_len() + 1,
            n_view_bytes: self.n_view_bytes + bytes_of(std::slice::from_ref(message)),
            digest: message.items().fold(self.digest, Digest::chain),
        }
    }
}

impl ViewMessage {
    /// Returns what a request of the Messages API holds in front of the blocks, with a comma where the message follows
    /// another one.
    pub(in crate::step5_model_call) fn opening(&self, follows: bool) -> &'static str {
        let text = match self.role {
            Role::User | Role::System => r#",{"role":"user","content":["#,
            Role::Assistant => r#",{"role":"assistant","content":["#,
        };
        if follows { text } else { &text[1..] }
    }

    /// Counts the bytes in such a request, without marks for the cache.
    pub(in crate::step5_model_call) fn wire_len(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|it| it.wire_len() + 1).sum();
        // After each block but the last there is a comma.
        self.opening(false).len() + blocks.saturating_sub(1) + "]}".len()
    }

    /// Returns role and blocks, as digests.
    pub(in crate::step5_model_call) fn items(&self) -> impl Iterator<Item = Digest> {
        let role = match self.role {
            Role::User | Role::System => USER,
            Role::Assistant => ASSISTANT,
        };
        std::iter::once(role).chain(self.blocks.iter().map(Block::digest))
    }
}

/// Where an answer begins that nothing in front of it is waiting for: the place in the view, and that
/// of its first message among the `n_new` that were compiled.
fn settled_end(
    compiler: &Compiler<'_>,
    n_new: usize,
    served: Option<usize>,
) -> Option<(usize, usize)> {
    // Server tools pair by rules of their own.
    let n_old = compiler.view.messages.len().saturating_sub(NEWEST);
    let n_old = n_old.min(served.unwrap_or(n_old));
    let mut waiting = vec![0_i64; n_new + 2];
    for (call, result) in compiler.results.values() {
        if let Some((result, _)) = result {
            waiting[call + 1] += 1;
            waiting[result + 1] -= 1;
        }
    }
    let mut depth = 0;
    for place in &mut waiting {
        depth += *place;
        *place = depth;
    }
    let is_end =
        |(at, first): &&(usize, usize)| 0 < *at && *at <= n_old && waiting.get(*first) == Some(&0);
    compiler.starts.iter().rev().find(is_end).copied()
}

fn bytes_of(messages: &[ViewMessage]) -> usize {
    messages.iter().flat_map(|it| &it.blocks).map(|it| it.wire_open().len()).sum()
}
