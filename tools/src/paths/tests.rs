//! Paths as tools take them.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use std::os::unix::fs::{MetadataExt, symlink};

fn real_directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    (directory, real)
}

// REQ: TOL-7
#[test]
fn a_link_exchanged_after_the_check_is_not_followed() {
    let (_keep, real) = real_directory();
    fs::create_dir(real.join("inside")).unwrap();
    fs::create_dir(real.join("outside")).unwrap();
    fs::write(real.join("outside/f"), "secret").unwrap();
    fs::write(real.join("inside/f"), "fine").unwrap();
    assert!(open_file(&real.join("inside/f")).is_ok());

    // The file becomes a link.
    fs::remove_file(real.join("inside/f")).unwrap();
    symlink(real.join("outside/f"), real.join("inside/f")).unwrap();
    let error = open_file(&real.join("inside/f")).unwrap_err();
    assert!(matches!(error, OpenError::Exchanged { .. }), "{error:?}");

    // The directory becomes a link.
    fs::remove_dir_all(real.join("inside")).unwrap();
    symlink(real.join("outside"), real.join("inside")).unwrap();
    let error = open_file(&real.join("inside/f")).unwrap_err();
    assert!(matches!(error, OpenError::Exchanged { .. }), "{error:?}");
    let error = Directory::open_or_make(&real.join("inside/new")).unwrap_err();
    assert!(matches!(error, OpenError::Exchanged { .. }), "{error:?}");
    assert!(!real.join("outside/new").exists());
}

#[test]
fn what_is_no_file_is_told_apart() {
    let (_keep, real) = real_directory();
    let open = |name: &str| open_file(&real.join(name)).unwrap_err();
    assert!(matches!(open("none"), OpenError::Missing));
    assert!(matches!(open("."), OpenError::IsDirectory));
    fs::create_dir(real.join("d")).unwrap();
    assert!(matches!(open("d"), OpenError::IsDirectory));
    fs::write(real.join("f"), "").unwrap();
    assert!(matches!(open("f/x"), OpenError::NotADirectory));
    rustix::fs::mknodat(
        CWD,
        real.join("fifo"),
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(matches!(open("fifo"), OpenError::Special));
}

// REQ: TOL-7
#[test]
fn file_that_replaces_a_private_one_is_private_while_it_is_empty() {
    let (_keep, real) = real_directory();
    let directory = Directory::open(&real).unwrap();
    for mode in [0o600, 0o400, 0o640, 0o644] {
        let permissions = Permissions::from_mode(mode);
        let made = directory.make_temporary(OsStr::new("f"), Some(&permissions)).unwrap();
        let found = made.file().metadata().unwrap().mode() & 0o777;
        assert_eq!(found & !mode, 0, "{found:o} is wider than {mode:o}");
        drop(made);
        let done = directory.prepare(OsStr::new("f"), b"x", Some(permissions)).unwrap();
        assert_eq!(done.file().metadata().unwrap().mode() & 0o777, mode);
    }
}

#[test]
fn what_is_prepared_and_not_put_is_removed() {
    let (_keep, real) = real_directory();
    let directory = Directory::open_or_make(&real.join("a/b")).unwrap();
    let prepared = directory.prepare(OsStr::new("f"), b"x", None).unwrap();
    assert_eq!(fs::read_dir(real.join("a/b")).unwrap().count(), 1);
    drop(prepared);
    assert_eq!(fs::read_dir(real.join("a/b")).unwrap().count(), 0);
    directory.prepare(OsStr::new("f"), b"x", None).unwrap().commit().unwrap();
    assert_eq!(fs::read(real.join("a/b/f")).unwrap(), b"x");
    assert_eq!(fs::read_dir(real.join("a/b")).unwrap().count(), 1);
}
