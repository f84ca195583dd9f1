//! The view that later turns have of the conversation, as a transcript has it.
//!
//! What the stages left is recorded as a change of what was there before: messages that are not shown any
//! more, and texts that are shown in part. A text is recorded by its two ends and the words between them, so
//! a record is short however long the text is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    block::{Block, BlockKind},
    ids::EntryId,
    json::escaped_len,
    message::{Message, Messages, SharedMessages},
    run::{conversation::ShapedView, history::History},
    saturating::Saturating as _,
    transcript::entry::{CutText, ViewChange},
};

/// Bytes of the changes in one record.
const MAX_BYTES: usize = 3_000;

/// Bytes of the numbers and names in one change, at most.
const MAX_FRAME: usize = 100;

/// All changes since the last compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedView {
    changes: Vec<ViewChange>,
    /// Messages whose pictures and documents a provider refused; a compaction changes nothing about these.
    without_media: BTreeSet<EntryId>,
}

impl RecordedView {
    /// Adds a change, which was made after those that are there.
    pub(crate) fn note(&mut self, change: &ViewChange) {
        self.without_media.extend(change.without_media.iter().cloned());
        if !change.dropped.is_empty() || !change.cut.is_empty() {
            self.changes.push(change.clone());
        }
    }

    /// Forgets the changes: a summary is in the place of what was shown, and what is shown after it is recorded anew.
    pub(crate) fn compacted(&mut self) {
        self.changes.clear();
    }

    /// Returns the messages whose pictures and documents are left out.
    pub(crate) fn without_media(&self) -> &BTreeSet<EntryId> {
        &self.without_media
    }

    /// Returns the view of this history; `None` where it is shown as it is. Changes that were made after a message
    /// that is not part of it (a session went back to before it) are none of its own.
    pub(crate) fn of(&self, history: &History) -> Option<ShapedView> {
        if self.changes.is_empty() {
            return None;
        }
        let places: BTreeMap<&EntryId, usize> =
            history.iter().enumerate().map(|(at, it)| (&it.id, at)).collect();
        let mut shown: Vec<Option<Arc<Message>>> = history.iter().cloned().map(Some).collect();
        let mut covered = 0;
        for change in &self.changes {
            let Some(after) = places.get(&change.after) else { continue };
            covered = covered.max(after + 1);
            for (first, last) in &change.dropped {
                if let (Some(first), Some(last)) = (places.get(first), places.get(last)) {
                    shown.iter_mut().take(last + 1).skip(*first).for_each(|it| *it = None);
                }
            }
            for cut in &change.cut {
                let message = places.get(&cut.entry).and_then(|it| shown.get_mut(*it)?.as_mut());
                if let Some(message) = message
                    && let Some(block) = block_at(message, cut).and_then(|it| applied(it, cut))
                {
                    Arc::make_mut(message).blocks[usize::saturating(cut.block)] = block;
                }
            }
        }
        shown.truncate(covered);
        Some(ShapedView::new(shown.into_iter().flatten().collect(), covered))
    }
}

/// Returns the records of what leads from one view to another. Messages that are new in it are in the transcript.
pub(crate) fn changes(before: &SharedMessages, after: &Messages) -> Vec<ViewChange> {
    let Some(last) = after.last().map(|it| it.id.clone()) else { return Vec::new() };
    let known: BTreeSet<&EntryId> = before.walk().map(|it| &it.id).collect();
    let mut left = after.iter().filter(|it| known.contains(&it.id)).peekable();
    let mut records = Records { after: last, full: Vec::new(), n_bytes: 0 };
    let mut gap: Option<(EntryId, EntryId)> = None;
    for old in before.walk() {
        match left.next_if(|it| it.id == old.id) {
            Some(new) => {
                gap.take().into_iter().for_each(|it| records.drop(it));
                if !Arc::ptr_eq(old, new) {
                    cuts(old, new).for_each(|it| records.cut(it));
                }
            }
            None => match &mut gap {
                Some((_, last)) => *last = old.id.clone(),
                None => gap = Some((old.id.clone(), old.id.clone())),
            },
        }
    }
    gap.into_iter().for_each(|it| records.drop(it));
    records.full
}

/// Returns the records of messages whose pictures and documents are left out from now on.
pub(crate) fn refusals(entries: &[EntryId]) -> Vec<ViewChange> {
    let Some(last) = entries.last() else { return Vec::new() };
    let mut records = Records { after: last.clone(), full: Vec::new(), n_bytes: 0 };
    for entry in entries {
        let n_bytes = escaped_len(entry.as_str());
        records.with_room(n_bytes, |it| it.without_media.push(entry.clone()));
    }
    records.full
}

/// Changes, as many in a record as it has room for.
struct Records {
    after: EntryId,
    full: Vec<ViewChange>,
    n_bytes: usize,
}

impl Records {
    fn drop(&mut self, (first, last): (EntryId, EntryId)) {
        let n_bytes = escaped_len(first.as_str()) + escaped_len(last.as_str());
        self.with_room(n_bytes, |it| it.dropped.push((first, last)));
    }

    fn cut(&mut self, cut: CutText) {
        let n_bytes = escaped_len(cut.entry.as_str()) + escaped_len(&cut.shown);
        self.with_room(n_bytes, |it| it.cut.push(cut));
    }

    /// Adds to the last record, or to a new one. What no record has room for is left out: the text is shown
    /// whole after a resume, and cut again.
    fn with_room(&mut self, n_bytes: usize, add: impl FnOnce(&mut ViewChange)) {
        let n_bytes = n_bytes.saturating_add(MAX_FRAME);
        if MAX_BYTES < n_bytes {
            return;
        }
        if self.full.is_empty() || MAX_BYTES < self.n_bytes.saturating_add(n_bytes) {
            self.full.push(ViewChange::after(self.after.clone()));
            self.n_bytes = 0;
        }
        self.n_bytes += n_bytes;
        if let Some(last) = self.full.last_mut() {
            add(last);
        }
    }
}

/// The blocks of a message that differ. One that is not part of what it was is left out.
fn cuts(old: &Message, new: &Message) -> impl Iterator<Item = CutText> {
    let blocks = old.blocks.iter().zip(&new.blocks).enumerate();
    let differing = blocks.filter(|(_, (old, new))| old != new);
    differing.filter_map(|(at, (before, after))| {
        let cut = cut_between(text_of(before)?, text_of(after)?);
        let cut = CutText { entry: old.id.clone(), block: u32::saturating(at), ..cut };
        applied(before, &cut).filter(|it| it == after).map(|_| cut)
    })
}

fn text_of(block: &Block) -> Option<&str> {
    block.as_text().or_else(|| block.as_tool_result().map(|(_, text, _)| text))
}

/// What both texts begin and end with, and what is between that in the second.
fn cut_between(before: &str, after: &str) -> CutText {
    let both = before.len().min(after.len());
    let same = |(a, b): &(u8, u8)| a == b;
    let mut head = before.bytes().zip(after.bytes()).take_while(same).count();
    while !before.is_char_boundary(head) || !after.is_char_boundary(head) {
        head -= 1;
    }
    let ends = before.bytes().rev().zip(after.bytes().rev()).take(both - head);
    let mut tail = ends.take_while(same).count();
    let starts_char = |text: &str, tail: usize| text.is_char_boundary(text.len() - tail);
    while !starts_char(before, tail) || !starts_char(after, tail) {
        tail -= 1;
    }
    CutText {
        entry: "".into(),
        block: 0,
        head: head as u64,
        shown: after[head..after.len() - tail].to_owned(),
        tail: tail as u64,
    }
}

fn block_at<'m>(message: &'m Message, cut: &CutText) -> Option<&'m Block> {
    message.blocks.get(usize::saturating(cut.block))
}

/// The block with its text in part; `None` where its text is not the one that was cut.
fn applied(block: &Block, cut: &CutText) -> Option<Block> {
    let text = text_of(block)?;
    let (head, tail) = (usize::saturating(cut.head), usize::saturating(cut.tail));
    let end = text.len().checked_sub(tail).filter(|it| head <= *it)?;
    let text = [text.get(..head)?, &cut.shown, text.get(end..)?].concat();
    match block.kind() {
        BlockKind::ToolResult { id, is_error, .. } => {
            Some(Block::tool_result(id, &text, *is_error))
        }
        _ => Some(Block::text(&text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::ToolUseId, message::MessageKind};

    fn results(texts: &[&str]) -> Messages {
        let message = |(i, text): (usize, &&str)| {
            let block = Block::tool_result(&ToolUseId::from(format!("t{i}")), text, i == 1);
            let blocks = vec![Block::text("kept"), block];
            Arc::new(Message::user(format!("m{i}").into(), MessageKind::ToolResults, blocks))
        };
        texts.iter().enumerate().map(message).collect()
    }

    /// What a transcript with these changes of a conversation says that is shown of it.
    fn view_of(whole: &Messages, steps: &[Messages]) -> Messages {
        let mut recorded = RecordedView::default();
        let mut before = whole.clone();
        for after in steps {
            changes(&before.clone().into(), after).iter().for_each(|it| recorded.note(it));
            before.clone_from(after);
        }
        let view = recorded.of(&whole.iter().cloned().collect());
        view.map_or(whole.clone(), |it| it.messages.to_vec())
    }

    // REQ: SHP-6, SES-4
    #[test]
    fn view_is_what_its_changes_make_of_the_conversation() {
        let long = "日本語 word ".repeat(500);
        let whole = results(&[&long, &long, "short", "short", &long]);
        let mut cut = results(&["日本 [mark] word ", "[cleared]", "short", "short", &long]);
        let once = cut.clone();
        cut[0] = Arc::clone(&results(&["[cleared]"])[0]);
        cut.drain(2..4);
        assert_eq!(view_of(&whole, std::slice::from_ref(&once)), once);
        assert_eq!(view_of(&whole, &[once, cut.clone()]), cut);
        assert_eq!(view_of(&whole, std::slice::from_ref(&whole)), whole);
    }

    // REQ: SES-1
    #[test]
    fn changes_of_many_messages_are_in_records_that_have_room_for_them() {
        let long = "word ".repeat(100);
        let before = results(&vec![long.as_str(); 500]);
        let mark = format!("[mark of {}]", "a path ".repeat(40));
        let after = results(&vec![mark.as_str(); 500]);
        let records = changes(&before.clone().into(), &after);
        let sizes = records.iter().map(|it| serde_json::to_string(it).unwrap().len());
        assert!(sizes.max() < Some(3_500), "{}", records.len());
        assert_eq!(records.iter().map(|it| it.cut.len()).sum::<usize>(), 500);
    }

    // REQ: SES-5
    #[test]
    fn change_that_was_made_after_a_message_of_another_branch_is_not_applied() {
        let long = "word ".repeat(100);
        let whole = results(&[&long, &long, &long]);
        let after = results(&["[cleared]", &long, &long]);
        let mut recorded = RecordedView::default();
        changes(&whole.clone().into(), &after).iter().for_each(|it| recorded.note(it));
        let branch: History = whole[..2].iter().cloned().collect();
        assert_eq!(recorded.of(&branch).map(|it| (it.messages.len(), it.covered)), Some((0, 0)));
        assert_eq!(recorded.of(&whole.iter().cloned().collect()).map(|it| it.covered), Some(3));
    }

    // REQ: SES-4
    #[test]
    fn cut_of_a_text_that_is_not_the_one_that_was_cut_leaves_it_whole() {
        let cut = CutText { entry: "m0".into(), block: 1, head: 4, shown: "…".into(), tail: 4 };
        for (text, is_cut) in
            [("0123456789", true), ("01234567", true), ("0123456", false), ("012日6789", false)]
        {
            let found = applied(&Block::text(text), &cut);
            assert_eq!(found.is_some(), is_cut, "{text}");
        }
    }
}
