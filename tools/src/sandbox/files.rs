//! Which files a confined command gets: Landlock can only grant, so what is denied is left out of what
//! is granted, one directory level after the other.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use ennead_runtime::sandbox::SandboxPolicy;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// Entries of directories that are looked at, for all that is denied. A home directory has some
/// hundred; with more than this the command is not started.
const MAX_ENTRIES: usize = 50_000;

/// Devices that hold nothing and lead nowhere.
const DEVICES: [&str; 5] = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// A file or directory that may be used, with all below it.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) file: OwnedFd,
    pub(super) is_directory: bool,
    pub(super) is_writable: bool,
}

/// What a policy grants.
///
/// # Errors
///
/// When there is too much to look at, or a directory that is to be written cannot be opened.
pub(super) fn grants(policy: &SandboxPolicy) -> io::Result<Vec<Grant>> {
    let mut search = Search { denied: denied(policy), grants: Vec::new(), n_seen: 0 };
    search.grant(Path::new("/"), false)?;
    let temporary = policy.tmpdir.as_ref().map_or_else(std::env::temp_dir, PathBuf::from);
    let own = policy.home.iter().map(PathBuf::from).chain([temporary]);
    for path in policy.write.iter().map(PathBuf::from).chain(own) {
        // Whoever names a place that is denied as one to write to has said which of them counts.
        let Ok(real) = fs::canonicalize(&path) else { continue };
        search.denied.retain(|it| !real.starts_with(it));
        search.grant(&real, true)?;
    }
    for path in &policy.read {
        if let Ok(real) = fs::canonicalize(path) {
            search.grant(&real, false)?;
        }
    }
    search.denied.clear();
    for device in DEVICES {
        search.grant(Path::new(device), true)?;
    }
    Ok(search.grants)
}

/// What is denied, as it really is. What is not there needs no denial; it cannot be made either, as
/// what it would lie in is not granted as a whole.
fn denied(policy: &SandboxPolicy) -> Vec<PathBuf> {
    let home = Path::new(&policy.user_home);
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    let users = fs::read_dir("/home").into_iter().flatten().flatten().map(|it| it.path());
    let homes = users.chain([PathBuf::from("/root")]).filter(|it| *it != home);
    let listed = policy.deny.iter().map(PathBuf::from).flat_map(|it| {
        let real = fs::canonicalize(&it).ok();
        [Some(it), real]
    });
    homes.chain(listed.flatten()).filter(|it| !home.starts_with(it)).collect()
}

struct Search {
    denied: Vec<PathBuf>,
    grants: Vec<Grant>,
    n_seen: usize,
}

impl Search {
    /// Grants a path, or what is in it where some of that is denied.
    fn grant(&mut self, path: &Path, is_writable: bool) -> io::Result<()> {
        // Deeper than any path, as links are not followed.
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            self.n_seen += 1;
            if MAX_ENTRIES < self.n_seen {
                let why = "what is denied lies among too many files to be left out";
                return Err(io::Error::other(why));
            }
            if self.denied.iter().any(|it| path.starts_with(it)) {
                continue;
            }
            if self.denied.iter().any(|it| it.starts_with(&path)) {
                let Ok(entries) = fs::read_dir(&path) else { continue };
                open.extend(entries.flatten().map(|it| it.path()));
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // It may be gone by now, and not everything can be opened by everybody.
            let Ok(file) = openat(CWD, &path, flags, Mode::empty()) else { continue };
            let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
            // What a link leads to is granted where it lies, or not at all.
            if kind != FileType::Symlink {
                let is_directory = kind == FileType::Directory;
                self.grants.push(Grant { file, is_directory, is_writable });
            }
        }
        Ok(())
    }
}
