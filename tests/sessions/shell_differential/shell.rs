//! A real bash that runs one command at a time, among stubs that log how they are called.

use std::{
    fs,
    io::{ErrorKind, Read},
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

/// Seconds after which a command is stopped.
const LIMIT: u64 = 2;

/// What runs a command: half as much time of the processor, and a log of 1 KiB. A stub that cannot
/// write ends the whole group, which `timeout` leads.
const START: &str = "ulimit -f 1 -t 1 -c 0; exec /usr/bin/timeout -s KILL \"$1\" \
                     /bin/bash --norc --noprofile -c \"$2\"";

/// A place with stubs on the search path, for one command after another.
pub(super) struct Shell {
    /// The directory that commands run in, empty each time.
    pub(super) work: PathBuf,
    bin: PathBuf,
    log: PathBuf,
}

/// What a command did.
pub(super) struct CommandRun {
    /// A line for each start of a stub, with its name and first argument.
    pub(super) log: String,
    /// It was ended before it did so itself.
    pub(super) is_stopped: bool,
}

impl Shell {
    /// Makes the stubs, and links to the programs that run others.
    pub(super) fn new(place: &Path, stubs: &[&str]) -> Self {
        let (work, bin, log) = (place.join("work"), place.join("bin"), place.join("log"));
        fs::create_dir(&bin).unwrap();
        for name in stubs {
            let path = bin.join(name);
            // One line for each start, whatever the argument holds.
            let first = "first=${1%%'\n'*}";
            let stub = format!("printf '%s %s\\n' {name} \"$first\" >>\"$LOG\"");
            let text = format!("#!/bin/sh\ntrap '' XFSZ\n{first}\n{stub} || kill -KILL 0\n");
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for (name, path) in [("sh", "/bin/sh"), ("bash", "/bin/bash")] {
            std::os::unix::fs::symlink(path, bin.join(name)).unwrap();
        }
        for name in ["env", "timeout", "nice", "nohup", "xargs", "cat"] {
            std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), bin.join(name)).unwrap();
        }
        Self { work, bin, log }
    }

    /// Runs a command to the end of all that it starts.
    pub(super) fn run(&self, command: &str) -> CommandRun {
        fs::remove_dir_all(&self.work).ok();
        fs::create_dir(&self.work).unwrap();
        fs::remove_file(&self.log).ok();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        // What runs in the background is part of it.
        let command = format!("{command}\nwait");
        let mut child = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", START, "start", &LIMIT.to_string(), &command])
            .current_dir(&self.work)
            .env_clear()
            .envs([("PATH", &self.bin), ("LOG", &self.log), ("HOME", &self.work)])
            .stdin(Stdio::null())
            .stdout(OwnedFd::from(theirs.try_clone().unwrap()))
            .stderr(OwnedFd::from(theirs))
            .spawn()
            .unwrap();
        let is_over = is_closed(&mut ours);
        if !is_over {
            // What the shell left does not end.
            kill_process_group(Pid::from_child(&child), Signal::KILL).ok();
        }
        let status = child.wait().unwrap();
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        CommandRun { log, is_stopped: !is_over || was_killed(status) }
    }
}

/// Waits until nobody holds the other end, for a while.
fn is_closed(ours: &mut UnixStream) -> bool {
    ours.set_read_timeout(Some(Duration::from_secs(2 * LIMIT))).unwrap();
    let mut bytes = [0; 4096];
    // Nobody prints more than this within the limits of a process.
    for _ in 0..10_000 {
        match ours.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    false
}

/// Whether `timeout` or a stub ended the command.
fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(9) || status.code() == Some(137)
}
