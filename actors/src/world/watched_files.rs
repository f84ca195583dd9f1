//! Looks whether watched files have changed.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ennead_runtime::hook::{FileChange, FileChangeKind, WatchReach, WatchedFile};

/// What is known of watched files, by their paths: `None` where there is no plain file.
pub(crate) type KnownFiles = BTreeMap<String, Option<FileStamp>>;

/// The state of a file by which it is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    modified: (i64, i64),
    n_bytes: u64,
    inode: (u64, u64),
}

/// Looks at files. None is opened. Those that are watched for a repository count as absent where a link leads out of
/// the workspace.
pub(crate) fn look(files: &[WatchedFile], workspace: &Path) -> KnownFiles {
    let root = files.iter().any(|it| it.reach != WatchReach::Anywhere);
    let root = root.then(|| workspace.canonicalize().ok()).flatten();
    let stamp = |it: &WatchedFile| stamp(it, root.as_deref()).ok().flatten();
    files.iter().map(|it| (it.path.clone(), stamp(it))).collect()
}

fn stamp(file: &WatchedFile, root: Option<&Path>) -> io::Result<Option<FileStamp>> {
    let path = match file.reach {
        WatchReach::Anywhere => PathBuf::from(&file.path),
        WatchReach::Workspace | WatchReach::Nothing => Path::new(&file.path).canonicalize()?,
    };
    let is_inside = root.is_some_and(|it| path.starts_with(it));
    if file.reach != WatchReach::Anywhere && !is_inside {
        return Ok(None);
    }
    let found = fs::metadata(path)?;
    Ok(found.is_file().then(|| FileStamp {
        modified: (found.mtime(), found.mtime_nsec()),
        n_bytes: found.len(),
        inode: (found.dev(), found.ino()),
    }))
}

/// Takes over what was seen, and returns what has changed. A file that was not known before has not changed; what is
/// not looked at any more is forgotten.
pub(crate) fn changes(known: &mut KnownFiles, seen: KnownFiles) -> Vec<FileChange> {
    let change = |(path, now): (&String, &Option<FileStamp>)| {
        let kind = match (known.get(path)?, now) {
            (None, Some(_)) => FileChangeKind::Add,
            (Some(_), None) => FileChangeKind::Unlink,
            (before, now) if before != now => FileChangeKind::Change,
            _ => return None,
        };
        Some(FileChange { path: path.clone(), kind })
    };
    let found = seen.iter().filter_map(change).collect();
    *known = seen;
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn file(path: PathBuf, reach: WatchReach) -> WatchedFile {
        WatchedFile { path: path.to_str().unwrap().into(), reach }
    }

    // REQ: HKS-1
    #[test]
    fn file_is_added_changed_and_gone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("watched");
        let files = [file(path.clone(), WatchReach::Workspace)];
        let mut known = KnownFiles::new();
        let mut kinds = || {
            let found = changes(&mut known, look(&files, place.path()));
            found.iter().map(|it| it.kind.name()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            (kinds(), kinds()),
            (String::new(), String::new()),
            "what is first seen is known"
        );
        fs::write(&path, "one").unwrap();
        assert_eq!((kinds(), kinds()), ("add".into(), String::new()));
        fs::write(&path, "longer").unwrap();
        assert_eq!(kinds(), "change");
        // Another file in its place, as editors leave it.
        fs::write(place.path().join("new"), "longer").unwrap();
        fs::rename(place.path().join("new"), &path).unwrap();
        assert_eq!(kinds(), "change");
        fs::remove_file(&path).unwrap();
        assert_eq!((kinds(), kinds()), ("unlink".into(), String::new()));
        fs::create_dir(&path).unwrap();
        assert_eq!(kinds(), "", "a directory is not a file");
    }

    // REQ: HKS-1
    #[test]
    fn link_does_not_lead_a_repository_out_of_the_workspace() {
        let place = tempfile::tempdir().unwrap();
        let (outside, workspace) = (place.path().join("outside"), place.path().join("workspace"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&workspace).unwrap();
        fs::write(outside.join("secret"), "x").unwrap();
        fs::write(workspace.join("own"), "x").unwrap();
        symlink(outside.join("secret"), workspace.join("file")).unwrap();
        symlink(&outside, workspace.join("directory")).unwrap();
        symlink("own", workspace.join("inside")).unwrap();
        for (name, is_seen) in [("file", false), ("directory/secret", false), ("inside", true)] {
            let is_there = |reach| {
                let files = [file(workspace.join(name), reach)];
                look(&files, &workspace).values().all(Option::is_some)
            };
            assert_eq!(is_there(WatchReach::Workspace), is_seen, "{name}");
            assert!(is_there(WatchReach::Anywhere), "{name}");
        }
    }
}
