//! A lock that is held: by a process that is about to be gone, and by one that stays.

use std::{
    fs::OpenOptions,
    process::{Child, Command, Stdio},
    time::Duration,
};

use ennead::{
    internal::{Layout, OpenOutcome},
    settings::Durability,
};

use tokio::time::{Instant, sleep};

use super::world::{ArchiveRig, SESSION, StoreKind};
use crate::support::until::within;

/// For how long a lock is tried for.
const PATIENCE: Duration = Duration::from_millis(200);

/// A process that holds the lock of the session until it is killed.
struct Holder(Child);

impl Holder {
    fn start(world: &ArchiveRig) -> Self {
        let path = Layout::new(world.root()).session(&SESSION.into()).unwrap().lock();
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        file.lock().unwrap();
        // The process inherits the handle, and with it the lock.
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("100000").stdin(Stdio::from(file)).spawn().unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // One that was killed already is gone.
        let _gone = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// A session that was written to and closed; time passes only where nothing else is left to do.
async fn closed() -> ArchiveRig {
    let world = ArchiveRig::new(StoreKind::InFiles, Durability::Process).await;
    let mut session = world.open().await;
    session.send(1, &["a"], false, Vec::new());
    session.answer().await.1.unwrap();
    world.close().await;
    tokio::time::pause();
    world
}

// REQ: SES-1
#[tokio::test]
async fn lock_of_a_process_that_is_being_killed_is_waited_for() {
    let world = closed().await;
    let mut holder = Holder::start(&world);
    let (mut opened, begun) = (world.request_open(), Instant::now());
    let killed = async {
        sleep(PATIENCE * 3 / 4).await;
        assert!(opened.is_empty(), "nothing was said before the lock is free");
        holder.kill();
    };
    killed.await;
    let Some(OpenOutcome::Ready { epoch, .. }) = within("the opening", opened.recv()).await else {
        panic!("it opens")
    };
    assert_eq!(epoch, 2);
    let took = begun.elapsed();
    assert!(PATIENCE * 3 / 4 <= took && took <= PATIENCE, "{took:?}");
}

// REQ: SES-1
#[tokio::test]
async fn lock_that_stays_held_is_refused_with_its_holder_and_nothing_is_written() {
    let world = closed().await;
    let (before, mut holder) = (world.bytes(), Holder::start(&world));
    let (mut opened, begun) = (world.request_open(), Instant::now());
    let Some(OpenOutcome::Failed(error)) = within("the opening", opened.recv()).await else {
        panic!("the lock is held")
    };
    let message = error.to_string();
    assert!(message.starts_with("the session is written by process "), "{message}");
    let took = begun.elapsed();
    assert!(PATIENCE <= took && took <= PATIENCE * 2, "{took:?}");
    assert_eq!(world.bytes(), before);
    holder.kill();
    let mut opened = world.request_open();
    assert!(
        matches!(within("the opening", opened.recv()).await, Some(OpenOutcome::Ready { .. })),
        "it opens once it is free"
    );
}
