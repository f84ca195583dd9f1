//! Which files a confined command gets: Landlock can only grant, so what is denied is left out of what
//! is granted, one directory level after the other.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use ennead_runtime::sandbox::SandboxPolicy;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// Entries of directories that are looked at, for all that is denied. A home directory has some
/// hundred; with more than this the command is not started.
const MAX_ENTRIES: usize = 50_000;

/// Devices that hold nothing and lead nowhere.
pub(super) const DEVICES: [&str; 5] =
    ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// A file or directory that may be used, with all below it.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) file: OwnedFd,
    pub(super) is_directory: bool,
    pub(super) is_writable: bool,
}

/// Returns what a policy grants.
///
/// # Errors
///
/// When there is too much to look at, or a directory that is to be written cannot be opened.
pub(super) fn grants(policy: &SandboxPolicy) -> io::Result<Vec<Grant>> {
    let denied = denied(policy);
    let mut search = Search { denied: denied.clone(), grants: Vec::new(), n_seen: 0 };
    search.grant(Path::new("/"), false)?;
    // What is not there and is made by a command itself is not a secret, and a directory that is granted as
    // a whole can get new files.
    let existing: Vec<PathBuf> = denied.into_iter().filter(|it| it.exists()).collect();
    let but_for =
        |real: &Path| existing.iter().filter(|it| !real.starts_with(it)).cloned().collect();
    let writable = writable(policy);
    for path in &writable {
        // Whoever names a place that is denied as one to write to has said which of them counts.
        let Ok(real) = fs::canonicalize(path) else { continue };
        search.denied = but_for(&real);
        search.grant(&real, true)?;
    }
    for (_, file) in own_files(policy) {
        search.grants.push(Grant { file, is_directory: false, is_writable: true });
    }
    for path in &readable(policy, &writable) {
        if let Ok(real) = fs::canonicalize(path) {
            search.denied = but_for(&real);
            search.grant(&real, false)?;
        }
    }
    search.denied.clear();
    for device in DEVICES {
        search.grant(Path::new(device), true)?;
    }
    Ok(search.grants)
}

/// Returns the places that a policy lets be written, as they are named. One that lies in another is left out: it is granted
/// with that, and an earlier command may have put a link in its place.
pub(super) fn writable(policy: &SandboxPolicy) -> Vec<PathBuf> {
    let named = policy.write.iter().chain(&policy.home).chain(&policy.tmpdir).map(PathBuf::from);
    let mut found: Vec<PathBuf> = named.collect();
    let denied: Vec<PathBuf> = policy.deny.iter().map(PathBuf::from).collect();
    let outermost = |all: &[PathBuf], outer: &[PathBuf]| -> Vec<PathBuf> {
        all.iter().filter(|it| !is_granted_with(outer, it, &denied)).cloned().collect()
    };
    found = outermost(&found, &found);
    let real: Vec<PathBuf> = found.iter().filter_map(|it| fs::canonicalize(it).ok()).collect();
    outermost(&found, &real)
}

/// Returns the places that a policy lets be read although what is around them is denied, as they are named; without those
/// that commands can put a link in the place of, in what is `writable`.
pub(super) fn readable(policy: &SandboxPolicy, writable: &[PathBuf]) -> Vec<PathBuf> {
    let denied: Vec<PathBuf> = policy.deny.iter().map(PathBuf::from).collect();
    let named = policy.read.iter().map(PathBuf::from);
    named.filter(|it| !is_granted_with(writable, it, &denied)).collect()
}

/// Whether a place lies in one of these, and nothing between them is denied: what is, no command can replace.
fn is_granted_with(outer: &[PathBuf], path: &Path, denied: &[PathBuf]) -> bool {
    if path.components().any(|it| it == Component::ParentDir) {
        return false;
    }
    outer.iter().any(|outer| {
        let is_between =
            |it: &PathBuf| it != outer && it.starts_with(outer) && path.starts_with(it);
        path != outer && path.starts_with(outer) && !denied.iter().any(is_between)
    })
}

/// Returns the files of a command alone, and where they are. They may lie where other commands can put something in their
/// place, so they are opened once and links are not followed.
pub(super) fn own_files(policy: &SandboxPolicy) -> Vec<(PathBuf, OwnedFd)> {
    let open = |path: &String| {
        let path = Path::new(path);
        let at = fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(CWD, &at, flags, Mode::empty()).ok()?;
        let found = fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        (is_file && found.st_nlink == 1).then_some((at, file))
    };
    policy.own_files.iter().filter_map(open).collect()
}

/// What is denied, as written and as it really is: the listed, and the homes of other users.
pub(super) fn denied(policy: &SandboxPolicy) -> Vec<PathBuf> {
    let home = Path::new(&policy.user_home);
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    let users = fs::read_dir("/home").into_iter().flatten().flatten().map(|it| it.path());
    let homes = users.chain([PathBuf::from("/root")]).filter(|it| !home.starts_with(it));
    let listed = policy.deny.iter().map(PathBuf::from).flat_map(|it| {
        let real = fs::canonicalize(&it).ok();
        [Some(it), real]
    });
    homes.chain(listed.flatten()).collect()
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

#[cfg(test)]
mod tests {
    use ennead_runtime::sandbox::{HostRules, SandboxNetwork};

    use super::*;

    /// The names below a directory that are granted so, where these are denied.
    fn granted(directory: &Path, is_writable: bool, policy: &SandboxPolicy) -> Vec<String> {
        let found = grants(policy).unwrap().into_iter().filter(|it| it.is_writable == is_writable);
        let paths = found.map(|it| {
            use std::os::fd::AsRawFd;
            fs::read_link(format!("/proc/self/fd/{}", it.file.as_raw_fd())).unwrap()
        });
        let below = paths.filter_map(|it| Some(it.strip_prefix(directory).ok()?.to_owned()));
        let mut names: Vec<String> = below.map(|it| it.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    // REQ: TOL-10
    #[test]
    fn what_is_denied_is_left_out_and_its_neighbours_are_granted() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().canonicalize().unwrap();
        for name in ["home/.ssh", "home/code", "home/.config/gh", "home/.config/editor", "tmp"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(dir.join("home/.ssh"), dir.join("home/link")).unwrap();
        let home = dir.join("home");
        let at = |name: &str| home.join(name).to_string_lossy().into_owned();
        let mut policy = SandboxPolicy {
            write: vec![at("code")],
            own_files: Vec::new(),
            read: Vec::new(),
            deny: [".ssh", ".config/gh", "nowhere"].map(at).to_vec(),
            user_home: at(""),
            network: SandboxNetwork::Off,
            hosts: HostRules::default(),
            home: None,
            tmpdir: Some(dir.join("tmp").to_string_lossy().into_owned()),
        };
        assert_eq!(granted(&home, false, &policy), [".config/editor", "code"]);
        assert_eq!(granted(&home, true, &policy), ["code"]);
        policy.write = vec![at("")];
        assert_eq!(granted(&home, true, &policy), [".config/editor", "code"], "not the keys");
        policy.deny = vec![at("nowhere")];
        assert_eq!(granted(&home, true, &policy), [""], "what is not there hides nothing");
    }

    // REQ: TOL-10
    #[test]
    fn link_that_a_command_puts_in_the_place_of_what_it_may_write_leads_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().canonicalize().unwrap();
        for name in ["home/keys", "work/denied/out", "other"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(dir.join("work"), dir.join("link")).unwrap();
        let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
        for name in ["sub", "tmp", "readable"] {
            std::os::unix::fs::symlink(dir.join("home"), dir.join("work").join(name)).unwrap();
        }
        let policy = SandboxPolicy {
            write: ["work", "work/sub", "link", "link/sub", "other", "work/denied/out"]
                .map(at)
                .to_vec(),
            own_files: Vec::new(),
            read: vec![at("work/readable/keys")],
            deny: vec![at("home/keys"), at("work/denied")],
            user_home: at("home"),
            network: SandboxNetwork::Off,
            hosts: HostRules::default(),
            home: None,
            tmpdir: Some(at("work/tmp")),
        };
        assert_eq!(
            writable(&policy),
            ["work", "link", "other", "work/denied/out"].map(|it| dir.join(it))
        );
        assert_eq!(granted(&dir.join("home"), true, &policy), [""; 0]);
        let is_keys = |it: &String| it.starts_with("keys");
        assert!(!granted(&dir.join("home"), false, &policy).iter().any(is_keys));
        assert_eq!(granted(&dir.join("work/denied"), true, &policy), ["out"]);
    }
}
