//! One transcript file: what is on it, and how lines get there.
//!
//! No actor. Everything about short writes, torn ends and lines that come twice is here.

mod end;
mod title;

use std::{
    collections::{HashSet, VecDeque},
    fs::File,
    sync::Arc,
};

use ennead_runtime::{
    digest::Digest,
    time::Timestamp,
    transcript::{
        entry::{Line, LineFrame, Record, RecordKind, SkippedBytes, StoredText, TextFolder},
        load::Torn,
        seal::{Head, LineBatch, body_of},
    },
};

use crate::{
    groundwork::files,
    ports::transcript_store::{
        StoreError, SyncWork, TranscriptLog, TranscriptStore, layout::TranscriptPaths,
    },
    storage::{
        checkpoint::{self, Acknowledged, Checkpoint},
        redaction::Redaction,
        transcript_writer::WriteError,
        vault::VaultFile,
    },
};
use ennead_tools::locked::Locked as _;
use title::title_line;

/// Bytes at the end of a file that are looked at first for the end of the chain.
const WINDOW: u64 = 64 * 1024;

/// Bytes of a usual line.
const LINE: usize = 512;

/// A transcript that is open for appending.
#[derive(Debug)]
pub(crate) struct TranscriptFile {
    paths: TranscriptPaths,
    frame: LineFrame,
    /// Whether no secret is in what all lines begin with.
    has_clean_frame: bool,
    redaction: Redaction,
    /// Keeps what is taken out of the lines, where the model is shown it.
    vault: Option<VaultFile>,
    store: Arc<dyn TranscriptStore>,
    log: Box<dyn TranscriptLog>,
    end: Checkpoint,
    /// It was empty when it was opened: what a checkpoint says is of another one of its name.
    is_new: bool,
    /// The file ends in the middle of a line.
    newline: bool,
    torn: Option<Torn>,
    /// A write failed: nothing is written before the end of the file has been looked at again.
    is_unverified: bool,
    /// It is no longer the file of its name.
    replaced: Option<WriteError>,
    /// Lines after what was acknowledged, which may be sent again.
    again: VecDeque<Again>,
    acknowledged: Acknowledged,
    stored: HashSet<(TextFolder, Digest)>,
    /// Results of tools that are written and may not be on disk.
    unsynced: Vec<File>,
}

/// A line that is on the file and was not acknowledged.
#[derive(Debug)]
struct Again {
    body: Digest,
    /// The end of the chain before it.
    before: Head,
    /// The end of the file after it, and of the chain.
    end: Checkpoint,
}

impl TranscriptFile {
    /// Opens or makes the file, and finds out where it ends.
    pub(crate) fn open(
        paths: TranscriptPaths,
        frame: LineFrame,
        redaction: Redaction,
        store: Arc<dyn TranscriptStore>,
        acknowledged: Acknowledged,
    ) -> Result<Self, StoreError> {
        let log = store.open(&paths.file)?;
        let vault = redaction.vault();
        let vault = vault.map(|key| VaultFile::new(key, paths.vault(), Arc::clone(&store)));
        let mut transcript = Self {
            paths,
            has_clean_frame: redaction.is_clean(&frame),
            frame,
            redaction,
            vault,
            store,
            log,
            end: Checkpoint { offset: 0, head: Head::default(), last: None, open: None },
            is_new: false,
            newline: false,
            torn: None,
            is_unverified: false,
            replaced: None,
            again: VecDeque::new(),
            acknowledged,
            stored: HashSet::new(),
            unsynced: Vec::new(),
        };
        if transcript.acknowledged().is_some() {
            transcript.look_again()?;
        } else {
            transcript.find_end()?;
            transcript.is_new = transcript.end.offset == 0 && !transcript.newline;
            transcript.acknowledge(transcript.end.clone());
        }
        Ok(transcript)
    }

    /// Returns the end of what is written.
    pub(crate) fn end(&self) -> &Checkpoint {
        &self.end
    }

    /// Returns the work that brings all that was written so far to disk; the lines last.
    pub(crate) fn sync(&mut self) -> SyncWork {
        let (results, rest) = (std::mem::take(&mut self.unsynced), self.log.sync());
        let vault = self.vault.as_mut().and_then(VaultFile::sync);
        if results.is_empty() && vault.is_none() {
            return rest;
        }
        Box::new(move || {
            results.iter().try_for_each(File::sync_data)?;
            vault.map_or(Ok(()), |sync| sync())?;
            rest()
        })
    }

    /// Makes sure that readers find what was written under its name.
    ///
    /// # Errors
    ///
    /// [`WriteError::Replaced`], from then on.
    pub(crate) fn ensure_in_place(&mut self) -> Result<(), WriteError> {
        if let Some(replaced) = &self.replaced {
            return Err(replaced.clone());
        }
        self.vault.iter_mut().for_each(VaultFile::ensure_in_place);
        match self.log.ensure_in_place(self.end.offset) {
            Ok(()) => Ok(()),
            Err(StoreError::Replaced { kept }) => {
                Err(self.replaced.insert(WriteError::Replaced { kept }).clone())
            }
            Err(error) => Err(WriteError::read(&self.paths.file, error.into())),
        }
    }

    /// Writes nothing any more: another process does.
    pub(crate) fn give_up(&mut self) {
        self.replaced.get_or_insert(WriteError::LeaseLost);
    }

    /// Returns whether readers find what was written under its name.
    pub(crate) fn is_in_place(&self) -> bool {
        self.log.is_in_place(self.end.offset)
    }

    /// Notes a failed sync: the kernel may have dropped what was written, so the file is checked before more is
    /// written.
    pub(crate) fn mark_unverified(&mut self) {
        self.is_unverified = true;
    }

    /// Tries once more to write what the vault could not be given, unless the session is somebody else's by now or gone.
    pub(crate) fn complete_vault(&mut self) {
        if self.replaced.is_none() && self.is_in_place() {
            self.vault.iter_mut().for_each(VaultFile::write);
        }
    }

    /// Notes that everything up to there was acknowledged.
    pub(crate) fn acknowledge(&self, upto: Checkpoint) {
        *self.acknowledged.locked() = Some(upto);
    }

    /// Returns whether the next writer is to find a checkpoint.
    ///
    /// Opening looks at the last [`WINDOW`] bytes anyway, so a shorter file needs none, nor does one to
    /// which nothing was added.
    pub(crate) fn needs_checkpoint(&self) -> bool {
        !self.newline
            && !self.is_unverified
            && self.replaced.is_none()
            && self.end.open.is_none()
            && WINDOW < self.end.offset
            && checkpoint::read(&*self.store, &self.paths.checkpoint()).as_ref() != Some(&self.end)
    }

    /// Leaves a checkpoint, for the next writer and for the one that checks the transcript.
    /// Everything it speaks of must be on disk: it would testify to lines that a crash of the
    /// machine took away.
    pub(crate) fn leave_checkpoint(&mut self) -> Result<(), StoreError> {
        let path = self.paths.checkpoint();
        // One that knows of lines that are no longer there is the only witness of that.
        match checkpoint::read(&*self.store, &path) {
            Some(known) if !self.is_new && !self.holds(&known)? => Ok(()),
            _ => checkpoint::write(&*self.store, &path, &self.end),
        }
    }

    /// Writes all lines in one write, texts that they name before them. Lines that are there
    /// already are passed over. A title follows the lines, for other programs.
    pub(crate) fn append(
        &mut self,
        lines: &[Line],
        stored: &[StoredText],
        title: Option<&str>,
    ) -> Result<Checkpoint, WriteError> {
        if let Some(replaced) = &self.replaced {
            return Err(replaced.clone());
        }
        if self.is_unverified {
            self.look_again().map_err(|it| WriteError::read(&self.paths.file, it.into()))?;
        }
        for text in stored {
            self.store(text)?;
        }
        let mut lines = lines;
        if let Some(known) = self.pass_over(&mut lines)
            && lines.is_empty()
        {
            return Ok(known);
        }
        let mut end = self.end.clone();
        // Given back afterwards: thousands of idle sessions would each keep their largest.
        let mut buffer = Vec::with_capacity(LINE * lines.len());
        if self.newline {
            buffer.push(b'\n');
        }
        let mut batch = LineBatch::new(end.head, self.end.open.as_deref(), &mut buffer);
        let repair;
        let (mut appended, has_vault) = (Vec::new(), self.vault.is_some());
        if let (Some(torn), Some(first)) = (self.torn, lines.first()) {
            let Torn { offset, length, digest } = torn;
            let what = RecordKind::Repair(SkippedBytes { offset, length, digest });
            let record =
                Record { at: timestamp(first), run: None, turn: 0, what, shares_line: false };
            repair = Line::Harness(Box::new(record));
            self.redaction.append(&repair, &self.frame, self.has_clean_frame, &mut batch);
            appended.extend(has_vault.then_some((&repair, false)));
        }
        for line in lines {
            let is_joined =
                self.redaction.append(line, &self.frame, self.has_clean_frame, &mut batch);
            appended.extend(has_vault.then_some((line, is_joined)));
            if let Line::Conversation(line) = line {
                end.last = Some(line.message.id.clone());
            }
        }
        let open;
        (end.head, open) = batch.finish();
        end.open = open.map(Arc::new);
        // Before the lines: an entry without its line does no harm.
        if let Some(vault) = &mut self.vault {
            vault.keep_lines(&buffer, &appended, &self.frame);
        }
        if let Some(title) = title {
            let line = title_line(title, &self.frame.session);
            buffer.extend_from_slice(self.redaction.redactor().json(&line).as_bytes());
            buffer.push(b'\n');
        }
        // Until all of it is written.
        self.is_unverified = true;
        self.write_all(&buffer)?;
        self.is_unverified = false;
        end.offset += buffer.len() as u64;
        self.newline = false;
        self.torn = None;
        self.end = end;
        Ok(self.end.clone())
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let (file, length) = (&self.paths.file, bytes.len());
        match self.log.append(bytes) {
            Ok(written) if written == length => Ok(()),
            Ok(written) => Err(WriteError::Short { file: file.clone(), written, length }),
            Err(error) => Err(WriteError::write(file, error.into())),
        }
    }

    /// Takes lines off the front that are on the file; says where the last of them ends.
    fn pass_over(&mut self, lines: &mut &[Line]) -> Option<Checkpoint> {
        let mut passed = None;
        while let (Some(known), Some(first)) = (self.again.front(), lines.first()) {
            let mut bytes = Vec::new();
            let mut batch = LineBatch::new(known.before, None, &mut bytes);
            self.redaction.append(first, &self.frame, self.has_clean_frame, &mut batch);
            // Those that shared its line; the one after them is left out again.
            let joins = |it: &&Line| {
                self.redaction.append(it, &self.frame, self.has_clean_frame, &mut batch)
            };
            let n = 1 + lines.iter().skip(1).take_while(joins).count();
            batch.finish();
            let same = bytes
                .split(|byte| *byte == b'\n')
                .next()
                .and_then(body_of)
                .is_some_and(|body| Digest::of(body) == known.body);
            if !same {
                // The one that writes now does not repeat itself: nothing is to be passed over.
                self.again.clear();
                break;
            }
            let last = match first {
                Line::Conversation(line) => Some(line.message.id.clone()),
                Line::Harness(_) => self.acknowledged().and_then(|it| it.last),
            };
            passed = Some(Checkpoint { last, ..known.end.clone() });
            self.again.pop_front();
            *lines = lines.get(n..).unwrap_or_default();
        }
        passed
    }

    fn store(&mut self, text: &StoredText) -> Result<(), WriteError> {
        if !self.stored.insert((text.place, text.digest)) {
            return Ok(());
        }
        let directory = match text.place {
            TextFolder::Records => "stored",
            TextFolder::ToolResults => "tool-results",
        };
        let original = text;
        let text = &*self.redaction.stored(original);
        if let (TextFolder::Records, Some(vault)) = (text.place, &mut self.vault) {
            vault.note_text(original, text);
        }
        let path = self.paths.directory.join(directory).join(format!("{}.txt", text.digest));
        let kept = match text.place {
            TextFolder::Records => self.log.attach(&path, text.text.as_bytes()),
            // Tools read it by its path, so it is a file whatever the store is.
            TextFolder::ToolResults if path.exists() => Ok(()),
            TextFolder::ToolResults => files::write_whole(&path, text.text.as_bytes())
                .map(|file| self.unsynced.push(file))
                .map_err(Into::into),
        };
        kept.map_err(|error| {
            self.stored.remove(&(text.place, text.digest));
            WriteError::stored(&path, error.into())
        })
    }

    fn acknowledged(&self) -> Option<Checkpoint> {
        self.acknowledged.locked().clone()
    }
}

fn timestamp(line: &Line) -> Timestamp {
    match line {
        Line::Conversation(line) => line.at,
        Line::Harness(record) => record.at,
    }
}
