//! The digest of a request as a chain over its items, of which the unchanged front is kept.

use crate::{
    digest::Digest,
    shared::SharedList,
    step5_model_call::{
        openai_shared::forms::Forms,
        view::{Extent, SettledMessage, ViewMessage},
    },
};

/// The chain of the request before, so that only what is new is hashed. What a view says is settled is
/// not even compared, where it is as in the view before.
#[derive(Clone, Debug, Default)]
pub struct PrefixChain {
    pub(super) head: Digest,
    /// Each item (role or block) of the settled messages, and the chain up to and with it.
    settled: SharedList<(Digest, Digest)>,
    n_settled_messages: usize,
    up_to: Extent,
    /// Each item after them, and the chain up to and with it.
    pub(super) links: Vec<(Digest, Digest)>,
    /// The first item of the request before that is not in this one, at its place.
    changed: Option<usize>,
    /// Messages in the form of another provider.
    pub(in crate::step5_model_call) forms: Forms,
}

impl PrefixChain {
    /// Returns the place of the first item (role or block) of the request before that this one does not have there;
    /// `None` when it continues the one before.
    pub(crate) fn first_change(&self) -> Option<usize> {
        self.changed
    }

    /// Extends the chain to head and messages, and returns its digest; hashes only after the last item that is as
    /// before.
    pub(in crate::step5_model_call) fn follow(
        &mut self,
        head: Digest,
        settled: &SharedList<SettledMessage>,
        rest: &[ViewMessage],
    ) -> Digest {
        let last_settled = self.n_settled_messages.checked_sub(1).and_then(|it| settled.get(it));
        let is_settled = last_settled.is_some_and(|it| it.up_to == self.up_to);
        if 0 < self.n_settled_messages && (!is_settled || self.head != head) {
            let all = self.settled.iter().chain(&self.links).copied().collect();
            *self = Self {
                head: self.head,
                links: all,
                forms: std::mem::take(&mut self.forms),
                ..Self::default()
            };
        }
        // After another head nothing of the chain holds, but what was sent is still known.
        let mut holds = self.head == head;
        self.head = head;
        let first = self.settled.len();
        let mut last = self.settled.last().map_or(head, |(_, after)| *after);
        let n_before = self.links.len();
        let mut n_same = 0;
        let mut n_items = 0;
        let new = settled.iter_from(self.n_settled_messages).map(|it| &*it.message);
        for item in new.chain(rest).flat_map(ViewMessage::items) {
            match self.links.get_mut(n_items) {
                Some((same, after)) if *same == item => {
                    if !holds {
                        *after = last.chain(item);
                    }
                    last = *after;
                    n_same += usize::from(n_same == n_items);
                }
                _ => {
                    holds = false;
                    self.links.truncate(n_items);
                    last = last.chain(item);
                    self.links.push((item, last));
                }
            }
            n_items += 1;
        }
        self.links.truncate(n_items);
        self.changed = (n_same < n_before).then_some(first + n_same);
        self.n_settled_messages = settled.len();
        self.up_to = settled.last().map(|it| it.up_to).unwrap_or_default();
        let n_more = self.up_to.n_items.saturating_sub(first);
        self.links.drain(..n_more).for_each(|it| self.settled.push(it));
        last
    }
}
