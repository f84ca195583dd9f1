//! Puts new content in the place of a file, at once or not at all.
//!
//! The rename is the point of no return: until then nothing has changed, after it the
//! outcome is settled, whatever becomes of the call.

use std::{fs::Permissions, path::Path};

use ennead_runtime::tool::{ToolNote, ToolOutcome};

use crate::{
    blocking::interrupted,
    built_in::AtPath,
    files::{Loaded, seen_after_writing},
    paths::{Directory, OpenError, split},
};

/// New content for a file, and the text of the result.
#[derive(Debug)]
pub(crate) struct Replacement<'a> {
    /// The new content of the file.
    pub(crate) bytes: &'a [u8],
    /// The mode of the old file.
    pub(crate) permissions: Option<Permissions>,
    /// The model knows only a part of the file.
    pub(crate) partial: bool,
    /// The cells that it knows, of a notebook that it knows in part.
    pub(crate) cells: Option<[u32; 2]>,
    /// The text of the result when it is done; the note that the file was seen is added.
    pub(crate) outcome: ToolOutcome,
}

/// Opens the directory of a file, which is made where it is missing, and reads the file if it is there.
pub(crate) fn open_or_make(real: &str) -> Result<(Directory, Option<Loaded>), String> {
    let say = |error: OpenError| error.to_string();
    let (parent, name) = split(Path::new(real)).map_err(say)?;
    let directory = Directory::open_or_make(parent).map_err(say)?;
    let old = match directory.open_file(name) {
        Ok(file) => Some(Loaded::from(&file).map_err(|error| error.to_string())?),
        Err(OpenError::Missing) => None,
        Err(error) => return Err(error.to_string()),
    };
    Ok((directory, old))
}

/// Replaces the file of a call in its `directory`, or makes it.
pub(crate) fn replace<I>(
    directory: &Directory,
    replacement: Replacement<'_>,
    call: &AtPath<'_, I>,
) -> Result<ToolOutcome, String> {
    let Replacement { bytes, permissions, partial, cells, mut outcome } = replacement;
    let (real, say) = (&call.path.real, |error: OpenError| error.to_string());
    let (_, name) = split(Path::new(real)).map_err(say)?;
    let prepared = directory.prepare(name, bytes, permissions).map_err(say)?;
    let mut seen =
        seen_after_writing(prepared.file(), bytes, partial).map_err(|it| say(it.into()))?;
    seen.cells = cells;
    outcome.notes.push(ToolNote::FileSeen { path: real.clone(), seen });
    if call.stop.is_set() {
        return Ok(interrupted());
    }
    prepared.commit().map_err(say)?;
    call.context.committed.set(outcome.clone());
    Ok(outcome)
}
