//! Takes lines in one by one and gives the conversation at any of them.
//!
//! A session that was resumed often is loaded as often when it is walked again, each time up to another
//! line. What was put together before is kept, and where the new lines only go on from it they are
//! added to it; else the links are followed anew.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    BackgroundTasks, LoadAs, OpenRun, RecordedState, Report, ReportKind,
    chain::{Base, Nodes},
};
use crate::{
    block::Block,
    ids::EntryId,
    message::Message,
    run::history::History,
    step::Step,
    transcript::entry::ShownPart,
    transcript::{
        entry::{Record, RecordKind, WithdrawnPrompt},
        read::{Entry, ReadLine},
        seal::Seal,
    },
};

/// The lines so far.
pub(crate) struct Loader {
    load_as: LoadAs,
    pub(super) nodes: Nodes,
    pub(super) sums: TranscriptSums,
    base: Option<Base>,
    /// How often links were followed from the newest line back.
    #[cfg(test)]
    pub(crate) n_walks: usize,
}

/// What all lines together say; nothing of the conversation itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TranscriptSums {
    pub(super) state: RecordedState,
    pub(super) background: BackgroundTasks,
    /// What of the context was appended, oldest first.
    pub(super) appended: Vec<ShownPart>,
    pub(super) open_run: Option<OpenRun>,
}

impl TranscriptSums {
    /// Takes in one line. `is_ours` says which lines of the conversation are those that are loaded.
    fn note(&mut self, entry: &Entry, is_ours: impl Fn(bool) -> bool) {
        match entry {
            Entry::Harness(records) => records.iter().for_each(|it| self.note_record(it)),
            Entry::Conversation { line, sidechain, .. } if is_ours(*sidechain) => {
                self.state.add_message(line);
                self.background.note_shown(&line.message.id);
            }
            Entry::Conversation { .. } | Entry::Other { .. } => {}
        }
    }

    fn note_record(&mut self, record: &Record) {
        self.state.note(record);
        self.background.note(record);
        if let RecordKind::ContextAppended { part } = &record.what {
            self.appended.push(part.clone());
        }
        follow_run(&mut self.open_run, record);
    }
}

impl Loader {
    pub(crate) fn new(load_as: LoadAs) -> Self {
        Self::going_on(load_as, TranscriptSums::default())
    }

    /// Begins with the sums of lines that are not taken any more.
    pub(super) fn going_on(load_as: LoadAs, sums: TranscriptSums) -> Self {
        Self {
            load_as,
            nodes: Nodes::default(),
            sums,
            base: None,
            #[cfg(test)]
            n_walks: 0,
        }
    }

    /// Takes the next line, in the order in which lines were written.
    pub(crate) fn take(&mut self, number: u64, read: &ReadLine, report: &mut Vec<Report>) {
        self.sums.note(&read.entry, is_ours(self.load_as, read));
        self.link(number, read, report);
    }

    /// Takes the next line as part of the conversation alone: the sums have it.
    pub(super) fn link(&mut self, number: u64, read: &ReadLine, report: &mut Vec<Report>) {
        let (seal, is_ours) = (read.seal, is_ours(self.load_as, read));
        match &read.entry {
            Entry::Harness(records) => {
                for record in records {
                    if let RecordKind::PromptWithdrawn(WithdrawnPrompt { prompt }) = &record.what {
                        self.nodes.withdraw(prompt);
                        self.base = None;
                    }
                }
            }
            Entry::Conversation { line: conversation, sidechain, bad_blocks } => {
                if *bad_blocks != 0 {
                    report.push(Report::counted(ReportKind::BadBlock, number, *bad_blocks));
                }
                if is_ours(*sidechain) {
                    let message = mark_doubtful(&conversation.message, seal);
                    // The writer links every line but the first and those after a compaction.
                    let is_altered = seal.is_some_and(|it| !it.intact);
                    let lost_link =
                        !read.is_linked || (is_altered && conversation.parent.is_none());
                    let lost_link = lost_link && conversation.boundary.is_none();
                    self.nodes.add_message(number, conversation, message, lost_link, report);
                }
            }
            Entry::Other { id, parent, sidechain, .. } => {
                // Of a line of ours that was changed it is reported already.
                if seal.is_none() && read.has_message {
                    report.push(Report::at(ReportKind::BadRecord, number));
                }
                if let Some(id) = id.as_ref().filter(|_| is_ours(*sidechain)) {
                    self.nodes.add_other(id.clone(), parent.clone());
                }
            }
        }
    }

    /// Drops what the conversation does not need any more. Returns the number of the oldest line that it does.
    pub(super) fn forget_unused(&mut self) -> Option<u64> {
        self.base = None;
        self.nodes.forget_unused()
    }

    /// Returns what was recorded so far, from the last compaction on.
    pub(crate) fn recorded(&mut self) -> History {
        let known = self.base.take().and_then(|base| self.nodes.go_on(base));
        let (recorded, base) = match known {
            Some(base) => (base.recorded.clone(), Some(base)),
            None => {
                #[cfg(test)]
                {
                    self.n_walks += 1;
                }
                self.nodes.anew()
            }
        };
        self.base = base;
        recorded
    }

    /// Returns the newest conversation line.
    pub(crate) fn last(&self) -> Option<EntryId> {
        self.nodes.last()
    }

    /// Returns what was appended to the context so far.
    pub(crate) fn appended(&self) -> &[ShownPart] {
        &self.sums.appended
    }

    /// Returns what is in the background so far.
    pub(crate) fn background(&self) -> &BackgroundTasks {
        &self.sums.background
    }

    /// Returns what else the lines say so far.
    pub(crate) fn state(&self) -> &RecordedState {
        &self.sums.state
    }
}

/// Whether a line of a sidechain, or not of one, is among those that are loaded.
fn is_ours(load_as: LoadAs, read: &ReadLine) -> impl Fn(bool) -> bool + use<> {
    let says_nothing = read.seal.is_some() && !read.says_sidechain;
    move |sidechain| says_nothing || sidechain == (load_as == LoadAs::Sidechain)
}

/// The message, with blocks marked that a provider may not have written so: all of a line that was changed, and those of
/// an unknown type or shape on a line that nothing vouches for.
fn mark_doubtful(message: &Arc<Message>, seal: Option<Seal>) -> Arc<Message> {
    let is_doubtful = |block: &Block| match seal {
        Some(seal) => !seal.intact,
        None => block.is_unusual(),
    };
    if !message.blocks.iter().any(is_doubtful) {
        return Arc::clone(message);
    }
    let mark = |it: &Block| if is_doubtful(it) { it.doubted() } else { it.clone() };
    let blocks = message.blocks.iter().map(mark).collect();
    Arc::new(Message { blocks, ..Message::clone(message) })
}

fn follow_run(open: &mut Option<OpenRun>, record: &Record) {
    if let RecordKind::RunStart { prompt, system, sender, .. } = &record.what {
        let begun = |run| OpenRun::new(run, prompt.clone(), system.clone(), sender.clone());
        *open = record.run.clone().map(begun);
        return;
    }
    if let RecordKind::RunEnd { .. } = &record.what {
        *open = None;
    }
    let Some(open) = open else { return };
    open.questions.note(&record.what);
    // A turn may begin with hooks that are asked about settings, before its first step.
    if record.run.as_ref() == Some(&open.run) && open.turn < record.turn {
        (open.turn, open.step) = (record.turn, None);
    }
    match &record.what {
        RecordKind::RunResumed { .. } => open.is_carried = true,
        RecordKind::TurnStep { step, .. } => {
            open.turn = record.turn;
            open.step = (*step != Step::StopCheck).then_some(*step);
            open.is_carried &= *step < Step::PermissionGate;
            if *step == Step::SettingsResolution {
                open.ended.clear();
                open.asked.take_if(|_| !open.is_carried);
            }
        }
        RecordKind::ModelAttempt { usage, .. } => open.usage = open.usage + *usage,
        RecordKind::Question { call, expires, .. } => {
            open.asked = Some((call.clone(), *expires));
        }
        RecordKind::Approval { .. } => open.asked = None,
        RecordKind::Permission { call, decision, .. } => {
            open.asked.take_if(|(asked, _)| asked == call);
            if !decision.allowed {
                open.denied.push(call.clone());
            }
        }
        RecordKind::ToolEnd { call, error, .. } => {
            open.ended.insert(call.clone(), *error);
        }
        RecordKind::TurnEnd { .. } => {
            open.step = None;
            open.asked = None;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        transcript::{load::load, read::read_line},
        turn::tests::random::random,
    };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        // REQ: SES-4
        #[test]
        fn conversation_that_is_brought_up_to_date_is_that_of_a_whole_load(
            seed in any::<u64>(), step in 30..200_usize,
        ) {
            let bytes = random(seed).bytes();
            let mut loader = Loader::new(LoadAs::Session);
            let mut until = 0;
            for (i, line) in bytes.split_inclusive(|it| *it == b'\n').enumerate() {
                until += line.len();
                let text = std::str::from_utf8(line).unwrap();
                loader.take(i as u64 + 1, &read_line(text.trim_end()).unwrap(), &mut Vec::new());
                if i % step == 0 {
                    let loaded = load(&bytes[..until], LoadAs::Session);
                    prop_assert_eq!(loader.recorded().to_messages(), loaded.recorded);
                    prop_assert_eq!((loader.last(), loader.state()), (loaded.last, &loaded.state));
                }
            }
        }
    }
}
