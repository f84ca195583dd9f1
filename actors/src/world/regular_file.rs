//! Reads a file whose name others may have chosen, a repository mostly.
//!
//! Alone because such a name may lead to anything: a pipe that is never written to, or a device
//! that never ends. What is read is a regular file of bounded size, or nothing.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// Bytes of a file of settings or servers at most (compat 1.1).
const MAX_TEXT: u64 = 2 * 1024 * 1024;

/// The text of a file, for settings and the like.
///
/// # Errors
///
/// Those of [`read`], and `InvalidData` when it is no UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let refused = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text");
    String::from_utf8(read(path, MAX_TEXT)?).map_err(refused)
}

/// All of a file that has so many bytes at most.
///
/// # Errors
///
/// `InvalidInput` when it is no regular file or too large, and those of the file system.
pub(crate) fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    // Looked at first: opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(refused("it is no regular file".into()));
    }
    let mut bytes = Vec::new();
    // One more than allowed: what a file says of its size need not hold.
    File::open(path)?.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if max_bytes < bytes.len() as u64 {
        return Err(refused(format!("it has more than {max_bytes} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, process::Command};

    use super::*;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("text"), "ä").unwrap();
        fs::write(path("bytes"), [0xff]).unwrap();
        symlink("text", path("link")).unwrap();
        symlink("/dev/zero", path("endless")).unwrap();
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        for name in ["text", "link"] {
            assert_eq!(read_text(&path(name)).unwrap(), "ä");
        }
        for (name, kind) in [
            ("pipe", io::ErrorKind::InvalidInput),
            ("endless", io::ErrorKind::InvalidInput),
            (".", io::ErrorKind::InvalidInput),
            ("bytes", io::ErrorKind::InvalidData),
            ("none", io::ErrorKind::NotFound),
        ] {
            assert_eq!(read_text(&path(name)).unwrap_err().kind(), kind, "{name}");
        }
        assert_eq!(read(&path("text"), 2).unwrap().len(), 2);
        assert_eq!(read(&path("text"), 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
