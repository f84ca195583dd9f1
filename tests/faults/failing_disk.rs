//! A disk that fails once: what is lost, what is made good, and that nothing hangs.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead::{
    Options, Placement, RunEnd, data::FileOps, internal::RealFiles, transcript::FileStore,
};

use crate::support::{
    events::EventLog,
    host::{Host, check_usable, prompt_to},
    record,
};

/// Fails one write as a full disk does.
#[derive(Debug)]
struct Full {
    at: usize,
    writes: AtomicUsize,
}

impl FileOps for Full {
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        if self.writes.fetch_add(1, Ordering::SeqCst) == self.at {
            return Err(io::ErrorKind::StorageFull.into());
        }
        RealFiles.write(file, bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        RealFiles.sync(file)
    }
}

// REQ: SES-2, SES-7, TRN-11
#[tokio::test]
async fn run_that_cannot_be_recorded_fails_and_the_transcript_stays_in_order() {
    for at in 0.. {
        let ops = Arc::new(Full { at, writes: AtomicUsize::new(0) });
        let change =
            |options: Options| options.transcript_store(Arc::new(FileStore::with_ops(ops.clone())));
        let host = Host::start_with(Placement::Ambient, change).await;
        let session = host.open().await;
        let mut log = EventLog::new(session.events());
        let outcome = session.prompt("use echo echo").await;
        assert_eq!(log.runs(), (1, 1), "write {at}");
        if ops.writes.load(Ordering::SeqCst) <= at {
            assert_eq!(outcome.unwrap().end, RunEnd::NoPendingTools);
            assert!(4 < at, "only {at} writes");
            break;
        }
        assert!(outcome.is_err(), "write {at}: {outcome:?}");
        check_usable(&session).await;
    }
}

// REQ: SES-2, SES-7
#[tokio::test]
async fn lines_that_were_lost_once_are_on_file_when_the_session_is_closed() {
    for at in 0.. {
        let ops = Arc::new(Full { at, writes: AtomicUsize::new(0) });
        let change =
            |options: Options| options.transcript_store(Arc::new(FileStore::with_ops(ops.clone())));
        let host = Host::start_with(Placement::Ambient, change).await;
        let session = host.open().await;
        let outcome = session.prompt("use echo echo").await;
        let transcript = session.transcript().to_owned();
        session.close().await;
        let kinds = record::records(&transcript).into_iter().map(|it| it.what.kind().to_owned());
        assert_eq!(kinds.last().as_deref(), Some("run_end"), "write {at}");
        if ops.writes.load(Ordering::SeqCst) <= at {
            assert!(outcome.is_ok() && 3 < at, "only {at} writes");
            break;
        }
    }
}

// REQ: SES-7, RUN-2
#[tokio::test]
async fn session_closes_although_what_closes_its_run_cannot_be_written() {
    // The prompt and the answer with its intent are written; the next write closes the turn.
    let ops = Arc::new(Full { at: 2, writes: AtomicUsize::new(0) });
    let change =
        |options: Options| options.transcript_store(Arc::new(FileStore::with_ops(ops.clone())));
    let host = Host::start_with(Placement::Ambient, change).await;
    let session = host.open().await;
    let run = prompt_to(&session, "use wait", &host.workshop.wait).await;
    session.close().await;
    host.workshop.wait.open();
    assert!(run.await.unwrap().is_err());
    assert!(2 < ops.writes.load(Ordering::SeqCst));
}
