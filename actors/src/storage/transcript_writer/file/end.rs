//! Where a file ends, and which of its lines may be sent again.

use std::sync::Arc;

use ennead_runtime::{
    digest::Digest,
    ids::EntryId,
    transcript::{
        load::{Tail, tail},
        seal::{Head, OpenLines, Seal, body_of, seal_of},
    },
};

use super::{Again, TranscriptFile, WINDOW};
use crate::{
    ports::transcript_store::StoreError,
    storage::checkpoint::{self, Checkpoint},
};

impl TranscriptFile {
    /// Reads what lies after the last acknowledged line.
    pub(super) fn look_again(&mut self) -> Result<(), StoreError> {
        let from = self.acknowledged().unwrap_or_else(|| self.end.clone());
        let bytes = self.read_from(from.offset)?;
        let found = tail(&bytes, from.offset).after(from.head, from.open.as_deref());
        self.again.clear();
        let mut end = from.clone();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            end.offset += line.len() as u64;
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let (Some(seal), Some(body)) = (seal_of(line), body_of(line)) else { continue };
            let before = end.head;
            end = after(end, line, seal);
            if seal.intact && !line.starts_with(br#"{"type":"ennead","kind":"repair""#) {
                let (body, end) = (Digest::of(body), end.clone());
                self.again.push_back(Again { body, before, end });
            }
        }
        self.go_on_from(found, from.last);
        self.is_unverified = false;
        Ok(())
    }

    fn go_on_from(&mut self, found: Tail, last: Option<EntryId>) {
        let open = found.open.map(Arc::new);
        self.end = Checkpoint { offset: found.offset, head: found.head, last, open };
        self.newline = found.needs_newline;
        self.torn = found.torn;
    }

    /// Finds the end of the chain of a file that this process has not written to yet.
    pub(super) fn find_end(&mut self) -> Result<(), StoreError> {
        let length = self.log.n_bytes()?;
        if length == 0 {
            return Ok(());
        }
        if let Some(known) = checkpoint::read(&*self.store, &self.paths.checkpoint())
            && self.agrees(&known, length)?
        {
            let found = tail(&self.read_from(known.offset)?, known.offset).after(known.head, None);
            self.go_on_from(found, known.last);
            return Ok(());
        }
        let mut window = WINDOW;
        loop {
            let from = self.line_start(length.saturating_sub(window))?;
            let found = tail(&self.read_from(from)?, from);
            if !found.headless || from == 0 {
                self.go_on_from(found, None);
                return Ok(());
            }
            window = window.saturating_mul(16);
        }
    }

    /// Whether the line that ends where the checkpoint points is the one it names.
    fn agrees(&mut self, known: &Checkpoint, length: u64) -> Result<bool, StoreError> {
        // Enough for number and hashes at the end of a line.
        let from = known.offset.saturating_sub(160);
        if length < known.offset {
            return Ok(false);
        }
        let bytes = self.log.read(from, known.offset - from)?;
        let seal = bytes.strip_suffix(b"\n").and_then(seal_of);
        Ok(seal.is_some_and(|it| is_at(&it, known.head)))
    }

    /// Returns whether the line that a checkpoint names is in the file.
    pub(super) fn holds(&mut self, known: &Checkpoint) -> Result<bool, StoreError> {
        if self.agrees(known, self.end.offset)? {
            return Ok(true);
        }
        // After its line there may have been one of another program.
        let bytes = self.read_from(0)?;
        let mut seals = bytes.split(|byte| *byte == b'\n').filter_map(seal_of);
        Ok(seals.any(|it| is_at(&it, known.head)))
    }

    /// The start of the first line that begins at or after `from`, or 0.
    fn line_start(&mut self, from: u64) -> Result<u64, StoreError> {
        if from == 0 {
            return Ok(0);
        }
        let bytes = self.read_from(from)?;
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        Ok(newline.map_or(0, |at| from + at as u64 + 1))
    }

    fn read_from(&mut self, from: u64) -> Result<Vec<u8>, StoreError> {
        self.log.read(from, u64::MAX)
    }
}

/// The end of the chain after a line.
fn after(end: Checkpoint, line: &[u8], seal: Seal) -> Checkpoint {
    let (head, open) = match seal.hash() {
        Some(hash) => (Head { seq: seal.seq, hash }, None),
        None => {
            let before = end.open.as_deref().map_or(&[][..], |it| &it.bytes);
            let bytes = [before, line, b"\n"].concat();
            let open = Arc::new(OpenLines { bytes, link: seal.link });
            (Head { seq: seal.seq, ..end.head }, Some(open))
        }
    };
    Checkpoint { head, open, ..end }
}

/// Whether the chain ended there at this line.
fn is_at(seal: &Seal, head: Head) -> bool {
    (seal.seq, seal.hash()) == (head.seq, Some(head.hash))
}
