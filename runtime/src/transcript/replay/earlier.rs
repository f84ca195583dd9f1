//! What an earlier process had recorded when a session was opened again.

use crate::{
    ids::EntryId,
    run::conversation::Conversation,
    transcript::{
        lines::FileLines,
        load::{BackgroundTasks, LoadAs, Loader, load, load_until},
    },
};

/// The lines of a file, loaded as far as they were needed.
pub(super) struct PrefixLoader<'a> {
    file: &'a FileLines<'a>,
    /// As what they were loaded, and how many.
    loaded: Option<(LoadAs, Loader, usize)>,
    /// What was in the background there.
    background: BackgroundTasks,
}

impl<'a> PrefixLoader<'a> {
    pub(super) fn new(file: &'a FileLines<'a>) -> Self {
        Self { file, loaded: None, background: BackgroundTasks::default() }
    }

    /// Resumes what the lines in front of a place hold, as the process did that opened the session. Where its first
    /// prompt follows another line than the last one, the session continues from that one.
    pub(super) fn resume_after(
        &mut self,
        conversation: &mut Conversation,
        place: usize,
        parent: Option<&EntryId>,
    ) {
        self.resume(conversation, place);
        let Some(parent) = parent.filter(|it| conversation.last_entry.as_ref() != Some(*it)) else {
            return;
        };
        let before = self.before(place);
        if let Some(cut) = load_until(before, load_as(conversation), parent) {
            conversation.go_back(&cut, &load(before, load_as(conversation)));
        }
    }

    /// Returns what was in the background where the session was opened again last.
    pub(super) fn background(&self) -> &BackgroundTasks {
        &self.background
    }

    fn before(&self, place: usize) -> &'a [u8] {
        let end = self.file.iter().nth(place).map_or(0, |it| it.offset);
        self.file.bytes().get(..end).unwrap_or_default()
    }

    /// Resumes the conversation as it was before this line, where no message was chosen.
    pub(super) fn resume(&mut self, conversation: &mut Conversation, place: usize) {
        let load_as = load_as(conversation);
        if !self.file.is_as_written() {
            // A load puts lines right before it reads them; which, depends on all of them.
            let loaded = load(self.before(place), load_as);
            self.background.clone_from(&loaded.background);
            return conversation.resume(&loaded);
        }
        let known = self.loaded.take().filter(|it| it.0 == load_as && it.2 <= place);
        let (_, mut loader, n_taken) = known.unwrap_or((load_as, Loader::new(load_as), 0));
        for line in self.file.iter().skip(n_taken).take(place - n_taken) {
            if let Some(read) = &line.read {
                // What is wrong with them is for the audit to report.
                loader.take(line.number, read, &mut Vec::new());
            }
        }
        let recorded = loader.recorded();
        conversation.go_on(recorded, loader.last(), loader.state().clone(), loader.appended());
        self.background.clone_from(loader.background());
        self.loaded = Some((load_as, loader, place));
    }
}

fn load_as(conversation: &Conversation) -> LoadAs {
    match conversation.facts.agent {
        Some(_) => LoadAs::Sidechain,
        None => LoadAs::Session,
    }
}
