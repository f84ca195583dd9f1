//! A client as the host sees it: lines that come in, lines and notes that go out, signals, and an exit code at the end.

use std::{io, time::Duration};

use tokio::{
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::frames::{Frame, Hello, PIECE, receive, send};
use crate::{
    exit::Exit,
    signals::Signals,
    stream_json::pipe::{Input, LineSplitter, Lines, N_WAITING, Output, encoded},
};

/// How long a client may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lines that are written in one go.
const BATCH: usize = 64;

/// The ends of a client that a session works with, as a command that serves itself has its own.
#[derive(Debug)]
pub struct Guest {
    /// What the program writes.
    pub input: mpsc::Receiver<Input>,
    /// What the program reads.
    pub output: Output,
    /// Resolves when all of it is written, or nobody reads.
    pub unread: oneshot::Receiver<io::Result<()>>,
    /// Signals that the client received, and the end of the host.
    pub signals: Signals,
    /// Standard error of the client.
    pub notes: Notes,
}

/// Standard error of a client. Clones write to the same one.
#[derive(Clone, Debug)]
pub struct Notes(mpsc::UnboundedSender<String>);

impl Notes {
    /// Writes text; it is dropped when the client is gone.
    pub fn write(&self, text: String) {
        let _gone = self.0.send(text);
    }
}

/// Receives what a client says first.
///
/// # Errors
///
/// Those of the socket; [`io::ErrorKind::InvalidData`] for something else, [`io::ErrorKind::TimedOut`] for nothing.
pub async fn hello(stream: &mut UnixStream) -> io::Result<Hello> {
    match timeout(PATIENCE, receive(stream)).await?? {
        Some(Frame::Hello(hello)) => Ok(hello),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Serves a client until `session` has ended, and sends the exit code that it gives. `ending` counts as a signal.
///
/// # Errors
///
/// Those of the socket. The session has ended then, too.
pub async fn serve<F: Future<Output = Exit>>(
    stream: UnixStream,
    ending: &CancellationToken,
    session: impl FnOnce(Guest) -> F,
) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    send(&mut to, &Frame::Welcome).await?;
    let (sender, input) = mpsc::channel(N_WAITING);
    let (output, lines) = Output::channel();
    let (written, unread) = oneshot::channel();
    let (notes, noted) = mpsc::unbounded_channel();
    let (signal, signals) = Signals::channel();
    let gone = Notify::new();
    let reading = read(from, sender, &signal, &gone);
    let ending = async {
        ending.cancelled().await;
        let _ended = signal.send(Exit::Terminated);
    };
    let mut outlet = Outlet { to, lines, noted };
    let session = session(Guest { input, output, unread, signals, notes: Notes(notes) });
    let writing = async {
        let ended = tokio::select! {
            ended = outlet.write_lines() => ended,
            () = gone.notified() => Err(io::ErrorKind::BrokenPipe.into()),
        };
        let _unwatched = written.send(ended);
    };
    let exit = {
        let served = futures::future::join(session, writing);
        let others = futures::future::join(reading, ending);
        let (mut served, mut others) = (std::pin::pin!(served), std::pin::pin!(others));
        tokio::select! {
            (exit, ()) = &mut served => exit,
            // Both are only of use to the session.
            _ = &mut others => served.await.0,
        }
    };
    outlet.write_notes().await?;
    send(&mut outlet.to, &Frame::Exit(exit.code())).await
}

/// Takes what the client sends until it is gone, which is told.
async fn read(
    mut from: OwnedReadHalf,
    sender: mpsc::Sender<Input>,
    signal: &mpsc::UnboundedSender<Exit>,
    gone: &Notify,
) {
    let (mut splitter, mut sender) = (LineSplitter::default(), Some(sender));
    // What is no frame comes from no client of ours.
    while let Ok(Some(frame)) = receive(&mut from).await {
        let inputs = match frame {
            Frame::Input(bytes) => splitter.take(&bytes),
            Frame::EndOfInput => splitter.end().into_iter().collect(),
            Frame::Signal(code) => {
                if let Some(exit) = Exit::of_code(code) {
                    let _ended = signal.send(exit);
                }
                continue;
            }
            Frame::NobodyReads => {
                gone.notify_one();
                continue;
            }
            _ => break,
        };
        if let Some(sender) = &sender {
            for input in inputs {
                let _ended = sender.send(input).await;
            }
        }
        if splitter.has_ended() {
            sender = None;
        }
    }
    gone.notify_one();
}

/// What goes to a client.
struct Outlet {
    to: OwnedWriteHalf,
    lines: Lines,
    noted: mpsc::UnboundedReceiver<String>,
}

impl Outlet {
    /// Writes lines until there are no more.
    async fn write_lines(&mut self) -> io::Result<()> {
        loop {
            let lines = tokio::select! {
                biased;
                Some(note) = self.noted.recv() => {
                    write_note(&mut self.to, &note).await?;
                    continue;
                }
                lines = self.lines.receive(BATCH) => lines,
            };
            if lines.is_empty() {
                return Ok(());
            }
            for piece in encoded(lines).await.chunks(PIECE) {
                send(&mut self.to, &Frame::Output(piece.to_owned())).await?;
            }
        }
    }

    /// Writes the notes that are left.
    async fn write_notes(&mut self) -> io::Result<()> {
        while let Ok(note) = self.noted.try_recv() {
            write_note(&mut self.to, &note).await?;
        }
        Ok(())
    }
}

async fn write_note(to: &mut OwnedWriteHalf, note: &str) -> io::Result<()> {
    for piece in note.as_bytes().chunks(PIECE) {
        send(to, &Frame::Notes(piece.to_owned())).await?;
    }
    Ok(())
}
