//! What a command prints: its start and its end in memory, all of it in a file when it is long.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    ports::ToolContext,
    redaction::{RedactionStream, Redactor},
    saturating::Saturating as _,
};
use tokio::{
    fs::{self, File},
    io::AsyncWriteExt,
};

/// Bytes of output that are kept in a file.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Bytes at the end of the output that are kept: the tail of an excerpt, in the widest characters.
const TAIL_BYTES: usize = 4 * 5_000;

/// Takes output as it comes.
#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    n_bytes: u64,
    n_chars: u64,
    path: PathBuf,
    file: Option<File>,
    n_written: u64,
    /// Whether somebody reads the file while it is written.
    is_followed: bool,
    /// Why there is no file, or only the start of one.
    trouble: Option<String>,
    /// Takes secrets out of what is kept in a file. `None`: nothing does.
    redactor: Option<Redactor>,
    /// Takes secrets out of all output from now on.
    redacting: Option<RedactionStream>,
}

impl Capture {
    /// Shows up to `max_chars` whole; more goes to a file at `path`, whose directory is made.
    pub(super) fn new(max_chars: usize, path: PathBuf) -> Self {
        Self {
            head: Vec::new(),
            head_cap: max_chars.saturating_mul(4),
            tail: VecDeque::new(),
            n_bytes: 0,
            n_chars: 0,
            path,
            file: None,
            n_written: 0,
            is_followed: false,
            trouble: None,
            redactor: None,
            redacting: None,
        }
    }

    /// Takes secrets out of the output: out of all of it where results are without them, else out of an
    /// output that goes to a file.
    pub(super) fn without_secrets(self, context: &ToolContext) -> Self {
        let redactor = context.redactor.clone();
        let redacting = redactor.as_ref().filter(|_| context.redacts_results);
        Self { redacting: redacting.map(Redactor::stream), redactor, ..self }
    }

    /// Takes the next bytes.
    pub(super) async fn push(&mut self, bytes: &[u8]) {
        match &mut self.redacting {
            Some(stream) => {
                let redacted = stream.push_bytes(bytes);
                self.take(&redacted).await;
            }
            None => self.take(bytes).await,
        }
    }

    /// Takes what was held back because more could have followed.
    pub(super) async fn end(&mut self) {
        if let Some(stream) = &mut self.redacting {
            let rest = stream.finish_bytes();
            self.take(&rest).await;
        }
    }

    async fn take(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len() as u64;
        if !self.is_followed {
            self.n_chars += n_chars(bytes);
        }
        self.tail.extend(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        if self.file.is_none() && self.trouble.is_none() {
            let fits = self.head.len() + bytes.len() <= self.head_cap;
            self.head.extend_from_slice(bytes);
            if !fits {
                self.open().await;
                self.head.truncate(self.head_cap);
            }
        } else {
            self.write(bytes).await;
        }
    }

    /// Makes the file with all there is so far.
    async fn open(&mut self) {
        if self.redacting.is_none()
            && let Some(redactor) = &self.redactor
        {
            let mut stream = redactor.stream();
            let redacted = stream.push_bytes(&std::mem::take(&mut self.head));
            self.redacting = Some(stream);
            self.n_bytes = redacted.len() as u64;
            self.n_chars = n_chars(&redacted);
            self.tail = redacted[redacted.len().saturating_sub(TAIL_BYTES)..].to_vec().into();
            self.head = redacted;
        }
        match make(&self.path).await {
            Ok(file) => {
                self.file = Some(file);
                let head = std::mem::take(&mut self.head);
                self.write(&head).await;
                self.head = head;
            }
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        let left = MAX_FILE_BYTES.saturating_sub(self.n_written);
        let part = &bytes[..bytes.len().min(usize::saturating(left))];
        let Some(file) = &mut self.file else { return };
        let mut written = file.write_all(part).await;
        if self.is_followed && written.is_ok() {
            written = file.flush().await;
        }
        match written {
            Ok(()) => self.n_written += part.len() as u64,
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.file = None;
            }
        }
    }

    /// Returns the number of bytes so far.
    pub(super) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Returns all of it; `None` if it has more than this many characters or was not kept whole.
    pub(super) fn whole(&self, max_chars: u64) -> Option<String> {
        let kept = self.head.len() as u64 == self.n_bytes;
        (kept && self.n_chars <= max_chars)
            .then(|| String::from_utf8_lossy(&self.head).into_owned())
    }

    /// Returns the start of the output.
    pub(super) fn head(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    /// Returns the end of the output.
    pub(super) fn tail(&self) -> String {
        let bytes = self.last_bytes();
        // The cut may go through a character.
        let start = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// Returns the number of characters that are shown whole.
    pub(super) fn max_chars(&self) -> u64 {
        (self.head_cap / 4) as u64
    }

    /// Returns the number of characters so far.
    pub(super) fn n_chars(&self) -> u64 {
        self.n_chars
    }

    /// Writes all of it to the file and returns its path and the number of its bytes.
    ///
    /// # Errors
    ///
    /// Why there is no file with everything that may be kept.
    pub(super) async fn keep(&mut self) -> Result<(PathBuf, u64), String> {
        if self.file.is_none() && self.trouble.is_none() {
            self.open().await;
        }
        if let Some(file) = &mut self.file
            && let Err(error) = file.flush().await
        {
            self.trouble = Some(error.to_string());
        }
        match self.trouble.take() {
            Some(why) => Err(why),
            None => Ok((self.path.clone(), self.n_written)),
        }
    }

    /// Writes all of it to the file, from now on at once, and returns the file to be read. What is counted after that
    /// are bytes.
    ///
    /// # Errors
    ///
    /// Why there is no such file.
    pub(super) async fn follow(&mut self) -> Result<(PathBuf, std::fs::File), String> {
        let (path, _) = self.keep().await?;
        let Some(file) = &self.file else { return Err("it has no file".into()) };
        let reading = file.try_clone().await.map_err(|error| error.to_string())?;
        self.is_followed = true;
        Ok((path, reading.into_std().await))
    }

    /// Counts the bytes in the file so far.
    pub(super) fn n_written(&self) -> u64 {
        self.n_written
    }

    /// Returns the last bytes, at least those that a tail shows.
    pub(super) fn last_bytes(&self) -> Vec<u8> {
        self.tail.iter().copied().collect()
    }

    /// Removes the file, if there is one.
    pub(super) async fn forget(&mut self) {
        if self.file.take().is_some() {
            // What cannot be removed stays; the output of a failed command is not a secret.
            let _ = fs::remove_file(&self.path).await;
        }
    }
}

/// Every byte but the later ones of a character.
fn n_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64
}

async fn make(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).await?;
    }
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .await
}

#[cfg(test)]
mod tests;
