//! A conversation as far as one of its lines, to go on from there.

use super::{LoadAs, Loaded, load};
use crate::{
    ids::EntryId,
    transcript::{
        entry::{Record, RecordKind},
        lines::FileLines,
        read::Entry,
    },
};

/// Loads a file up to and including this line. What comes after it stays in the file and is not part of the
/// conversation. `None` where no line of the conversation has this name, or where a hook refused it as a
/// prompt: no model is to read that one.
pub fn load_until(bytes: &[u8], load_as: LoadAs, until: &EntryId) -> Option<Loaded> {
    let file = FileLines::read(bytes);
    end_of(&file, load_as, until).map(|end| load(&bytes[..end], load_as))
}

/// Where the line of this name ends in the file.
fn end_of(file: &FileLines<'_>, load_as: LoadAs, until: &EntryId) -> Option<usize> {
    let mut found = None;
    for line in file.iter() {
        match line.read.as_ref().map(|it| &it.entry) {
            Some(Entry::Conversation { line: conversation, sidechain, .. }) => {
                let is_ours = *sidechain == (load_as == LoadAs::Sidechain);
                if is_ours && found.is_none() && conversation.message.id == *until {
                    let end = line.offset + line.bytes.len() + usize::from(line.is_terminated);
                    found = Some(end);
                }
            }
            Some(Entry::Harness(records)) => {
                let withdraws = |it: &Record| matches!(&it.what, RecordKind::PromptWithdrawn(it) if it.prompt == *until);
                if records.iter().any(withdraws) {
                    return None;
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        message::{MessageKind, Role},
        turn::tests::random::random,
    };

    /// Cuts a random session at eight of its messages. A summary is the first message, followed by those that
    /// its compaction kept.
    fn check(seed: u64) {
        let bytes = random(seed).bytes();
        let all = load(&bytes, LoadAs::Session).recorded;
        // Each is a load of its own.
        let conversation = all.iter().filter(|it| it.role != Role::System);
        for message in conversation.step_by(1 + all.len() / 8) {
            let cut = load_until(&bytes, LoadAs::Session, &message.id).unwrap();
            assert_eq!(cut.last.as_ref(), Some(&message.id));
            let at = match message.kind {
                MessageKind::CompactSummary => cut.recorded.first(),
                _ => cut.recorded.last(),
            };
            assert_eq!(at.map(|it| &it.id), Some(&message.id));
        }
        assert!(load_until(&bytes, LoadAs::Session, &"no such line".into()).is_none());
    }

    // REQ: SES-5
    #[test]
    fn session_is_cut_at_a_summary_that_kept_messages() {
        check(8_655_245_337_962_120_647);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]

        // REQ: SES-5
        #[test]
        fn conversation_that_is_cut_ends_with_the_line_and_holds_nothing_after_it(seed in any::<u64>()) {
            check(seed);
        }
    }
}
