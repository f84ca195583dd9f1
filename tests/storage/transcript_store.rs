//! A store of an embedder holds what the files would hold, and sessions go on from it.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use ennead::{
    Ennead, OpenError, SessionOptions,
    transcript::{FileStore, TranscriptStore},
};
use serde_json::json;

use crate::{
    sessions::context::talker,
    support::{
        memory_store::MemoryStore,
        scripted::{SESSION, Scripted, TestDirs, call, model, text},
    },
};

/// Asks an agent to read a file, then says a text that is kept beside the lines.
fn busy() -> Arc<Scripted> {
    model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, 0) => call("r", "Read", json!({"file_path": "long.txt"})),
        (true, _) => text("read"),
        (false, 0) => call("a", "Agent", json!({"description": "d", "prompt": "read it"})),
        (false, _) => text(&"many words ".repeat(300)),
    })
}

async fn start(place: &TestDirs, store: Arc<dyn TranscriptStore>, model: &Arc<Scripted>) -> Ennead {
    Ennead::start(place.options(model).transcript_store(store)).await.unwrap()
}

/// Two runs, the second in a new `Ennead` that reads what the first left.
async fn run_twice(place: &TestDirs, store: &Arc<dyn TranscriptStore>, options: SessionOptions) {
    for (prompt, model) in [(&"begin ".repeat(400), busy()), (&"go on".to_owned(), busy())] {
        let ennead = start(place, Arc::clone(store), &model).await;
        let session = ennead.open(options.clone()).await.unwrap();
        session.prompt(prompt).await.unwrap();
        ennead.shutdown().await;
        if prompt == "go on" {
            assert!(1 < model.last_of_top().n_answers(), "it goes on with what was said before");
        }
    }
}

fn transcript(place: &TestDirs) -> PathBuf {
    place.path(&format!("transcripts/{SESSION}.jsonl"))
}

/// All files below a directory, locks aside: they name the time of day.
fn files(directory: &std::path::Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path if path.extension().is_some_and(|it| it == "lock") => {}
            path => drop(found.insert(path.clone(), fs::read(path).unwrap())),
        }
    }
    found
}

// REQ: SES-1, SES-4, SES-9
#[tokio::test]
async fn store_in_memory_holds_byte_for_byte_what_the_files_hold_and_no_file_is_made() {
    let place = TestDirs::new();
    place.write("workspace/long.txt", &"a line\n".repeat(2_000));
    let memory = MemoryStore::default();
    let store: Arc<dyn TranscriptStore> = Arc::new(memory.clone());
    run_twice(&place, &store, place.session()).await;
    assert!(!place.has("transcripts"), "nothing is on disk");
    store.verify(&transcript(&place)).unwrap();
    let kept = memory.texts();
    let held = |part: &str| kept.keys().any(|it| it.to_str().unwrap().contains(part));
    for part in ["/subagents/agent-", ".meta.json", "/stored/"] {
        assert!(held(part), "{part}: {:?}", kept.keys());
    }
    let store: Arc<dyn TranscriptStore> = Arc::new(FileStore::default());
    run_twice(&place, &store, place.session()).await;
    assert_eq!(store.verify(&transcript(&place)).unwrap().len(), 2);
    let on_disk = files(&place.path("transcripts"));
    assert!(kept.keys().eq(on_disk.keys()), "{:?} {:?}", kept.keys(), on_disk.keys());
    for (name, bytes) in &kept {
        let (kept, on_disk) = (String::from_utf8_lossy(bytes), &on_disk[name]);
        assert_eq!(kept, String::from_utf8_lossy(on_disk), "{}", name.display());
    }
}

// REQ: SES-1, PRM-1
#[tokio::test]
async fn long_results_are_files_in_a_guarded_directory_whatever_the_store_is() {
    for is_led_elsewhere in [false, true] {
        let place = TestDirs::new();
        place.write("outside/a", "");
        place.write("workspace/a", "");
        if is_led_elsewhere {
            let link = place.path("workspace/.transcripts");
            std::os::unix::fs::symlink(place.path("outside"), link).unwrap();
        }
        let model = model(|asked| match asked.n_answers() {
            0 => call("t", "talk", json!({})),
            _ => text("heard"),
        });
        let memory = MemoryStore::default();
        let ennead = start(&place, Arc::new(memory.clone()), &model).await;
        let mut options = place.session();
        options.transcripts = None;
        match ennead.open(options.tool(talker(200_000))).await {
            Err(error) => {
                assert!(is_led_elsewhere, "{error}");
                assert!(matches!(error, OpenError::UnsafeTranscripts(_)), "{error}");
            }
            Ok(session) => {
                assert!(!is_led_elsewhere, "results would be written outside the workspace");
                session.prompt("listen").await.unwrap();
            }
        }
        ennead.shutdown().await;
        let root = place.path("workspace/.transcripts");
        assert!(!files(&root).keys().any(|it| it.extension().is_some_and(|it| it == "jsonl")));
        assert_eq!(root.join(".gitignore").exists(), !is_led_elsewhere, "git is kept out");
        assert_eq!(memory.texts().is_empty(), is_led_elsewhere);
    }
}

// REQ: SES-3, SES-7
#[tokio::test]
async fn session_that_was_cut_off_in_a_store_is_closed_and_gone_on_with() {
    let place = TestDirs::new();
    place.write("workspace/long.txt", "a line\n");
    let memory = MemoryStore::default();
    let store: Arc<dyn TranscriptStore> = Arc::new(memory.clone());
    run_twice(&place, &store, place.session()).await;
    // As if the process had died while the agent of the first run was at work.
    for (name, bytes) in memory.texts() {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if name.extension().is_some_and(|it| it == "jsonl") {
            let at = text.find(r#""kind":"tool_intent""#).unwrap_or(text.len() - 1);
            let end = at + text[at..].find('\n').unwrap() + 1;
            store.write(&name, &text.as_bytes()[..end]).unwrap();
        }
    }
    place.clock.advance(Duration::from_secs(1));
    let model = model(|_| text("I see"));
    let ennead = start(&place, Arc::clone(&store), &model).await;
    let session = ennead.open(place.session()).await.unwrap();
    assert_eq!(session.prompt("go on").await.unwrap().text, "I see");
    assert!(model.last_of_top().result("a").contains("cut off"));
    ennead.shutdown().await;
    store.verify(&transcript(&place)).unwrap();
}

// REQ: SES-1
#[tokio::test]
async fn second_ennead_on_one_store_learns_who_writes_the_session() {
    let place = TestDirs::new();
    let store: Arc<dyn TranscriptStore> = Arc::new(MemoryStore::default());
    let model = model(|_| text("hello"));
    let first = start(&place, Arc::clone(&store), &model).await;
    let _session = first.open(place.session()).await.unwrap();
    let second = start(&place, Arc::clone(&store), &model).await;
    match second.open(place.session()).await {
        Err(OpenError::Locked { holder: Some(holder) }) => {
            assert_eq!((holder.pid, holder.epoch), (std::process::id(), 1));
        }
        other => panic!("{other:?}"),
    }
    first.shutdown().await;
    second.open(place.session()).await.unwrap();
    second.shutdown().await;
}

// REQ: SCL-1, SES-1
#[tokio::test]
async fn writer_whose_lock_another_one_has_taken_over_writes_nothing_any_more() {
    let place = TestDirs::new();
    let store: Arc<dyn TranscriptStore> = Arc::new(FileStore::default());
    let model = model(|_| text("hello"));
    let first = start(&place, Arc::clone(&store), &model).await;
    let loser = first.open(place.session()).await.unwrap();
    loser.prompt("one").await.unwrap();
    let second = start(&place, Arc::clone(&store), &model).await;
    assert!(matches!(second.open(place.session()).await, Err(OpenError::Locked { .. })));
    // Somebody clears away what looks like the lock of a dead process.
    fs::remove_file(transcript(&place).with_extension("lock")).unwrap();
    loser.prompt("two").await.unwrap();
    let winner = second.open(place.session()).await.unwrap();
    let taken_over = fs::read(transcript(&place)).unwrap();
    let error = loser.prompt("lost").await.map(|it| (it.end, it.error));
    assert!(format!("{error:?}").contains("taken over"), "{error:?}");
    assert_eq!(fs::read(transcript(&place)).unwrap(), taken_over);
    assert!(winner.prompt("three").await.unwrap().end.is_success());
    assert_eq!(model.last_of_top().n_answers(), 2, "one and two");
    first.shutdown().await;
    second.shutdown().await;
    store.verify(&transcript(&place)).unwrap();
    assert!(!String::from_utf8_lossy(&fs::read(transcript(&place)).unwrap()).contains("lost"));
}

#[test]
fn device_among_the_transcripts_of_a_directory_is_not_read() {
    // One that has an end, so that the test has one in any case.
    let link = tempfile::tempdir().unwrap();
    let file = link.path().join("s.jsonl");
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    let error = FileStore::default().read(&file).unwrap_err().to_string();
    assert!(error.contains("it is not a regular file"), "{error}");
}

// REQ: SES-1
#[test]
fn pipe_under_the_name_of_a_transcript_is_refused_before_anything_is_lost_in_it() {
    let place = TestDirs::new();
    let pipe = transcript(&place);
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    crate::support::processes::fifo(&pipe);
    let refused = FileStore::default().open(&pipe).unwrap_err();
    assert_eq!(refused.to_string(), "it is not a regular file");
}
