//! Whether the directory that transcripts go to by default can be believed.
//!
//! It lies in the workspace, so a repository may bring one of that name: as a link to where files
//! would be overwritten, or open to others who would read the conversation. One that the caller names is
//! the caller's.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::layout::TranscriptPaths;
use crate::groundwork::files;

/// Bits that let others than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why transcripts do not go to a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnsafeTranscripts {
    /// It, or a file in it, is a link.
    #[error("{} is a link; transcripts are not written through links: remove it, or name a directory for transcripts", path.display())]
    Link {
        /// Path of the symbolic link.
        path: PathBuf,
    },
    /// Others may write into it.
    #[error("{} may be written by others; take that right away (chmod go-w), or name a directory for transcripts", path.display())]
    Writable {
        /// Path that other users may write to.
        path: PathBuf,
    },
    /// It is somebody else's.
    #[error("{} belongs to another user; name a directory for transcripts", path.display())]
    Foreign {
        /// Path that another user owns.
        path: PathBuf,
    },
}

/// Makes the directory, if it is not there, and keeps git out of it. What the file system refuses is
/// left to the one that writes there next.
///
/// # Errors
///
/// `UnsafeTranscripts` when the directory is a link, or others may write to it.
pub fn prepare(root: &Path) -> Result<(), UnsafeTranscripts> {
    if look(root).is_err_and(|it| it.kind() == io::ErrorKind::NotFound) {
        let _refused = files::make_directory(root);
    }
    let Ok(found) = look(root) else { return Ok(()) };
    let path = || root.to_owned();
    if found.is_symlink() {
        return Err(UnsafeTranscripts::Link { path: path() });
    }
    if !found.is_dir() {
        return Ok(());
    }
    if found.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(UnsafeTranscripts::Writable { path: path() });
    }
    // Root reads and writes what it likes, and works in directories of others all the time.
    let own = ennead_tools::source_file::own_user();
    if own != 0 && found.uid() != own {
        return Err(UnsafeTranscripts::Foreign { path: path() });
    }
    // Fails where one is, a link too, and that is left alone.
    let ignore = root.join(".gitignore");
    if let Ok(mut made) = File::create_new(&ignore)
        && made.write_all(b"*\n").is_err()
    {
        // An empty one would be left alone when there is space again.
        let _gone = fs::remove_file(&ignore);
    }
    Ok(())
}

/// Looks at the files of a session whose name was known before: they may have come with the directory.
///
/// # Errors
///
/// [`UnsafeTranscripts::Link`].
pub(crate) fn check_session(place: &TranscriptPaths) -> Result<(), UnsafeTranscripts> {
    let all = [place.file.clone(), place.directory.clone(), place.lock(), place.checkpoint()];
    let inside = ["subagents", "stored", "tool-results", "index", "vault"]
        .map(|it| place.directory.join(it));
    match all.into_iter().chain(inside).find(|it| look(it).is_ok_and(|it| it.is_symlink())) {
        Some(path) => Err(UnsafeTranscripts::Link { path }),
        None => Ok(()),
    }
}

fn look(path: &Path) -> io::Result<fs::Metadata> {
    fs::symlink_metadata(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use ennead_runtime::ids::SessionId;

    use super::*;
    use crate::ports::transcript_store::layout::Layout;

    #[test]
    fn directory_is_made_for_its_owner_alone_and_git_is_kept_out() {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().join(".transcripts");
        prepare(&root).unwrap();
        assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(root.join(".gitignore")).unwrap(), "*\n");
        fs::write(root.join(".gitignore"), "mine").unwrap();
        prepare(&root).unwrap();
        assert_eq!(fs::read_to_string(root.join(".gitignore")).unwrap(), "mine");
    }

    #[test]
    fn links_and_directories_open_to_others_are_refused() {
        let keep = tempfile::tempdir().unwrap();
        let path = |name: &str| keep.path().join(name);
        fs::create_dir(path("elsewhere")).unwrap();
        symlink("elsewhere", path("link")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        for name in ["link", "dangling"] {
            let error = prepare(&path(name)).unwrap_err();
            assert!(matches!(error, UnsafeTranscripts::Link { .. }), "{name}: {error}");
        }
        assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 0);
        assert!(!path("nowhere").exists());
        for mode in [0o777, 0o770, 0o722, 0o702] {
            fs::set_permissions(path("elsewhere"), fs::Permissions::from_mode(mode)).unwrap();
            let error = prepare(&path("elsewhere")).unwrap_err();
            assert!(matches!(error, UnsafeTranscripts::Writable { .. }), "{mode:o}: {error}");
        }
        fs::set_permissions(path("elsewhere"), fs::Permissions::from_mode(0o755)).unwrap();
        prepare(&path("elsewhere")).unwrap();
    }

    #[test]
    fn ignore_file_that_is_a_link_is_not_followed() {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().join(".transcripts");
        fs::create_dir(&root).unwrap();
        symlink("../made", root.join(".gitignore")).unwrap();
        prepare(&root).unwrap();
        assert!(!keep.path().join("made").exists());
    }

    #[test]
    fn session_that_came_with_the_directory_as_a_link_is_refused() {
        let id = SessionId::new("5f1c0000-0000-4000-8000-0000000000aa");
        let inside = ["{}/subagents", "{}/stored", "{}/index", "{}/vault"];
        for name in ["{}.jsonl", "{}.lock", "{}.checkpoint", "{}"].into_iter().chain(inside) {
            let keep = tempfile::tempdir().unwrap();
            let place = Layout::new(keep.path()).session(&id).unwrap();
            check_session(&place).unwrap();
            let link = keep.path().join(name.replace("{}", id.as_str()));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink("/nowhere", &link).unwrap();
            let error = check_session(&place).unwrap_err();
            assert!(matches!(error, UnsafeTranscripts::Link { path } if path == link), "{name}");
        }
    }
}
