//! The command as a client of a host: standard input goes there, standard output and the exit code come from there.

use std::{
    io::{Read, Write},
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
    sync::{Notify, mpsc, oneshot},
    time::{sleep, timeout},
};

use super::{
    frames::{Frame, Hello, PIECE, receive, send},
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
    /// Where notes go.
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
        send(&mut stream, &Frame::Hello(hello)).await?;
        receive(&mut stream).await
    };
    match timeout(PATIENCE, answered).await {
        Ok(Ok(Some(Frame::Welcome))) => {}
        Ok(Ok(Some(Frame::Refused(why)))) => return alone(&why),
        Ok(_) => return alone("it closed the connection"),
        Err(_) => return alone("it does not answer"),
    }
    let mut signals = Signals::take().await?;
    let (from, to) = stream.into_split();
    let nobody_reads = Arc::new(Notify::new());
    let (output, written) = written_by_thread(streams.output, Arc::clone(&nobody_reads));
    let mut pieces = read_by_thread(streams.input);
    let code = tokio::select! {
        code = take(from, output, streams.notes) => code,
        never = hand_over(to, &mut pieces, &mut signals, &nobody_reads) => never,
    };
    let Some(exit) = code.and_then(Exit::of_code) else {
        let what = "the host that served this session is gone; the session can be resumed";
        return Err(Failure::new(Exit::RunFailed, what));
    };
    tokio::select! {
        _ = written => Ok(Attached::Ended(exit)),
        by_signal = async {
            let by_signal = signals.next().await;
            sleep(GRACE).await;
            by_signal
        } => Ok(Attached::Ended(by_signal)),
    }
}

/// Sends what the program writes, and signals. Ends only where the host is gone, without a code.
async fn hand_over(
    mut to: OwnedWriteHalf,
    pieces: &mut mpsc::Receiver<Vec<u8>>,
    signals: &mut Signals,
    nobody_reads: &Notify,
) -> Option<u8> {
    let mut has_input = true;
    loop {
        let frame = tokio::select! {
            biased;
            exit = signals.next() => Frame::Signal(exit.code()),
            () = nobody_reads.notified() => Frame::NobodyReads,
            piece = pieces.recv(), if has_input => match piece {
                Some(piece) => Frame::Input(piece),
                None => {
                    has_input = false;
                    Frame::EndOfInput
                }
            },
        };
        if send(&mut to, &frame).await.is_err() {
            // What it sent before that may still be read.
            return std::future::pending().await;
        }
    }
}

/// Takes what the host sends until it says how to end; `None` where it is gone before.
async fn take(
    mut from: OwnedReadHalf,
    output: mpsc::Sender<Vec<u8>>,
    mut notes: impl Write,
) -> Option<u8> {
    while let Ok(Some(frame)) = receive(&mut from).await {
        match frame {
            Frame::Output(bytes) => {
                let _nobody_reads = output.send(bytes).await;
            }
            // Without a reader there is nothing to report to.
            Frame::Notes(bytes) => _ = notes.write_all(&bytes).and_then(|()| notes.flush()),
            Frame::Exit(code) => return Some(code),
            _ => return None,
        }
    }
    None
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
        while let Ok(n_read @ 1..) = source.read(&mut buffer) {
            if sender.blocking_send(buffer[..n_read].to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}
