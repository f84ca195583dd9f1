//! What a transcript says about the model calls of a run.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use ennead_runtime::{
    ids::RunId,
    transcript::{
        entry::RecordKind,
        read::{Entry, read_line},
    },
};

/// What the transcript says about the model calls of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRecord {
    /// Milliseconds of all calls; sub-agents not included.
    pub api_ms: u64,
    /// Why the model ended its last answer.
    pub stop_reason: Option<String>,
    /// The last call, if it failed.
    pub failure: Option<CallFailure>,
}

/// A model call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The code of its class: `auth`, `network`, …
    pub class: String,
    /// HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The message of the server or the transport.
    pub message: Option<String>,
}

impl CallFailure {
    /// Returns whether the server could not be reached, is not believed, or does not accept the caller.
    pub fn is_no_service(&self) -> bool {
        let says = |words: &str| self.message.as_ref().is_some_and(|it| it.starts_with(words));
        match self.class.as_str() {
            "auth" | "network" | "unreachable" | "timeout" => true,
            // Of this class because nothing is to be asked again. A request that the server refuses in
            // the middle of an answer has neither a status nor these words.
            "invalid_request" => self.status.is_none() && says("secure connection to "),
            _ => false,
        }
    }
}

/// Looks a run up in its transcript, from the end of the file to the byte at `from`, where the run
/// begins. Reads the file on the thread of the caller.
///
/// # Errors
///
/// When the file cannot be read.
pub fn model_record(transcript: &Path, from: u64, run: &RunId) -> io::Result<ModelRecord> {
    let bytes = bytes_from(transcript, from)?;
    let mut found = ModelRecord::default();
    let mut is_last_attempt = true;
    for line in bytes.rsplit(|byte| *byte == b'\n') {
        let Ok(read) = read_line(&String::from_utf8_lossy(line)) else { continue };
        match read.entry {
            Entry::Conversation { line, .. } => {
                if let (None, Some(answer)) = (&found.stop_reason, &line.answer) {
                    found.stop_reason = Some(answer.stop_reason.to_string());
                }
            }
            Entry::Harness(records) => {
                for record in records.into_iter().rev().filter(|it| it.run.as_ref() == Some(run)) {
                    match record.what {
                        RecordKind::RunStart { .. } => return Ok(found),
                        RecordKind::ModelAttempt {
                            outcome, status, message, duration_ms, ..
                        } => {
                            found.api_ms = found.api_ms.saturating_add(duration_ms);
                            if std::mem::take(&mut is_last_attempt) && outcome != "ok" {
                                let class = outcome;
                                found.failure = Some(CallFailure { class, status, message });
                            }
                        }
                        _ => {}
                    }
                }
            }
            Entry::Other { .. } => {}
        }
    }
    Ok(found)
}

fn bytes_from(file: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
