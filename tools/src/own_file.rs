//! A file that was made for one program, to be read when that has ended. The program, and what it left behind, may have
//! put anything in its place.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};

/// Has the system open no link: a flag for [`custom_flags`](std::os::unix::fs::OpenOptionsExt::custom_flags).
pub const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Returns whether something was not opened because it is a link.
pub fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Returns what the file holds, and no more than `max` bytes of it.
///
/// # Errors
///
/// When it is not there, or is a link, a pipe or anything else but a regular file by now.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer, were it not for `NONBLOCK`.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // REQ: TOL-8, HKS-1
    #[test]
    fn only_a_regular_file_is_read_and_no_more_than_asked_for() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("file"), "12345").unwrap();
        assert_eq!(read(&at("file"), 10).unwrap(), b"12345");
        assert_eq!(read(&at("file"), 3).unwrap(), b"123");
        std::os::unix::fs::symlink("/dev/zero", at("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for name in ["link", "pipe", "nothing", "."] {
            assert!(read(&at(name), 10).is_err(), "{name}");
        }
    }
}
