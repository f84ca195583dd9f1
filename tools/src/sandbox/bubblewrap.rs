//! The second way to confine a command, for kernels whose Landlock lacks a part: `bwrap` makes the namespaces and
//! mounts, and starts this program in there once more, which installs the filter of system calls.
//!
//! What is confined is the same [`SandboxPolicy`]; [`mounts`] is how it is carried out.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            fs::{MetadataExt, PermissionsExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use ennead_runtime::sandbox::{SandboxNetwork, SandboxPolicy};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, Mode, OFlags, openat},
    io::{FdFlags, fcntl_setfd, retry_on_intr},
    mount::{MountPropagationFlags, mount_change},
    process::{
        DumpableBehavior, Signal, geteuid, set_dumpable_behavior, set_parent_process_death_signal,
    },
    thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities},
};

use super::{
    Bubblewrap,
    files::{self, DEVICES},
    mounts::{Access, Mark, SandboxMount, mounts},
};
use crate::helper;

/// Where it may be. A search by `PATH` would find what others have put there.
const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// Mounts of one command. Each takes the kernel some microseconds; with more the command is not started.
const MAX_MOUNTS: usize = 1_000;

/// How long it has to show that it works. It takes some milliseconds.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// Bytes of its complaint that are kept.
const MAX_COMPLAINT: u64 = 500;

/// Links of `/dev` that shells and programs use.
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Returns what is known of `bwrap` on this machine. It is tried once.
pub fn bubblewrap() -> &'static Bubblewrap {
    static FOUND: OnceLock<Bubblewrap> = OnceLock::new();
    FOUND.get_or_init(|| {
        let path = installed();
        let lacks = match path {
            None => Some(format!(
                "there is no bwrap that belongs to root and only root can write, at {}",
                PLACES.join(" or ")
            )),
            Some(_) => probe().err(),
        };
        Bubblewrap { path, lacks }
    })
}

/// The first that is there and can be trusted.
fn installed() -> Option<&'static str> {
    PLACES.into_iter().find(|it| trusted(it).is_some())
}

/// Where a program really is, if it and the directories that lead to it, and to the name that it is given, are root's, and
/// nobody else can write them.
fn trusted(name: &str) -> Option<PathBuf> {
    let name = Path::new(name);
    let real = fs::canonicalize(name).ok()?;
    let is_roots = |it: &Path| {
        fs::metadata(it).is_ok_and(|it| it.uid() == 0 && it.permissions().mode() & 0o022 == 0)
    };
    let mut all = name.ancestors().chain(real.ancestors());
    (real.is_file() && all.all(is_roots)).then_some(real)
}

/// Confines a helper that does nothing, as commands will be.
fn probe() -> Result<(), String> {
    if !helper::is_offered() {
        return Err(super::NO_HELPER.to_owned());
    }
    let mut outer = Command::new("/proc/self/exe");
    outer.arg0(helper::NAME).args([helper::BUBBLEWRAP, helper::PROBE_PROCESSES]);
    outer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut outer = outer.spawn().map_err(|it| it.to_string())?;
    let complaint = outer.stderr.take().map(|it| complaint(it.into())).unwrap_or_default();
    if complaint.is_none() {
        // What it has started ends with it.
        let _gone = outer.kill();
    }
    let is_success = outer.wait().is_ok_and(|it| it.success());
    match complaint {
        None => Err(format!("bwrap did not answer within {} s", PROBE_LIMIT.as_secs())),
        Some(_) if is_success => Ok(()),
        Some(text) if text.is_empty() => Err("bwrap failed and did not say why".to_owned()),
        Some(text) => Err(text),
    }
}

/// What is written until the other side ends, of which the beginning is kept; `None`: it did not end within the time.
fn complaint(from: OwnedFd) -> Option<String> {
    let limit = Timespec::try_from(PROBE_LIMIT).ok()?;
    // Only the end is waited for; what is written meanwhile stays in the pipe.
    let n_ended =
        retry_on_intr(|| poll(&mut [PollFd::new(&from, PollFlags::empty())], Some(&limit)));
    if n_ended != Ok(1) {
        return None;
    }
    let mut kept = Vec::new();
    // What cannot be read is not shown.
    let _read = fs::File::from(from).take(MAX_COMPLAINT).read_to_end(&mut kept);
    Some(String::from_utf8_lossy(&kept).trim().to_owned())
}

/// A `bwrap` to be started, which starts this program as a helper.
#[derive(Debug)]
pub(crate) struct Wrapped {
    /// It takes the words of the helper.
    pub(crate) command: Command,
    /// The executable of this process, which the helper is. It is left open, as its own place may be covered.
    _own: OwnedFd,
    /// Files of the command alone, which are mounted by what is open here.
    _files: Vec<OwnedFd>,
}

/// Returns the `bwrap` that carries a policy out. To be called by the outer helper alone: nothing that is open here, but
/// standard input, output and errors, is so in what it starts.
///
/// # Errors
///
/// When directories cannot be made, `bwrap` is not there, or there is too much to cover.
pub(crate) fn wrap(policy: &SandboxPolicy) -> io::Result<Wrapped> {
    super::prepare(policy)?;
    let program = installed().and_then(trusted).ok_or(io::ErrorKind::NotFound)?;
    let own = openat(CWD, "/proc/self/exe", OFlags::RDONLY, Mode::empty())?;
    let mut command = Command::new(program);
    command.args(["--unshare-pid", "--unshare-ipc", "--as-pid-1", "--die-with-parent"]);
    if policy.network != SandboxNetwork::Open {
        command.arg("--unshare-net");
    }
    if !geteuid().is_root() {
        // For the helper in there, which gives it up. Root keeps all that it has until then.
        command.args(["--cap-add", "CAP_SYS_ADMIN"]);
    }
    let mut files = Vec::new();
    let own_files = own_files(policy, &mut files)?;
    cover(&mut command, policy, &own_files)?;
    command.args(["--remount-ro", "/proc", "--chdir"]).arg(std::env::current_dir()?);
    command.arg("--").arg(format!("{}{}", helper::BY_DESCRIPTOR, own.as_raw_fd()));
    command.args([helper::NAME, helper::INSIDE]);
    Ok(Wrapped { command, _own: own, _files: files })
}

/// Opens the files of the command alone, so that `bwrap` has them open, too. Returns for each path what leads to its file.
fn own_files(
    policy: &SandboxPolicy,
    files: &mut Vec<OwnedFd>,
) -> io::Result<BTreeMap<PathBuf, PathBuf>> {
    let mut found = BTreeMap::new();
    for (path, file) in files::own_files(policy) {
        fcntl_setfd(&file, FdFlags::empty())?;
        found.insert(path, PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())));
        files.push(file);
    }
    Ok(found)
}

/// Adds the mounts of a policy.
fn cover(
    command: &mut Command,
    policy: &SandboxPolicy,
    own_files: &BTreeMap<PathBuf, PathBuf>,
) -> io::Result<()> {
    let mounts = mounts(marks(policy, own_files));
    if MAX_MOUNTS < mounts.len() {
        let why = "there are too many places of which each needs a mount of its own";
        return Err(io::Error::other(why));
    }
    let everything = SandboxMount::Writable(PathBuf::from("/"));
    let root = if mounts.contains(&everything) { "--bind" } else { "--ro-bind" };
    command.args([root, "/", "/", "--proc", "/proc"]);
    let mut empty = Vec::new();
    for mount in mounts.iter().filter(|it| **it != everything) {
        let (kind, from, to) = match mount {
            SandboxMount::Writable(path) => {
                ("--bind", own_files.get(path).unwrap_or(path).as_os_str(), path)
            }
            SandboxMount::Readable(path) => ("--ro-bind", path.as_os_str(), path),
            // It is bound without the right to use devices, so that opening it fails.
            SandboxMount::ClosedFile(path) => ("--ro-bind", OsStr::new("/dev/null"), path),
            SandboxMount::EmptyDirectory(path) => {
                command.arg("--tmpfs").arg(path);
                empty.push(path);
                continue;
            }
        };
        command.arg(kind).arg(from).arg(to);
    }
    if empty.iter().any(|it| *it == Path::new("/dev")) {
        for (to, at) in LINKS {
            command.args(["--symlink", to, at]);
        }
    }
    for device in DEVICES {
        command.args(["--dev-bind-try", device, device]);
    }
    // Only now, as what is mounted in them needs a place.
    for path in empty {
        command.arg("--remount-ro").arg(path);
    }
    Ok(())
}

/// What a policy says of paths that are there.
fn marks(policy: &SandboxPolicy, own_files: &BTreeMap<PathBuf, PathBuf>) -> Vec<Mark> {
    let denied = files::denied(policy).into_iter().map(|it| (it, Access::Nothing));
    let writable = files::writable(policy);
    let read = files::readable(policy, &writable).into_iter().map(|it| (it, Access::Read));
    let write = writable.into_iter().map(|it| (it, Access::Write));
    let mark = |(path, access): (PathBuf, Access)| {
        let path = fs::canonicalize(path).ok()?;
        let is_directory = fs::metadata(&path).ok()?.is_dir();
        // What is there is of the processes outside, and nothing of it is given back.
        let is_open = access == Access::Nothing || !path.starts_with("/proc");
        is_open.then_some(Mark { path, access, is_directory })
    };
    let own = own_files.keys().map(|path| Mark {
        path: path.clone(),
        access: Access::Write,
        is_directory: false,
    });
    denied.chain(write).chain(read).filter_map(mark).chain(own).collect()
}

/// Makes this process, the first in what `bwrap` made, see no further mounts of the machine, and end with the outer
/// helper. To be called by the inner helper alone, before all else.
///
/// # Errors
///
/// When the kernel does not let it.
pub(crate) fn begin_inside() -> io::Result<()> {
    // It has the same user as the command, and no filter of system calls until that is started.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // They would be writable.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    if !geteuid().is_root() {
        clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, none)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::probe, *};

    // REQ: TOL-10
    #[test]
    fn command_has_as_many_mounts_as_there_may_be_and_not_one_more() {
        let place = tempfile::tempdir().unwrap();
        let none = BTreeMap::new();
        let mut policy = probe();
        let n_others = mounts(marks(&policy, &none)).len();
        for n in n_others..MAX_MOUNTS {
            let file = place.path().join(format!("{n}.pem"));
            fs::write(&file, "").unwrap();
            policy.deny.push(file.display().to_string());
        }
        assert_eq!(mounts(marks(&policy, &none)).len(), MAX_MOUNTS);
        let mut command = Command::new("bwrap");
        cover(&mut command, &policy, &none).unwrap();
        let of_files = command.get_args().filter(|it| Path::new(it).starts_with(place.path()));
        assert_eq!(of_files.count(), MAX_MOUNTS - n_others);
        let further = place.path().join("further.pem");
        fs::write(&further, "").unwrap();
        policy.deny.push(further.display().to_string());
        let refused = cover(&mut Command::new("bwrap"), &policy, &none).unwrap_err();
        assert!(refused.to_string().contains("too many places"), "{refused}");
    }

    // REQ: TOL-10
    #[test]
    fn only_a_program_that_nobody_but_root_can_write_is_started() {
        let Some(of_root) =
            ["/usr/bin/env", "/bin/env"].into_iter().find(|it| Path::new(it).exists())
        else {
            return;
        };
        assert_eq!(trusted(of_root), fs::canonicalize(of_root).ok());
        let is_trusted = |it: &Path| trusted(it.to_str().unwrap()).is_some();
        let place = tempfile::tempdir().unwrap();
        let copy = place.path().join("bwrap");
        fs::copy(of_root, &copy).unwrap();
        assert!(!is_trusted(&copy), "others can write a directory on the way to it");
        assert!(!is_trusted(&place.path().join("nothing")));
        assert!(!is_trusted(Path::new("/usr/bin")));
        let link = place.path().join("link");
        std::os::unix::fs::symlink(of_root, &link).unwrap();
        assert!(!is_trusted(&link), "the name could be given to another program");
    }
}
