//! The same session twice leaves the same bytes, whatever the machine is doing meanwhile.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ennead::{Ennead, Placement};
use serde_json::{Value, json};

use crate::support::scripted::{Scripted, TestDirs, calls, finish, model, text};

/// Runs of the session in each placement.
const TIMES: usize = 25;

/// Three agents, then ten calls of real tools side by side; each agent searches and reads.
fn busy_script() -> Arc<Scripted> {
    model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, 0) => calls(&[
            ("g", "Glob", json!({"pattern": "**/*.txt"})),
            ("h", "Grep", json!({"pattern": "line 7", "output_mode": "content"})),
            ("b", "Bash", json!({"command": "wc -l 3.txt 4.txt"})),
        ]),
        (true, _) => text(&asked.result("h")),
        (false, 0) => {
            calls(&["a0", "a1", "a2"].map(|it| {
                (it, "Agent", json!({"description": it, "prompt": format!("count, {it}")}))
            }))
        }
        (false, 1) => {
            let ids: Vec<String> = (0..10).map(|it| format!("c{it}")).collect();
            let tools: Vec<(&str, &str, Value)> = ids
                .iter()
                .enumerate()
                .map(|(n, id)| match n % 3 {
                    0 => (id.as_str(), "Read", json!({"file_path": format!("{n}.txt")})),
                    1 => (id.as_str(), "Grep", json!({"pattern": format!("line {n}$")})),
                    _ => (id.as_str(), "Glob", json!({"pattern": format!("*{n}*")})),
                })
                .collect();
            calls(&tools)
        }
        (false, _) => text("done"),
    })
}

fn prepared() -> TestDirs {
    let place = TestDirs::new();
    for n in 0..12 {
        let lines: Vec<String> = (0..200).map(|it| format!("line {it}")).collect();
        place.write(&format!("workspace/{n}.txt"), &lines.join("\n"));
    }
    place
}

/// Runs the session, takes its transcripts away, and gives them by path.
async fn run(place: &TestDirs, placement: Placement) -> BTreeMap<PathBuf, String> {
    let model = busy_script();
    let options = place.options(&model).placement(placement);
    let ennead = Ennead::start(options).await.unwrap();
    let session = ennead.open(place.session().allow("Bash").unwrap()).await.unwrap();
    let outcome = session.prompt("go").await.unwrap();
    assert_eq!(outcome.text, "done", "{outcome:?}");
    let failed = model.asked().iter().flat_map(|it| it.results()).find(|it| it.2);
    assert_eq!(failed, None);
    finish(ennead, session).await;
    let root = place.path("transcripts");
    let mut texts = BTreeMap::new();
    collect(&root, &mut texts);
    fs::remove_dir_all(&root).unwrap();
    texts
}

fn collect(directory: &Path, texts: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|it| it != "lock") {
            // Who held the lock says which process it was; all else must be the same. A
            // checkpoint is not text.
            let bytes = fs::read(&path).unwrap();
            texts.insert(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

#[track_caller]
fn check_same(first: &BTreeMap<PathBuf, String>, second: &BTreeMap<PathBuf, String>) {
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (path, text) in first {
        for (n, (a, b)) in text.lines().zip(second[path].lines()).enumerate() {
            assert_eq!(a, b, "{} line {}", path.display(), n + 1);
        }
        assert_eq!(text, &second[path]);
    }
}

/// Other sessions that never stop working, in addition to the one that is watched.
async fn under_load(placement: fn() -> Placement) {
    let place = prepared();
    let other = prepared();
    let over = Arc::new(AtomicBool::new(false));
    let load = {
        let over = Arc::clone(&over);
        tokio::spawn(async move {
            while !over.load(Ordering::SeqCst) {
                run(&other, Placement::Threads(1)).await;
            }
        })
    };
    let first = run(&place, placement()).await;
    assert_eq!(first.keys().filter(|it| it.extension().is_some_and(|it| it == "jsonl")).count(), 4);
    for _ in 1..TIMES {
        check_same(&first, &run(&place, placement()).await);
    }
    over.store(true, Ordering::SeqCst);
    load.await.unwrap();
}

// REQ: TRN-13, SES-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_session_leaves_the_same_bytes_on_threads_of_its_own() {
    under_load(|| Placement::Threads(2)).await;
}

// REQ: TRN-13, SES-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_session_leaves_the_same_bytes_on_a_shared_runtime() {
    under_load(|| Placement::Ambient).await;
}

// REQ: TRN-13
#[tokio::test]
async fn placement_leaves_no_trace() {
    let place = prepared();
    check_same(&run(&place, Placement::Ambient).await, &run(&place, Placement::Threads(1)).await);
}
