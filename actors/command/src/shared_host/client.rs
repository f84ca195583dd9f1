//! The command as a client of a host: standard input goes there, standard output and the exit code come from there.

use std::{
    io::{self, Read, Write},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, Semaphore, mpsc, oneshot},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    frames::{Hello, HostFrame, PIECE, WINDOW, receive, send},
    place::is_of_this_user,
};
use crate::{
    exit::{Exit, Failure},
    signals::Signals,
};

/// How long a host may take to take a client in.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pieces of input, and of output, that wait in the client.
const N_WAITING: usize = 4;

/// How long lines that nobody reads are waited for after a signal.
const GRACE: Duration = Duration::from_secs(1);

/// What became of a client.
#[derive(Debug)]
pub enum Attached {
    /// A host served it.
    Ended(Exit),
    /// No host serves it; why not, where one is there.
    Alone(Option<String>),
}

/// The standard streams of the process.
#[derive(Debug)]
pub struct Streams<I, O, E> {
    /// What the program writes.
    pub input: I,
    /// What the program reads.
    pub output: O,
    /// Resolves with `Ok` when nobody can read that any more.
    pub unread: oneshot::Receiver<()>,
    /// Where notes for people are written.
    pub notes: E,
}

/// Has a host at this socket do what `hello` says. Nothing was read or written where it does not.
///
/// # Errors
///
/// The host served and is gone, or signals cannot be received.
pub async fn attach<I, O, E>(
    socket: &Path,
    hello: Hello,
    streams: Streams<I, O, E>,
) -> Result<Attached, Failure>
where
    I: Read + Send + 'static,
    O: Write + Send + 'static,
    E: Write,
{
    let Ok(mut stream) = UnixStream::connect(socket).await else {
        return Ok(Attached::Alone(None));
    };
    let alone = |why: &str| Ok(Attached::Alone(Some(why.into())));
    if !is_of_this_user(&stream) {
        return alone("it belongs to another user");
    }
    let answered = async {
        send(&mut stream, &HostFrame::Hello(hello)).await?;
        receive(&mut stream).await
    };
    match timeout(PATIENCE, answered).await {
        Ok(Ok(Some(HostFrame::Welcome))) => {}
        Ok(Ok(Some(HostFrame::Refused(why)))) => return alone(&why),
        Ok(_) => return alone("it closed the connection"),
        Err(_) => return alone("it does not answer"),
    }
    let mut signals = Signals::take().await?;
    let (from, to) = stream.into_split();
    let link = HostLink {
        nobody_reads: Arc::new(Notify::new()),
        window: Semaphore::new(WINDOW),
        is_over: CancellationToken::new(),
    };
    let (output, written) = written_by_thread(streams.output, Arc::clone(&link.nobody_reads));
    let unread = async {
        if streams.unread.await.is_ok() {
            link.nobody_reads.notify_one();
        }
        std::future::pending().await
    };
    let mut pieces = read_by_thread(streams.input);
    let code = tokio::select! {
        code = link.take(from, output, streams.notes) => code,
        never = link.hand_over(to, &mut pieces, &mut signals) => never,
        never = unread => never,
    };
    let Some(exit) = code.and_then(Exit::of_code) else {
        let what = "the host that served this session is gone; the session can be resumed";
        return Err(Failure::new(Exit::RunFailed, what));
    };
    // Lines that nobody reads are not waited for long after a signal.
    let signal = async {
        if !link.is_over.is_cancelled() {
            signals.next().await;
        }
        sleep(GRACE).await;
    };
    tokio::select! {
        _ = written => {}
        () = signal => {}
    }
    Ok(Attached::Ended(exit))
}

/// What both directions of a link to a host share.
struct HostLink {
    nobody_reads: Arc<Notify>,
    /// Pieces of input that may be sent.
    window: Semaphore,
    /// A signal has come, and what nobody reads is not waited for any more.
    is_over: CancellationToken,
}

impl HostLink {
    /// Sends what the program writes, and signals. Ends only with the other direction.
    async fn hand_over(
        &self,
        mut to: OwnedWriteHalf,
        pieces: &mut mpsc::Receiver<Vec<u8>>,
        signals: &mut Signals,
    ) -> Option<u8> {
        let mut has_input = true;
        let piece = async |pieces: &mut mpsc::Receiver<Vec<u8>>| {
            // The place is taken back when the host has taken the piece.
            if let Ok(place) = self.window.acquire().await {
                let piece = pieces.recv().await;
                place.forget();
                return piece;
            }
            None
        };
        loop {
            let frame = tokio::select! {
                biased;
                exit = signals.next() => HostFrame::Signal(exit.code()),
                () = self.nobody_reads.notified() => HostFrame::NobodyReads,
                piece = piece(pieces), if has_input => match piece {
                    Some(piece) => HostFrame::Input(piece),
                    None => {
                        has_input = false;
                        HostFrame::EndOfInput
                    }
                },
            };
            if send(&mut to, &frame).await.is_err() {
                // What it sent before that may still be read.
                return std::future::pending().await;
            }
            if matches!(frame, HostFrame::Signal(_)) {
                self.is_over.cancel();
            }
        }
    }

    /// Takes what the host sends until it says how to end; `None` where it is gone before.
    async fn take(
        &self,
        mut from: OwnedReadHalf,
        output: mpsc::Sender<Vec<u8>>,
        mut notes: impl Write,
    ) -> Option<u8> {
        while let Ok(Some(frame)) = receive(&mut from).await {
            match frame {
                HostFrame::Output(bytes) => tokio::select! {
                    biased;
                    _nobody_reads = output.send(bytes) => {}
                    () = self.is_unread() => {}
                },
                // Without a reader there is nothing to report to.
                HostFrame::Notes(bytes) => _ = notes.write_all(&bytes).and_then(|()| notes.flush()),
                HostFrame::Taken => self.window.add_permits(1),
                HostFrame::Exit(code) => return Some(code),
                _ => return None,
            }
        }
        None
    }

    /// Waits until a signal has come, and a moment more.
    async fn is_unread(&self) {
        self.is_over.cancelled().await;
        sleep(GRACE).await;
    }
}

/// Writes on a thread, as the program may stop reading. Resolves when all is written.
fn written_by_thread(
    mut place: impl Write + Send + 'static,
    nobody_reads: Arc<Notify>,
) -> (mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>) {
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(N_WAITING);
    let (ended, end) = oneshot::channel();
    thread::spawn(move || {
        let mut is_read = true;
        while let Some(piece) = pieces.blocking_recv() {
            if is_read && place.write_all(&piece).and_then(|()| place.flush()).is_err() {
                is_read = false;
                nobody_reads.notify_one();
            }
        }
        let _unwatched = ended.send(());
    });
    (sender, end)
}

fn read_by_thread(mut source: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, pieces) = mpsc::channel(N_WAITING);
    thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        loop {
            match source.read(&mut buffer) {
                Ok(n_read @ 1..) if sender.blocking_send(buffer[..n_read].to_vec()).is_ok() => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    pieces
}
