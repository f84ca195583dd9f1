//! `trace` and `verify`.

use std::path::{Path, PathBuf};

use ennead::{transcript, transcript::TranscriptError};
use ennead_runtime::output::terminal::clean_line;

use crate::{
    exit::{Exit, Failure},
    show,
};

pub(crate) fn trace(file: &Path) -> Result<Exit, Failure> {
    show::result(&transcript::trace(file).map_err(failure)?)?;
    Ok(Exit::Success)
}

pub(crate) fn verify(files: &[PathBuf]) -> Result<Exit, Failure> {
    for file in files {
        for checked in transcript::verify(file).map_err(failure)? {
            let it = &checked.verified;
            // A line break in a name would begin a line of its own.
            show::result(&clean_line(&format!(
                "{}: in order, {} runs, {} turns, {} tool calls",
                checked.file.display(),
                it.runs,
                it.turns,
                it.calls
            )))?;
            if it.forked.lines != 0 {
                show::problem(&format!(
                    "{}: {} lines at its beginning are copies that another program made of the \
                     session {}; they are not sealed, and only what follows them was checked",
                    checked.file.display(),
                    it.forked.lines,
                    it.forked.from
                ));
            }
            for (line, kind) in &it.foreign {
                show::problem(&format!(
                    "{}: line {line} of type {kind} is another program's",
                    checked.file.display()
                ));
            }
        }
    }
    Ok(Exit::Success)
}

fn failure(error: TranscriptError) -> Failure {
    let exit = match error {
        TranscriptError::Violated { .. }
        | TranscriptError::Emptied { .. }
        | TranscriptError::NoTranscript { .. }
        | TranscriptError::NoMeta { .. }
        | TranscriptError::Differs { .. } => Exit::NotVerified,
        _ => Exit::BadInput,
    };
    Failure::of(exit, &error)
}
