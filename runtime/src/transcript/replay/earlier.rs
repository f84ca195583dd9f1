//! What an earlier process had recorded when a session was opened again.

use crate::{
    run::conversation::Conversation,
    transcript::{
        lines::FileLines,
        load::{LoadAs, Loader, load},
    },
};

/// The lines of a file, loaded as far as they were needed.
pub(super) struct Earlier<'a> {
    file: &'a FileLines<'a>,
    /// As what they were loaded, and how many.
    loaded: Option<(LoadAs, Loader, usize)>,
}

impl<'a> Earlier<'a> {
    pub(super) fn new(file: &'a FileLines<'a>) -> Self {
        Self { file, loaded: None }
    }

    /// Goes on with what the lines in front of a place say, as the process did that opened the session.
    pub(super) fn resume(&mut self, conversation: &mut Conversation, place: usize) {
        let load_as = match conversation.facts.agent {
            Some(_) => LoadAs::Sidechain,
            None => LoadAs::Session,
        };
        if !self.file.is_orderly() {
            // A load puts lines right before it reads them; which, depends on all of them.
            let end = self.file.iter().nth(place).map_or(0, |it| it.offset);
            let before = self.file.bytes().get(..end).unwrap_or_default();
            return conversation.resume(&load(before, load_as));
        }
        let known = self.loaded.take().filter(|it| it.0 == load_as && it.2 <= place);
        let (_, mut loader, n_taken) = known.unwrap_or((load_as, Loader::new(load_as), 0));
        for line in self.file.iter().skip(n_taken).take(place - n_taken) {
            if let Some(read) = &line.read {
                // What is wrong with them is for the audit to tell.
                loader.take(line.number, read, &mut Vec::new());
            }
        }
        conversation.go_on(loader.recorded(), loader.last(), loader.used(), loader.appended());
        self.loaded = Some((load_as, loader, place));
    }
}
