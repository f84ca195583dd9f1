//! A small tree with an archive over files that can fail.

#![expect(clippy::panic, reason = "a test that goes astray, and a writer that is to crash")]

use std::{
    collections::VecDeque,
    fs,
    fs::File,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ennead::{
    Clock,
    internal::{
        Append, Archive, ArchiveMsg, ArchiveSetup, Directory, FileOps, Layout, OpenTranscript,
        Opened, RealFiles, Recorded, WriteError, WriterHandle,
    },
    model::Message,
    settings::Durability,
};
use ennead_runtime::{
    time::Timestamp,
    transcript::entry::{ConversationLine, Line, LineFrame, StoredText},
};
use ractor::{Actor, ActorRef};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[derive(Debug)]
pub(super) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_790_000_000_007)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// What the next write does; writes beyond the plan succeed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Short(usize),
    Fail,
    CrashBefore,
    CrashAfter(usize),
}

#[derive(Debug, Default)]
pub(super) struct FaultyFiles {
    pub(super) plan: Mutex<VecDeque<Fault>>,
    pub(super) syncs: AtomicUsize,
    pub(super) sync_fails: Mutex<bool>,
}

impl FileOps for FaultyFiles {
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let fault = self.plan.lock().unwrap().pop_front();
        match fault {
            None => RealFiles.write(file, bytes),
            Some(Fault::Short(n)) => RealFiles.write(file, &bytes[..n.min(bytes.len())]),
            Some(Fault::Fail) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::CrashBefore) => panic!("crash before the write"),
            Some(Fault::CrashAfter(n)) => {
                RealFiles.write(file, &bytes[..n.min(bytes.len())])?;
                panic!("crash after the write")
            }
        }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        if std::mem::take(&mut *self.sync_fails.lock().unwrap()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        RealFiles.sync(file)
    }
}

pub(super) struct World {
    pub(super) directory: TempDir,
    pub(super) archive: ActorRef<ArchiveMsg>,
    pub(super) files: Arc<FaultyFiles>,
    pub(super) durability: Durability,
}

pub(super) struct Session {
    pub(super) handle: WriterHandle,
    pub(super) opened: UnboundedReceiver<Opened>,
    pub(super) answers: UnboundedReceiver<Recorded>,
    pub(super) answer: UnboundedSender<Recorded>,
}

pub(super) const SESSION: &str = "5f1c0000-0000-4000-8000-000000000001";

impl World {
    pub(super) async fn new(durability: Durability) -> Self {
        let directory = TempDir::new().unwrap();
        let files = Arc::new(FaultyFiles::default());
        let setup = ArchiveSetup {
            clock: Arc::new(FixedClock),
            ops: files.clone(),
            directory: Directory::default(),
        };
        let (archive, _) = Actor::spawn(None, Archive, setup).await.unwrap();
        Self { directory, archive, files, durability }
    }

    pub(super) fn root(&self) -> std::path::PathBuf {
        self.directory.path().join("transcripts")
    }

    pub(super) fn plan(&self, faults: &[Fault]) {
        self.files.plan.lock().unwrap().extend(faults);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        fs::read(self.root().join(format!("{SESSION}.jsonl"))).unwrap()
    }

    pub(super) fn request_open(&self) -> UnboundedReceiver<Opened> {
        let (tell, opened) = unbounded_channel();
        let open = OpenTranscript {
            place: Layout::new(self.root()).session(&SESSION.into()).unwrap(),
            frame: LineFrame {
                session: SESSION.into(),
                agent: None,
                cwd: "/app".into(),
                git_branch: None,
                version: "0.1.0",
            },
            durability: self.durability,
            meta: None,
            owner: None,
            reply: Arc::new(move |it| tell.send(it).unwrap()),
        };
        self.archive.cast(ArchiveMsg::Open(open)).unwrap();
        opened
    }

    pub(super) async fn open(&self) -> Session {
        let mut opened = self.request_open();
        let Some(Opened::Ready { handle, .. }) = opened.recv().await else {
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
        closed.recv().await.unwrap();
    }
}

impl Session {
    pub(super) fn send(&self, ticket: u64, names: &[&str], sync: bool, stored: Vec<StoredText>) {
        let lines = Arc::new(names.iter().map(|name| said(name)).collect());
        let answer = self.answer.clone();
        let reply = Arc::new(move |it| answer.send(it).unwrap());
        self.handle.append(Append { lines, stored, sync, ticket, reply }).unwrap();
    }

    pub(super) async fn answer(&mut self) -> (u64, Result<u64, WriteError>) {
        let Recorded { ticket, result } = self.answers.recv().await.unwrap();
        (ticket, result.map(|head| head.seq))
    }

    pub(super) async fn restarted(&mut self) {
        let Some(Opened::Restarted { handle }) = self.opened.recv().await else {
            panic!("the writer is started again")
        };
        self.handle = handle;
    }
}

pub(super) fn said(name: &str) -> Line {
    Line::Conversation(Box::new(ConversationLine {
        at: Timestamp(7),
        parent: None,
        message: Arc::new(Message::prompt(name.into(), name)),
        answer: None,
        tool_result: None,
        boundary: None,
    }))
}
