//! The helper that stays outside of what a sandbox is made of, and starts the reaper proper in there.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::AsFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Child, Command, Stdio},
};

use ennead_runtime::sandbox::SandboxPolicy;

use super::{
    link::{self, BUBBLEWRAP_FAILED, Report},
    reaper::failed,
};
use crate::{
    helper::{FIRST, NAME, PROBE_PROCESSES},
    sandbox,
};

/// Starts the reaper as the first process of a PID namespace, and ends when that does. `words` are those of the reaper.
pub(super) fn separate(words: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut reaper = Command::new("/proc/self/exe");
    reaper.arg0(NAME).arg(FIRST).args(words);
    match sandbox::separate().and_then(|()| reaper.spawn()) {
        Ok(first) => outlast(first),
        Err(error) => failed(&error, &own_link()?),
    }
}

/// Starts the reaper in what `bwrap` makes, and ends when that does. `words` are those of the reaper.
pub(super) fn wrap(words: impl Iterator<Item = OsString>) -> io::Result<()> {
    let words: Vec<OsString> = words.collect();
    let is_probe = words.first().is_some_and(|it| it == PROBE_PROCESSES);
    let policy = match words.get(1).and_then(|it| it.to_str()) {
        _ if is_probe => sandbox::probe(),
        Some(text) => serde_json::from_str(text)?,
        None => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let link = own_link()?;
    let ended = start_wrapped(&policy, words, is_probe).and_then(outlast);
    if is_probe {
        return ended;
    }
    // Where the reaper has reported an end before, what follows is not read.
    ended.or_else(|_| Report::Failed(BUBBLEWRAP_FAILED).send(&link))
}

/// Starts `bwrap`. It keeps its standard streams open while anything in it runs, so those of the reaper are handed over
/// by a link, and it gets none but where it is to complain.
fn start_wrapped(
    policy: &SandboxPolicy,
    words: Vec<OsString>,
    complains: bool,
) -> io::Result<Child> {
    let mut wrapped = sandbox::wrap(policy)?;
    let (here, there) = UnixStream::pair()?;
    link::begin(&here, Some(io::stdin().as_fd()))?;
    link::begin(&here, Some(io::stdout().as_fd()))?;
    link::begin(&here, Some(io::stderr().as_fd()))?;
    let command = wrapped.command.args(words).stdin(Stdio::from(std::os::fd::OwnedFd::from(there)));
    command.stdout(Stdio::null());
    if !complains {
        command.stderr(Stdio::null());
    }
    command.spawn()
}

/// Takes over the standard streams that [`wrap`] hands over.
pub(super) fn take_streams() -> io::Result<()> {
    let way = own_link()?;
    let next = || link::begun(&way)?.ok_or(io::Error::from(io::ErrorKind::InvalidInput));
    let (input, output, errors) = (next()?, next()?, next()?);
    rustix::stdio::dup2_stdin(&input)?;
    rustix::stdio::dup2_stdout(&output)?;
    Ok(rustix::stdio::dup2_stderr(&errors)?)
}

/// Waits until that process has ended, and fails where it did.
fn outlast(mut first: Child) -> io::Result<()> {
    // What is open here would seem to be open there.
    let null = null()?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    if first.wait()?.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
}

/// The way to the one that started us.
pub(super) fn own_link() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

pub(super) fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}
