//! A turn that brings more than the model's window holds.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ennead::RunEnd;
use serde_json::json;

use crate::support::scripted::{TestDirs, calls, finish, model, text};
use crate::support::settings::SettingsJson as _;

/// The window of the model, in tokens of four bytes.
const WINDOW: usize = 200_000;

// REQ: SHP-3, SHP-12, SES-7
#[tokio::test]
async fn ten_parallel_reads_of_large_files_are_cut_to_references_that_read_opens() {
    let place = TestDirs::new();
    let line = format!("{}\n", "x".repeat(99));
    let names: Vec<String> = (0..10).map(|i| format!("r{i}")).collect();
    for name in &names {
        place.write(&format!("workspace/{name}"), &format!("{name} {}", line.repeat(1_000)));
    }
    let n_refused = Arc::new(AtomicUsize::new(0));
    let refused = Arc::clone(&n_refused);
    let reads: Vec<_> =
        names.iter().map(|it| (it.as_str(), "Read", json!({"file_path": it}))).collect();
    let reads = calls(&reads);
    let model = model(move |asked| {
        if WINDOW < asked.body.to_string().len() / 4 {
            refused.fetch_add(1, Ordering::SeqCst);
            let mut refusal = text("");
            refusal.status = 400;
            return refusal;
        }
        match asked.n_answers() {
            0 => reads.clone().measured(),
            _ => text("read").measured(),
        }
    });
    let ennead = place.start(&model).await;
    let options = place.session().own_setting("contextWindow", json!(WINDOW));
    let session = ennead.open(options).await.unwrap();
    let first = session.prompt("go").await.unwrap();
    assert_eq!((first.end, first.text.as_str()), (RunEnd::NoPendingTools, "read"), "{first:?}");
    // The oldest gave way, the newest is whole, and no request was too large.
    let results = model.last().results();
    assert_eq!(results.len(), 10);
    assert!(results[0].1.len() < 10_000 && 100_000 < results[9].1.len());
    let (_, path) = results[0].1.split_once("the whole text is in ").unwrap();
    let path = path.split(']').next().unwrap();
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept.contains("r0 xxx") && 100_000 < kept.len());
    let second = session.prompt("and then?").await.unwrap();
    assert_eq!((second.end, second.text.as_str()), (RunEnd::NoPendingTools, "read"));
    assert_eq!(n_refused.load(Ordering::SeqCst), 0);
    finish(ennead, session).await;
}

// REQ: TRN-14, MDL-5
#[tokio::test]
async fn prompt_that_alone_is_too_large_is_refused_with_its_size_before_anything_is_written() {
    let place = TestDirs::new();
    // The window comes from a file that nobody has read yet.
    place.write("home/.claude/settings.json", r#"{"ennead":{"contextWindow":16000}}"#);
    let model = model(|_| text("done"));
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let (large, fits) = ("word ".repeat(12_800), "word ".repeat(8_000));
    for is_first in [true, false] {
        let before = std::fs::read(session.transcript()).unwrap_or_default();
        let refused = session.prompt(&large).await.unwrap_err().to_string();
        // A word with its space is a token.
        let expected =
            "the prompt has about 12800 tokens; the window of the model holds 12000 at most";
        assert!(refused.contains(expected), "{refused}");
        assert_eq!(std::fs::read(session.transcript()).unwrap_or_default(), before, "{is_first}");
        assert_eq!(session.prompt(&fits).await.unwrap().text, "done");
    }
    assert_eq!(model.asked().len(), 2, "what was refused was sent to nobody");
    finish(ennead, session).await;
}
