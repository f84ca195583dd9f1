//! A disk that fails once: what is lost, what is made good, and that nothing hangs.

use std::{io, sync::Arc};

use ennead::{
    Options, Placement, RunEnd, data::StoreAccess, testing::FaultyStore, transcript::FileStore,
};

use crate::support::{
    events::EventLog,
    host::{Host, check_usable, prompt_to},
    record,
};

/// Files of which one append fails as on a full disk.
fn full_at(nth: usize) -> FaultyStore {
    let store = FaultyStore::new(Arc::new(FileStore::default()));
    store.fail(StoreAccess::Append, nth, io::ErrorKind::StorageFull);
    store
}

async fn host_on(store: &FaultyStore) -> Host {
    let store = Arc::new(store.clone());
    Host::start_with(Placement::Ambient, |options: Options| options.transcript_store(store)).await
}

// REQ: SES-2, SES-7, TRN-11
#[tokio::test]
async fn run_that_cannot_be_recorded_fails_and_the_transcript_stays_in_order() {
    for at in 0.. {
        let store = full_at(at);
        let host = host_on(&store).await;
        let session = host.open().await;
        let mut log = EventLog::new(session.events());
        let outcome = session.prompt("use echo echo").await;
        assert_eq!(log.runs(), (1, 1), "write {at}");
        if store.n_begun(StoreAccess::Append) <= at {
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
        let store = full_at(at);
        let host = host_on(&store).await;
        let session = host.open().await;
        let outcome = session.prompt("use echo echo").await;
        let transcript = session.transcript().to_owned();
        session.close().await;
        let kinds = record::records(&transcript).into_iter().map(|it| it.what.kind().to_owned());
        assert_eq!(kinds.last().as_deref(), Some("run_end"), "write {at}");
        if store.n_begun(StoreAccess::Append) <= at {
            assert!(outcome.is_ok() && 3 < at, "only {at} writes");
            break;
        }
    }
}

// REQ: SES-7, RUN-2
#[tokio::test]
async fn session_closes_although_what_closes_its_run_cannot_be_written() {
    // The prompt and the answer with its intent are written; the next write closes the turn.
    let store = full_at(2);
    let host = host_on(&store).await;
    let session = host.open().await;
    let run = prompt_to(&session, "use wait", &host.workshop.wait).await;
    session.close().await;
    host.workshop.wait.open();
    assert!(run.await.unwrap().is_err());
    assert!(2 < store.n_begun(StoreAccess::Append));
}
