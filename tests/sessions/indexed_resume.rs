//! Long sessions that go on from the index of their transcript, and from the transcript where the index is of no use.

use std::{
    fs,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use ennead::{
    Ennead, SessionOptions,
    data::{Holder, Lease, StoreError},
    tool::{Access, CustomTool, ToolOutcome},
    transcript::{self, FileStore, TranscriptLog, TranscriptStore},
};
use serde_json::json;

use crate::support::scripted::{
    Asked, SESSION, Scripted, TestDirs, alerts, call, finish, model, text, until_end,
};
use crate::support::settings::SettingsJson as _;

/// Calls of the long run; each has a result of 20 KB.
const N_CALLS: usize = 36;

/// Keeps transcripts as files, and counts what is read of them.
#[derive(Debug, Default)]
struct CountingStore {
    files: FileStore,
    n_whole: AtomicUsize,
    n_bytes: AtomicU64,
}

impl CountingStore {
    /// Whether all of the transcript was read at once, and bytes that were read of it in pieces.
    fn read(&self) -> (bool, u64) {
        (self.n_whole.load(Ordering::SeqCst) != 0, self.n_bytes.load(Ordering::SeqCst))
    }
}

impl TranscriptStore for CountingStore {
    fn open(&self, name: &Path) -> Result<Box<dyn TranscriptLog>, StoreError> {
        self.files.open(name)
    }

    fn read(&self, name: &Path) -> Result<Vec<u8>, StoreError> {
        let is_transcript = name.extension().is_some_and(|it| it == "jsonl");
        self.n_whole.fetch_add(usize::from(is_transcript), Ordering::SeqCst);
        self.files.read(name)
    }

    fn read_range(&self, name: &Path, offset: u64, max: u64) -> Result<Vec<u8>, StoreError> {
        let read = self.files.read_range(name, offset, max)?;
        self.n_bytes.fetch_add(read.len() as u64, Ordering::SeqCst);
        Ok(read)
    }

    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        self.files.write(name, bytes)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
        self.files.list(directory)
    }

    fn lock(&self, name: &Path, holder: &Holder) -> Result<Lease, StoreError> {
        self.files.lock(name, holder)
    }
}

fn transcript(place: &TestDirs) -> PathBuf {
    place.path(&format!("transcripts/{SESSION}.jsonl"))
}

fn index(place: &TestDirs) -> PathBuf {
    place.path(&format!("transcripts/{SESSION}/index"))
}

/// A window of 40,000 tokens: what the tool returns is summed up again and again.
fn small(place: &TestDirs) -> SessionOptions {
    let tool = CustomTool::raw("talk", "", r#"{"type":"object"}"#, move |_, _| async move {
        ToolOutcome::ok("word ".repeat(4_000))
    });
    let tool = tool.access(Access::Free).read_only().build().unwrap();
    place
        .session()
        .own_setting("contextWindow", 40_000.into())
        .own_setting("maxOutputTokens", 1_000.into())
        .own_setting("shapers", json!({"exemptTools": ["talk"]}))
        .max_turns(NonZeroU32::new(100).unwrap())
        .tool(Arc::new(tool))
}

fn wants_summary(asked: &Asked) -> bool {
    asked.user().contains("is about to be replaced by a summary")
}

/// A session with a long transcript, most of which was summed up.
async fn long_session() -> TestDirs {
    let place = TestDirs::new();
    let n_calls = AtomicUsize::new(0);
    let model = model(move |asked| {
        if wants_summary(asked) {
            return text("SUMMARY of all that");
        }
        match n_calls.fetch_add(1, Ordering::SeqCst) {
            n if n < N_CALLS => call(&format!("t{n}"), "talk", json!({ "n": n })).measured(),
            _ => text("done").measured(),
        }
    });
    assert_eq!(place.run(&model, small(&place)).await.text, "done");
    assert!(!index(&place).exists());
    place
}

/// Opens the session anew and runs one prompt. Returns the model, which saw the request, what was read, and what was
/// reported.
async fn go_on(place: &TestDirs) -> (Arc<Scripted>, (bool, u64), Vec<String>) {
    let model = model(|_| text("later").measured());
    let store = Arc::new(CountingStore::default());
    let options = place.options(&model).transcript_store(store.clone());
    let ennead = Ennead::start(options).await.unwrap();
    let session = ennead.open(small(place)).await.unwrap();
    let read = store.read();
    let mut events = session.events();
    let (outcome, seen) = tokio::join!(session.prompt("go on"), until_end(&mut events));
    assert_eq!(outcome.unwrap().text, "later");
    finish(ennead, session).await;
    (model, read, alerts(&seen))
}

/// What the model was asked with: the text of the user, and how many answers and results there were.
fn shown(model: &Scripted) -> (String, usize, usize) {
    let asked = model.last();
    (asked.user(), asked.n_answers(), asked.results().len())
}

// REQ: SES-5
#[tokio::test]
async fn long_session_goes_on_from_its_index_and_reads_the_end_of_its_transcript_alone() {
    let place = long_session().await;
    let length = fs::metadata(transcript(&place)).unwrap().len();
    assert!(600_000 < length, "{length}");
    let (first, read, _) = go_on(&place).await;
    assert!(!read.0, "it is read a piece at a time");
    assert!(length <= read.1, "{read:?} of {length}");
    let (second, read, reported) = go_on(&place).await;
    assert!(!read.0 && read.1 < length / 3, "{read:?} of {length}");
    assert_eq!(reported, [""; 0]);
    let (before, after) = (shown(&first), shown(&second));
    assert!(before.0.contains("SUMMARY of all that"));
    assert!(after.0.starts_with(&before.0), "{} {}", before.0.len(), after.0.len());
    assert_eq!((after.1, after.2), (before.1 + 1, before.2));
    // The check walks all turns again, each with the conversation that all lines before it give.
    transcript::verify(&transcript(&place)).unwrap();
}

// REQ: SES-5
#[tokio::test]
async fn index_ends_with_the_last_hash_where_a_killed_process_left_lines_without_one() {
    let place = long_session().await;
    let written = fs::read_to_string(transcript(&place)).unwrap();
    let (before, _run_end) = written.trim_end().rsplit_once('\n').unwrap();
    assert!(!before.rsplit('\n').next().unwrap().contains(r#","hash":""#));
    fs::write(transcript(&place), format!("{before}\n")).unwrap();
    let model = model(|_| text("later").measured());
    let ennead = Ennead::start(place.options(&model)).await.unwrap();
    let session = ennead.open(small(&place)).await.unwrap();
    assert!(index(&place).exists());
    finish(ennead, session).await;
    let store = Arc::new(CountingStore::default());
    let ennead =
        Ennead::start(place.options(&model).transcript_store(store.clone())).await.unwrap();
    let session = ennead.open(small(&place)).await.unwrap();
    let (is_whole, n_read) = store.read();
    assert!(!is_whole && n_read < written.len() as u64 / 3, "{n_read} of {}", written.len());
    finish(ennead, session).await;
}

// REQ: SES-5
#[tokio::test]
async fn index_that_is_torn_old_damaged_or_of_another_session_is_made_anew_and_nothing_is_lost() {
    let place = long_session().await;
    let (first, ..) = go_on(&place).await;
    let good = fs::read(index(&place)).unwrap();
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    let other = long_session().await;
    go_on(&other).await;
    let of_other = fs::read(index(&other)).unwrap();
    assert_ne!(of_other, good);
    let cases = [
        ("torn", good[..good.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("of another format", changed(4, 0)),
        ("of another version", changed(6, 77)),
        ("with a wrong digest", changed(12, good[12] ^ 1)),
        ("with a changed sum", changed(good.len() - 3, b'9')),
        ("of another session", of_other),
        ("garbage", vec![b'x'; 5_000]),
    ];
    let mut n_answers = shown(&first).1;
    for (what, bytes) in cases {
        fs::write(index(&place), &bytes).unwrap();
        let length = fs::metadata(transcript(&place)).unwrap().len();
        let (model, read, reported) = go_on(&place).await;
        assert!(length <= read.1, "{what}: {read:?} of {length}");
        assert_eq!(reported, [""; 0], "{what}");
        n_answers += 1;
        let (user, n, _) = shown(&model);
        assert!(user.contains("SUMMARY of all that"), "{what}");
        assert_eq!(n, n_answers, "{what}");
        assert_ne!(fs::read(index(&place)).unwrap(), bytes, "{what}: it is made anew");
    }
    fs::remove_file(index(&place)).unwrap();
    go_on(&place).await;
    let (_, read, _) = go_on(&place).await;
    assert!(!read.0 && read.1 < 300_000, "{read:?}");
    transcript::verify(&transcript(&place)).unwrap();
}

// REQ: SES-4, SES-5
#[tokio::test]
async fn damage_of_a_line_that_the_conversation_needs_is_reported_as_without_an_index() {
    let place = long_session().await;
    go_on(&place).await;
    let mut bytes = fs::read(transcript(&place)).unwrap();
    let at = bytes.windows(5).rposition(|it| it == b"later").unwrap();
    bytes[at] = b'L';
    fs::write(transcript(&place), bytes).unwrap();
    let (_, read, reported) = go_on(&place).await;
    assert!(read.0, "all lines are read");
    assert!(reported.iter().any(|it| it.contains("was repaired")), "{reported:?}");
}
