//! What a reaper and the one that started it say to each other, over a pair of sockets.
//!
//! Down: one byte to begin with, and with it the standard input of the program if it has one; another with
//! a way for the socket of the proxy, where the program is to reach some hosts; then
//! [`ASK_TO_END`], as often as wanted. The end of the other side means: end everything. Up: that
//! the program was started, or why not, and how it ended.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The program's group is to be asked to end.
pub(super) const ASK_TO_END: u8 = b't';

/// In place of an error number: `bwrap` failed, or what it started.
pub(super) const BUBBLEWRAP_FAILED: i32 = -1;

/// What begins a talk; it carries nothing but the standard input.
const BEGIN: u8 = b'b';

/// What a reaper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The program runs, under this number; 0: its number means nothing to the one that started it.
    Started(i32),
    /// It cannot be started: an error number of the system.
    Failed(i32),
    /// Its status as `wait` gives it, and how many processes were ended after it.
    Ended { status: i32, n_left: u32 },
}

/// Bytes of a report.
const LENGTH: usize = 9;

impl Report {
    fn encode(self) -> [u8; LENGTH] {
        let (tag, number, count) = match self {
            Report::Started(pid) => (b'S', pid, 0),
            Report::Failed(errno) => (b'F', errno, 0),
            Report::Ended { status, n_left } => (b'E', status, n_left),
        };
        let mut bytes = [tag; LENGTH];
        bytes[1..5].copy_from_slice(&number.to_le_bytes());
        bytes[5..].copy_from_slice(&count.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: [u8; LENGTH]) -> Option<Self> {
        let [tag, a, b, c, d, e, f, g, h] = bytes;
        let number = i32::from_le_bytes([a, b, c, d]);
        match tag {
            b'S' => Some(Report::Started(number)),
            b'F' => Some(Report::Failed(number)),
            b'E' => {
                let n_left = u32::from_le_bytes([e, f, g, h]);
                Some(Report::Ended { status: number, n_left })
            }
            _ => None,
        }
    }

    pub(super) fn send(self, mut link: &UnixStream) -> io::Result<()> {
        link.write_all(&self.encode())
    }

    /// Receives the next report; `None` when there is none.
    pub(super) fn receive(mut link: &UnixStream) -> Option<Self> {
        let mut bytes = [0; LENGTH];
        link.read_exact(&mut bytes).ok()?;
        Self::decode(bytes)
    }

    /// Waits for the next report, without blocking a thread. Takes no byte of the one after it.
    pub(super) async fn wait(link: &UnixStream) -> io::Result<Option<Self>> {
        use tokio::io::AsyncReadExt as _;
        let mut bytes = [0; LENGTH];
        let mut link = tokio::net::UnixStream::from_std(link.try_clone()?)?;
        match link.read_exact(&mut bytes).await {
            Ok(_) => Ok(Self::decode(bytes)),
            Err(_) => Ok(None),
        }
    }
}

/// Begins a talk, and hands over what the program is to read.
pub(super) fn begin(link: &UnixStream, input: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let handles = input.as_slice();
    if !handles.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(handles));
    }
    sendmsg(link, &[IoSlice::new(&[BEGIN])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives what [`begin`] sends on the other side.
pub(super) fn begun(link: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(link.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    if received.bytes == 0 || byte != [BEGIN] {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn reports_and_the_input_arrive_as_they_were_sent() {
        let (host, reaper) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        begin(&host, Some(reader.as_fd())).unwrap();
        begin(&host, None).unwrap();
        let input = begun(&reaper).unwrap().unwrap();
        assert!(begun(&reaper).unwrap().is_none());
        drop(reader);
        writer.write_all(b"x").unwrap();
        drop(writer);
        let mut text = String::new();
        File::from(input).read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        let reports =
            [Report::Started(7), Report::Failed(2), Report::Ended { status: -1, n_left: 70_000 }];
        for report in reports {
            report.send(&reaper).unwrap();
            assert_eq!(Report::receive(&host), Some(report));
        }
        drop(host);
        assert!(begun(&reaper).is_err());
        assert_eq!(Report::receive(&reaper), None);
    }
}
