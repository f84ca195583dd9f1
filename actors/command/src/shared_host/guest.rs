//! A client as the host sees it: lines that come in, lines and notes that go out, signals, and an exit code at the end.

use std::{io, time::Duration};

use tokio::{
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc, oneshot},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::frames::{Hello, HostFrame, PIECE, WINDOW, receive, send};
use crate::{
    exit::Exit,
    signals::Signals,
    stream_json::pipe::{Input, LineSplitter, N_WAITING, Output, OutputLines, encoded},
};

/// How long a client may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client may take to read what is left when its session has ended. Until then it may take as long as it likes.
const GRACE: Duration = Duration::from_secs(1);

/// Lines that are written in one go.
const BATCH: usize = 64;

/// The ends of a client that a session works with, as a command that serves itself has its own.
#[derive(Debug)]
pub struct ClientEnds {
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
pub struct Notes(mpsc::UnboundedSender<HostFrame>);

impl Notes {
    /// Writes text; it is dropped when the client is gone.
    pub fn write(&self, text: &str) {
        for piece in text.as_bytes().chunks(PIECE) {
            let _gone = self.0.send(HostFrame::Notes(piece.to_owned()));
        }
    }
}

/// Receives what a client says first.
///
/// # Errors
///
/// Those of the socket; [`io::ErrorKind::InvalidData`] for something else, [`io::ErrorKind::TimedOut`] for nothing.
pub async fn hello(stream: &mut UnixStream) -> io::Result<Hello> {
    match timeout(PATIENCE, receive(stream)).await?? {
        Some(HostFrame::Hello(hello)) => Ok(hello),
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
    session: impl FnOnce(ClientEnds) -> F,
) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    send(&mut to, &HostFrame::Welcome).await?;
    let (sender, input) = mpsc::channel(N_WAITING);
    let (output, lines) = Output::channel();
    let (written, unread) = oneshot::channel();
    let (asides, aside) = mpsc::unbounded_channel();
    let (signal, signals) = Signals::channel();
    let (pieces, taken) = mpsc::unbounded_channel();
    let (gone, ended) = (Notify::new(), Notify::new());
    let (code, exit) = oneshot::channel();
    let mut outlet = Outlet { to, lines, aside };
    let ends = ClientEnds { input, output, unread, signals, notes: Notes(asides.clone()) };
    let session = session(ends);
    let session = async {
        let _gone = code.send(session.await);
        ended.notify_one();
    };
    let writing = async {
        // Nobody may watch it any more.
        let _unwatched = written.send(outlet.write_lines(&gone).await);
        match exit.await {
            Ok(exit) => outlet.finish(exit).await,
            Err(_) => Ok(()),
        }
    };
    let limit = async {
        ended.notified().await;
        sleep(GRACE).await;
    };
    let end_of_host = async {
        ending.cancelled().await;
        let _ended = signal.send(Exit::Terminated);
    };
    let others = futures::future::join3(
        read(from, pieces, &signal, &gone),
        hand_over(taken, sender, &asides),
        end_of_host,
    );
    let others = async {
        others.await;
        // All of it is only of use to the session.
        std::future::pending().await
    };
    tokio::select! {
        (result, ()) = futures::future::join(writing, session) => result,
        () = limit => Err(io::ErrorKind::TimedOut.into()),
        never = others => never,
    }
}

/// A piece of input; `None` at its end.
type Piece = Option<Vec<u8>>;

/// Takes what the client sends until it is gone, and notifies `gone` then. Never waits for the session, so that signals are received
/// whatever that does.
async fn read(
    mut from: OwnedReadHalf,
    pieces: mpsc::UnboundedSender<Piece>,
    signal: &mpsc::UnboundedSender<Exit>,
    gone: &Notify,
) {
    // What is no frame comes from no client of ours.
    while let Ok(Some(frame)) = receive(&mut from).await {
        let _ended = match frame {
            HostFrame::Input(bytes) => pieces.send(Some(bytes)).is_ok(),
            HostFrame::EndOfInput => pieces.send(None).is_ok(),
            HostFrame::Signal(code) => {
                Exit::of_code(code).is_some_and(|exit| signal.send(exit).is_ok())
            }
            HostFrame::NobodyReads => {
                gone.notify_one();
                true
            }
            _ => break,
        };
    }
    gone.notify_one();
}

/// Hands over what the program writes as lines, and tells the client of each piece that is taken. One that has sent more than
/// it may is not listened to.
async fn hand_over(
    mut pieces: mpsc::UnboundedReceiver<Piece>,
    sender: mpsc::Sender<Input>,
    asides: &mpsc::UnboundedSender<HostFrame>,
) {
    let mut splitter = LineSplitter::default();
    while let Some(Some(bytes)) = pieces.recv().await {
        if WINDOW < pieces.len() {
            break;
        }
        for input in splitter.take(&bytes) {
            // A session that takes no input leaves it at that.
            let _ended = sender.send(input).await;
        }
        let _gone = asides.send(HostFrame::Taken);
    }
    if let Some(last) = splitter.end() {
        let _ended = sender.send(last).await;
    }
}

/// What goes to a client. A frame that was begun is always written whole.
struct Outlet {
    to: OwnedWriteHalf,
    lines: OutputLines,
    /// What is sent between lines.
    aside: mpsc::UnboundedReceiver<HostFrame>,
}

impl Outlet {
    /// Writes lines until there are no more, or nobody reads them.
    async fn write_lines(&mut self, gone: &Notify) -> io::Result<()> {
        loop {
            let lines = tokio::select! {
                biased;
                () = gone.notified() => return Err(io::ErrorKind::BrokenPipe.into()),
                Some(frame) = self.aside.recv() => {
                    send(&mut self.to, &frame).await?;
                    continue;
                }
                lines = self.lines.receive(BATCH) => lines,
            };
            if lines.is_empty() {
                return Ok(());
            }
            for piece in encoded(lines).await.chunks(PIECE) {
                send(&mut self.to, &HostFrame::Output(piece.to_owned())).await?;
            }
        }
    }

    /// Writes the notes that are left, and how the client is to end.
    async fn finish(&mut self, exit: Exit) -> io::Result<()> {
        while let Ok(frame) = self.aside.try_recv() {
            send(&mut self.to, &frame).await?;
        }
        send(&mut self.to, &HostFrame::Exit(exit.code())).await
    }
}
