//! Notices that nobody can read any more what this process writes, before it writes again.
//!
//! A program that dies closes its ends of the pipes. The kernel tells of that at once, and a write only when there is one: a
//! tool that runs for minutes would run on.

use std::{
    fmt, io,
    os::fd::AsFd,
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use ennead::tool::BoxFuture;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::oneshot;

/// Resolves when all is written, or nobody reads any more.
pub struct Unread(BoxFuture<'static, io::Result<()>>);

impl Unread {
    /// Waits until all is written, or the one who writes notices that nobody reads.
    pub fn of(written: oneshot::Receiver<io::Result<()>>) -> Self {
        Self(Box::pin(async { written.await.unwrap_or(Ok(())) }))
    }
}

impl Future for Unread {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Unread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Unread")
    }
}

/// Bytes of the stack of the thread that waits.
const STACK: usize = 64 * 1024;

/// Returns what resolves when the last reader of this place is gone: `Ok` for a pipe, a socket or a terminal. What can have no
/// reader, as a file, never resolves it with `Ok`.
pub fn watch(place: impl AsFd + Send + 'static) -> oneshot::Receiver<()> {
    let (gone, is_gone) = oneshot::channel();
    let wait = move || {
        let mut watched = [PollFd::new(&place, PollFlags::empty())];
        loop {
            match poll(&mut watched, None) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                    let _nobody_waits = gone.send(());
                    return;
                }
                _ => return,
            }
        }
    };
    // Without the thread a write tells it, later.
    let _thread = thread::Builder::new().name("reader".into()).stack_size(STACK).spawn(wait);
    is_gone
}

/// Waits until all is written, or `unread` says that nobody reads any more.
pub fn written_or_unread(
    written: oneshot::Receiver<io::Result<()>>,
    unread: oneshot::Receiver<()>,
) -> Unread {
    Unread(Box::pin(async {
        tokio::select! {
            biased;
            written = written => written.unwrap_or(Ok(())),
            Ok(()) = unread => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write, os::unix::net::UnixStream};

    use super::*;

    // REQ: SUR-3
    #[tokio::test]
    async fn end_of_the_last_reader_is_noticed_without_a_write() {
        let (reader, writer) = io::pipe().unwrap();
        let (other, mut unread) = (reader.try_clone().unwrap(), watch(writer));
        drop(reader);
        assert!(unread.try_recv().is_err());
        drop(other);
        assert_eq!(unread.await, Ok(()));

        let (near, far) = UnixStream::pair().unwrap();
        let unread = watch(near);
        drop(far);
        assert_eq!(unread.await, Ok(()));
    }

    // REQ: SUR-3
    #[tokio::test]
    async fn file_is_written_to_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        let unread = watch(file.try_clone().unwrap());
        file.write_all(b"x").unwrap();
        let (done, written) = oneshot::channel();
        done.send(Ok(())).unwrap();
        written_or_unread(written, unread).await.unwrap();
        let (_never, written) = oneshot::channel::<io::Result<()>>();
        let closed = watch(File::open("/dev/null").unwrap());
        tokio::select! {
            biased;
            _ = written_or_unread(written, closed) => panic!("there is no reader to lose"),
            () = tokio::task::yield_now() => {}
        }
    }
}
