//! Removes what a deleted session leaves on the disk.

use std::{fs, io, path::Path};

use super::{Server, hosted::Hosted, problem::Problem};

impl Server {
    /// Removes the transcript of a session that is deleted, with those of its sub-agents and what is kept next to them,
    /// and its directory where that is its own.
    pub(crate) async fn remove_files(&self, hosted: &Hosted) -> Result<(), Problem> {
        let id = hosted.id().to_string();
        let tenant = hosted.tenant().clone();
        let transcripts = self.0.paths.transcripts(&tenant);
        // One that was named may be another session's, too.
        let is_own = self.0.options.workspace.is_none() && *hosted.record.directory == *id;
        let work = self.0.options.workspaces.join(tenant.as_str());
        let server = self.clone();
        let removed = self.write(move || {
            remove_named(&transcripts, &id)?;
            if is_own {
                remove(&work.join(&id))?;
            }
            let limits = &server.0.limits;
            if limits.limits.disk_bytes.or(limits.limits.all_disk_bytes).is_some() {
                limits.measure(&tenant, [work, transcripts]);
            }
            Ok::<(), io::Error>(())
        });
        removed.await?.map_err(|it| Problem::internal("some files of the session are left", &it))
    }
}

/// Removes everything in a directory that bears the name of a session.
fn remove_named(directory: &Path, id: &str) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        // The tenant has no transcripts yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let rest = name.strip_prefix(id);
        if rest.is_some_and(|it| it.is_empty() || it.starts_with('.')) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a file, or a directory with all that is in it. Links are removed and not followed.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
