//! A small tree with an archive over files that can fail.

#![expect(clippy::panic, reason = "a test that goes astray, and a writer that is to crash")]

use std::{io, path::PathBuf, sync::Arc};

use ennead::{
    data::{Directory, Message, StoreAccess},
    internal::{
        Append, Archive, ArchiveMsg, ArchiveSetup, Layout, OpenOutcome, OpenTranscript, Recorded,
        Redaction, WriteError, WriterHandle,
    },
    settings::Durability,
    testing::{FaultyStore, ManualClock},
    transcript::{FileStore, TranscriptStore},
};
use ennead_runtime::{
    session::WriteTicket,
    time::Timestamp,
    transcript::entry::{ConversationLine, Line, LineFrame, StoredText},
};
use ractor::{Actor, ActorRef};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::{memory_store::MemoryStore, until::within};

/// Where the transcripts of a test are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreKind {
    InFiles,
    InMemory,
}

pub(super) struct ArchiveRig {
    pub(super) directory: TempDir,
    pub(super) archive: ActorRef<ArchiveMsg>,
    pub(super) store: FaultyStore,
    pub(super) durability: Durability,
    pub(super) clock: Arc<ManualClock>,
}

pub(super) struct Session {
    pub(super) handle: WriterHandle,
    pub(super) opened: UnboundedReceiver<OpenOutcome>,
    pub(super) answers: UnboundedReceiver<Recorded>,
    pub(super) answer: UnboundedSender<Recorded>,
}

pub(super) const SESSION: &str = "5f1c0000-0000-4000-8000-000000000001";

impl ArchiveRig {
    pub(super) async fn new(kept: StoreKind, durability: Durability) -> Self {
        let directory = TempDir::new().unwrap();
        let store = FaultyStore::new(match kept {
            StoreKind::InFiles => Arc::new(FileStore::default()),
            StoreKind::InMemory => Arc::new(MemoryStore::default()),
        });
        let clock = Arc::new(ManualClock::at(1_790_000_000_007));
        let archive = archive_at(Arc::new(store.clone()), &clock).await;
        Self { directory, archive, store, durability, clock }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.directory.path().join("transcripts")
    }

    /// The name of something that belongs to the session.
    pub(super) fn name(&self, extension: &str) -> PathBuf {
        self.root().join(format!("{SESSION}.{extension}"))
    }

    /// The number of the next access of a kind.
    pub(super) fn next(&self, access: StoreAccess) -> usize {
        self.store.n_begun(access)
    }

    /// Has the next append crash after some bytes of it.
    pub(super) fn crash_next(&self, n_bytes: usize) {
        self.store.crash_append(self.next(StoreAccess::Append), n_bytes);
    }

    /// Has the next access of a kind fail as on a full disk.
    pub(super) fn fail_next(&self, access: StoreAccess) {
        self.store.fail(access, self.next(access), io::ErrorKind::StorageFull);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.store.read(&self.name("jsonl")).unwrap()
    }

    pub(super) fn request_open(&self) -> UnboundedReceiver<OpenOutcome> {
        let (tell, opened) = unbounded_channel();
        let open = OpenTranscript {
            paths: Layout::new(self.root()).session(&SESSION.into()).unwrap(),
            frame: LineFrame {
                session: SESSION.into(),
                agent: None,
                cwd: "/app".into(),
                git_branch: None,
                version: "0.1.0",
            },
            durability: self.durability,
            meta: None,
            redaction: Redaction::default(),
            owner: None,
            reply: Arc::new(move |it| tell.send(it).unwrap()),
        };
        self.archive.cast(ArchiveMsg::Open(open)).unwrap();
        opened
    }

    pub(super) async fn open(&self) -> Session {
        let mut opened = self.request_open();
        let Some(OpenOutcome::Ready { handle, .. }) = within("the opening", opened.recv()).await
        else {
            panic!("the transcript opens")
        };
        let (answer, answers) = unbounded_channel();
        Session { handle, opened, answers, answer }
    }

    pub(super) async fn close(&self) {
        let (tell, mut closed) = unbounded_channel();
        let file = Layout::new(self.root()).session(&SESSION.into()).unwrap().file;
        let done: Arc<dyn Fn() + Send + Sync> = Arc::new(move || tell.send(()).unwrap());
        self.archive.cast(ArchiveMsg::Close { file, done: Some(done) }).unwrap();
        within("the closing", closed.recv()).await.unwrap();
    }
}

/// An archive of its own over a store.
pub(super) async fn archive(store: Arc<dyn TranscriptStore>) -> ActorRef<ArchiveMsg> {
    archive_at(store, &Arc::new(ManualClock::at(1_790_000_000_007))).await
}

async fn archive_at(
    store: Arc<dyn TranscriptStore>,
    clock: &Arc<ManualClock>,
) -> ActorRef<ArchiveMsg> {
    let setup = ArchiveSetup { clock: clock.clone(), store, directory: Directory::default() };
    Actor::spawn(None, Archive, setup).await.unwrap().0
}

impl Session {
    pub(super) fn send(&self, ticket: u64, names: &[&str], sync: bool, stored: Vec<StoredText>) {
        let lines = names.iter().map(|name| user_line(name)).collect();
        self.send_lines(ticket, lines, sync, stored);
    }

    pub(super) fn send_lines(
        &self,
        ticket: u64,
        lines: Vec<Line>,
        sync: bool,
        stored: Vec<StoredText>,
    ) {
        let lines = Arc::new(lines);
        let answer = self.answer.clone();
        let reply = Arc::new(move |it| answer.send(it).unwrap());
        let ticket = WriteTicket(ticket);
        self.handle.append(Append { lines, stored, title: None, sync, ticket, reply }).unwrap();
    }

    pub(super) async fn answer(&mut self) -> (u64, Result<u64, WriteError>) {
        let Recorded { ticket, result } = within("an answer", self.answers.recv()).await.unwrap();
        (ticket.0, result.map(|head| head.seq))
    }

    pub(super) async fn restarted(&mut self) {
        let Some(OpenOutcome::Restarted { handle }) =
            within("a new writer", self.opened.recv()).await
        else {
            panic!("the writer is started again")
        };
        self.handle = handle;
    }
}

pub(super) fn user_line(name: &str) -> Line {
    Line::Conversation(Box::new(ConversationLine {
        at: Timestamp(7),
        parent: None,
        message: Arc::new(Message::prompt(name.into(), name)),
        answer: None,
        tool_result: None,
        boundary: None,
    }))
}
