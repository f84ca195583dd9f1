//! `trace` and `verify`.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ennead::{
    data::{Checked, TranscriptError},
    transcript::{self, FileStore, TranscriptStore},
};
use ennead_command::{
    exit::{Exit, Failure},
    recorded_page,
};
use ennead_runtime::output::terminal::clean_line;

use crate::{show, vault};

pub(crate) fn trace(file: &Path) -> Result<Exit, Failure> {
    show::result(&transcript::trace(file).map_err(failure)?)?;
    Ok(Exit::Success)
}

/// Writes the page that shows a transcript. A file that is there already is kept as it is.
pub(crate) fn page(file: &Path, page: Option<PathBuf>) -> Result<Exit, Failure> {
    // The message also names a file that is not a transcript.
    transcript::trace(file).map_err(failure)?;
    let unreadable = |cause| failure(TranscriptError::Unreadable { file: file.to_owned(), cause });
    let shown = recorded_page::read(file).map_err(unreadable)?;
    let page = page.unwrap_or_else(|| {
        PathBuf::from(file.file_stem().unwrap_or_default()).with_added_extension("html")
    });
    write(&page, &recorded_page::page(&shown)).map_err(|error| {
        Failure::new(Exit::BadInput, format!("cannot write {}: {error}", page.display()))
    })?;
    show::result(&clean_line(&page.display().to_string()))?;
    Ok(Exit::Success)
}

/// Writes a new file that only its owner can read, as transcripts are.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Checks every file, also after one that is not in order; ends as the worst of them does. With secret keys of vaults
/// what the model was shown is compared, too.
pub(crate) fn verify(files: &[PathBuf], vault_keys: &[PathBuf]) -> Result<Exit, Failure> {
    let keys = vault::read_keys(vault_keys)?;
    let store: &dyn TranscriptStore = &FileStore::default();
    let mut worst = Exit::Success;
    for file in files {
        let verified = if keys.is_empty() {
            transcript::verify(file)
        } else {
            store.verify_with_vault(file, &keys)
        };
        match verified.map_err(failure) {
            Ok(all) => all.iter().try_for_each(show_checked)?,
            Err(failure) => {
                show::problem(&failure.to_string());
                worst = worst.max(failure.exit);
            }
        }
    }
    Ok(worst)
}

fn show_checked(checked: &Checked) -> Result<(), Failure> {
    let (it, file) = (&checked.verified, checked.file.display());
    let restored = match checked.restored {
        0 => String::new(),
        n if checked.up_to_redaction == 0 => {
            format!(", replayed byte for byte with {n} messages and records of the vault")
        }
        n => format!(", replayed with {n} messages and records of the vault"),
    };
    // A line break in a name would begin a line of its own.
    show::result(&clean_line(&format!(
        "{file}: in order, {} runs, {} turns, {} tool calls{restored}",
        it.runs, it.turns, it.calls
    )))?;
    if checked.up_to_redaction != 0 {
        show::problem(&format!(
            "{file}: {} lines are equal up to redaction: the model was shown secrets that the transcript does \
             not have",
            checked.up_to_redaction
        ));
    }
    for gap in &checked.vault_gaps {
        show::problem(&format!("{file}: its vault is of no full use: {gap}"));
    }
    if it.forked.lines != 0 {
        show::problem(&format!(
            "{file}: {} lines at its beginning are copies that another program made of the session {}; they \
             are not sealed, and only what follows them was checked",
            it.forked.lines, it.forked.from
        ));
    }
    for (line, kind) in &it.foreign {
        show::problem(&format!(
            "{file}: line {line} of type {kind} is not sealed: another program can have written it"
        ));
    }
    Ok(())
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
