//! Puts new content in the place of a file, at once or not at all.
//!
//! Alone here is the point of no return: until the rename nothing has changed, after it the
//! outcome is settled, whatever becomes of the call.

use std::{fs::Permissions, path::Path};

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolNote, ToolOutcome},
};

use crate::{
    blocking::{Stop, interrupted},
    files::seen_after_writing,
    paths::{Directory, OpenError, split},
};

/// New content for a file, and the text of the result.
#[derive(Debug)]
pub(crate) struct Replacement<'a> {
    /// Where the file really is.
    pub(crate) real: &'a str,
    /// The new content of the file.
    pub(crate) bytes: &'a [u8],
    /// The mode of the old file.
    pub(crate) permissions: Option<Permissions>,
    /// The model knows only a part of the file.
    pub(crate) partial: bool,
    /// The text of the result when it is done; the note that the file was seen is added.
    pub(crate) outcome: ToolOutcome,
}

/// Replaces a file of `directory`, or makes it.
pub(crate) fn replace(
    directory: &Directory,
    replacement: Replacement<'_>,
    context: &ToolContext,
    stop: &Stop,
) -> Result<ToolOutcome, OpenError> {
    let Replacement { real, bytes, permissions, partial, mut outcome } = replacement;
    let (_, name) = split(Path::new(real))?;
    let prepared = directory.prepare(name, bytes, permissions)?;
    let seen = seen_after_writing(prepared.file(), bytes, partial)?;
    outcome.notes.push(ToolNote::FileSeen { path: real.to_owned(), seen });
    if stop.is_set() {
        return Ok(interrupted());
    }
    prepared.put()?;
    context.settled.set(outcome.clone());
    Ok(outcome)
}
