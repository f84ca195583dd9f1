//! Starting this program once more in its own process, and handing it variables.

use std::{
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            net::UnixStream,
            process::CommandExt,
        },
    },
    process::Command,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::{SOCKET, Variables};

/// Bytes that one message can hold before the other side reads; a socket takes more. All variables of
/// a process together may have 2 MiB, and keys have some hundred bytes.
const MAX_BYTES: usize = 64 << 10;

/// Our executable, whatever its path leads to by now.
const OURSELVES: &str = "/proc/self/exe";

/// Starts this program anew, without these variables in its environment. Returns why it cannot.
pub(super) fn start(variables: &Variables) -> io::Error {
    match hand_over(variables) {
        Ok((inode, before)) => {
            let mut arguments = std::env::args_os();
            let name = arguments.next().unwrap_or_else(|| OURSELVES.into());
            let mut command = Command::new(OURSELVES);
            command.arg0(name).args(arguments).env(SOCKET, inode.to_string());
            variables.keys().for_each(|it| _ = command.env_remove(it));
            let error = command.exec();
            // The one that goes on reads what was there before.
            let restored = rustix::stdio::dup2_stdin(&before);
            restored.err().map_or(error, io::Error::from)
        }
        Err(error) => error,
    }
}

/// Puts a socket in the place of standard input. In it are the variables and what was there before,
/// which is also returned, with the number of the socket.
fn hand_over(variables: &Variables) -> io::Result<(u64, OwnedFd)> {
    let parts = variables.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let bytes = parts.fold(Vec::new(), |mut bytes, part| {
        bytes.extend_from_slice(part);
        // No name and no value has one.
        bytes.push(0);
        bytes
    });
    if MAX_BYTES < bytes.len() {
        let what = format!("keys of more than {MAX_BYTES} bytes are in the environment");
        return Err(io::Error::other(what));
    }
    let before = io::stdin().as_fd().try_clone_to_owned()?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let handles = [before.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&handles));
    sendmsg(&ours, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    ours.write_all(&bytes)?;
    let inode = rustix::fs::fstat(&theirs)?.st_ino;
    rustix::stdio::dup2_stdin(&theirs)?;
    Ok((inode, before))
}

/// Receives what the program that was here before handed over, if there was one, and puts its standard input back.
pub(super) fn arrive() -> io::Result<Option<Variables>> {
    let Some(socket) = std::env::var(SOCKET).ok().and_then(|it| it.parse::<u64>().ok()) else {
        return Ok(None);
    };
    if rustix::fs::fstat(io::stdin())?.st_ino != socket {
        return Ok(None);
    }
    let mut link = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut first = [1];
    recvmsg(&link, &mut [IoSliceMut::new(&mut first)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let before = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    });
    let (0, Some(before)) = (first[0], before) else {
        return Err(io::Error::other("standard input was not handed over"));
    };
    rustix::stdio::dup2_stdin(&before)?;
    let mut bytes = Vec::new();
    link.read_to_end(&mut bytes)?;
    // What was started by that path is called by its last part, which says nothing to who lists processes.
    if let Some(name) = std::env::current_exe().ok().as_deref().and_then(|it| it.file_name()) {
        let _only_a_name = std::fs::write("/proc/self/comm", name.as_bytes());
    }
    Ok(Some(read(&bytes)))
}

fn read(bytes: &[u8]) -> Variables {
    let text = |it: &[u8]| OsString::from_vec(it.to_vec());
    let mut parts = bytes.split(|it| *it == 0);
    let mut all = Variables::new();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        all.insert(text(name), text(value));
    }
    all
}
