//! Long conversations through whole sessions: what is cut, kept and summed up.

use std::num::NonZeroU32;

use std::{fs, sync::Arc};

use ennead::{
    Ennead, RunEnd, SessionOptions,
    data::StoreAccess,
    settings::Durability,
    testing::FaultyStore,
    tool::{Access, CustomTool, ToolOutcome},
    transcript::FileStore,
};
use serde_json::json;

use crate::support::scripted::{
    Asked, Scripted, TestDirs, alerts, call, finish, model, says, text, until_end,
};
use crate::support::settings::SettingsJson as _;

/// A tool that says much.
pub(crate) fn talker(n_chars: usize) -> Arc<CustomTool> {
    let tool = CustomTool::raw("talk", "", r#"{"type":"object"}"#, move |_, _| async move {
        ToolOutcome::ok(format!("BEGIN{}END", "word ".repeat(n_chars / 5)))
    });
    // What is cut here is cut by the shapers.
    let tool = tool.access(Access::Free).read_only().output_cap(Some(1_000_000));
    Arc::new(tool.build().unwrap())
}

// REQ: SHP-3
#[tokio::test]
async fn what_was_cut_can_be_read_where_the_model_is_told() {
    let place = TestDirs::new();
    let model = model(|asked| match asked.n_answers() {
        0 => call("t", "talk", json!({})),
        1 => {
            let shown = asked.result("t");
            let at = shown.find("/tool-results/").unwrap_or_else(|| panic!("{shown}"));
            let start =
                shown[..at].rfind(|c: char| c.is_whitespace() || "(:\"<".contains(c)).unwrap() + 1;
            let end = at + shown[at..].find(".txt").unwrap() + 4;
            call("r", "Read", json!({"file_path": shown[start..end], "limit": 1}))
        }
        _ => text("done"),
    });
    // Outside the workspace, where nothing else may be read.
    let options = place.session().tool(talker(200_000));
    let outcome = place.run(&model, options).await;
    assert_eq!(outcome.text, "done");
    let shown = model.last().result("t");
    assert!(shown.len() < 60_000, "{}", shown.len());
    let read = model.last().result("r");
    assert!(!read.starts_with("Permission denied"), "{read}");
    let kept = fs::read_dir(
        place.path(&format!("transcripts/{}/tool-results", crate::support::scripted::SESSION)),
    )
    .unwrap();
    let files: Vec<_> = kept.flatten().map(|it| fs::read_to_string(it.path()).unwrap()).collect();
    assert!(files.iter().any(|it| it.starts_with("BEGIN") && it.ends_with("END")));
}

// REQ: PRM-1
#[tokio::test]
async fn kept_results_of_another_session_stay_closed() {
    let place = TestDirs::new();
    let other = place.write("transcripts/other/tool-results/x.txt", "secret");
    let up = place.text(&format!(
        "transcripts/{}/tool-results/../../other/tool-results/x.txt",
        crate::support::scripted::SESSION
    ));
    for path in [other, up] {
        let model = says(vec![call("r", "Read", json!({"file_path": path}))]);
        let options = place.session().id("5f1c0000-0000-4000-8000-0000000000cc");
        place.run(&model, options).await;
        assert!(model.last().result("r").starts_with("Permission denied"));
        fs::remove_file(place.path("transcripts/5f1c0000-0000-4000-8000-0000000000cc.jsonl"))
            .unwrap();
    }
}

fn wants_summary(asked: &Asked) -> bool {
    asked.user().contains("is about to be replaced by a summary")
}

/// Six turns of talking, and a summary when it is asked for.
fn chatty() -> Arc<Scripted> {
    model(|asked| {
        if wants_summary(asked) {
            return text("SUMMARY of all that");
        }
        let n_results = asked.results().len();
        let before = asked.user().contains("SUMMARY of all that");
        match (before, n_results) {
            (false, n) => call(&format!("t{n}"), "talk", json!({"n": n})).measured(),
            (true, _) => text("done").measured(),
        }
    })
}

/// A window of 40,000 tokens, of which 1,000 are for the answer. Results are not cleared, so a summary is all that
/// is left.
fn small(place: &TestDirs) -> SessionOptions {
    place
        .session()
        .own_setting("contextWindow", 40_000.into())
        .own_setting("maxOutputTokens", 1_000.into())
        .own_setting("shapers", json!({"exemptTools": ["talk"]}))
        .tool(talker(20_000))
}

fn n_boundaries(place: &TestDirs) -> usize {
    place.lines().iter().filter(|it| it["subtype"] == "compact_boundary").count()
}

// REQ: SHP-7
#[tokio::test]
async fn full_context_is_summed_up_once_and_the_session_goes_on_with_the_summary() {
    let place = TestDirs::new();
    let model = chatty();
    let outcome = place.run(&model, small(&place)).await;
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "done"));
    assert_eq!(model.asked().iter().filter(|it| wants_summary(it)).count(), 1);
    assert_eq!(n_boundaries(&place), 1);
    let last = model.last();
    assert!(last.user().contains("SUMMARY of all that"));
    // Each request but that for the summary and the last one was answered with a call.
    let n_before = model.asked().len() - 2;
    assert!(last.results().len() < n_before, "old results are gone from the context");
    // On disk everything is there: the journal only grows.
    let on_disk =
        place.lines().into_iter().filter(|it| it["message"]["content"][0]["type"] == "tool_result");
    assert_eq!(on_disk.count(), n_before);
    // And after a restart it goes on from the summary.
    let model = crate::support::scripted::model(|_| text("later"));
    place.run(&model, small(&place)).await;
    let asked = model.last();
    assert!(asked.user().contains("SUMMARY of all that"));
    assert!(asked.results().len() < n_before);
}

// REQ: SHP-7, HKS-4
#[tokio::test]
async fn pre_compact_hook_hears_of_it_and_can_block_it() {
    for (code, compacts) in [(0, true), (2, false)] {
        let place = TestDirs::new();
        let seen = place.text("outside/seen");
        let hook = json!({"type": "command", "command": format!("cat >> {seen}; echo no >&2; exit {code}")});
        let table = json!({"PreCompact": [{"matcher": "auto", "hooks": [hook]}]});
        let model = chatty();
        let options = small(&place).setting("hooks", table).max_turns(NonZeroU32::new(8).unwrap());
        place.run(&model, options).await;
        assert!(place.read("outside/seen").contains(r#""trigger":"auto""#));
        assert_eq!(n_boundaries(&place), usize::from(compacts), "exit {code}");
    }
}

// REQ: SES-2, SES-3, RUN-3
#[tokio::test]
async fn durability_says_what_is_synced_before_a_call_runs_and_before_the_end_is_told() {
    for durability in [Durability::Process, Durability::Turn, Durability::Entry] {
        let place = TestDirs::new();
        let store = FaultyStore::new(Arc::new(FileStore::default()));
        let (running, during) = (store.clone(), Arc::new(std::sync::Mutex::new(Vec::new())));
        let seen = during.clone();
        // Looks at what had happened when it ran.
        let tool = CustomTool::raw("effect", "", r#"{"type":"object"}"#, move |_, _| {
            *seen.lock().unwrap() = running.accesses();
            async { ToolOutcome::ok("ok") }
        });
        let tool = Arc::new(tool.access(Access::Free).build().unwrap());
        let model = says(vec![call("e", "effect", json!({}))]);
        let options = place.options(&model).transcript_store(Arc::new(store.clone()));
        let ennead = Ennead::start(options).await.unwrap();
        let session = ennead.open(place.session().tool(tool).durability(durability)).await.unwrap();
        let outcome = session.prompt("go").await.unwrap();
        let writes = |all: Vec<StoreAccess>| -> Vec<StoreAccess> {
            all.into_iter()
                .filter(|it| matches!(it, StoreAccess::Append | StoreAccess::Sync))
                .collect()
        };
        let (all, during) = (writes(store.accesses()), writes(during.lock().unwrap().clone()));
        match durability {
            Durability::Process => assert!(!all.contains(&StoreAccess::Sync), "{all:?}"),
            Durability::Turn | Durability::Entry => {
                assert_eq!(
                    during.last(),
                    Some(&StoreAccess::Sync),
                    "the intent is safe: {during:?}"
                );
                assert_eq!(all.last(), Some(&StoreAccess::Sync), "the end is safe: {all:?}");
            }
        }
        // Prompt to first call, answer to intent, result to second call, answer to end: what follows
        // at once is one write, however it is synced.
        assert_eq!(all.iter().filter(|it| **it == StoreAccess::Append).count(), 4, "{all:?}");
        // What was told is written: the last record is the end of the run.
        let last = place.lines().pop().unwrap();
        assert_eq!((last["kind"].as_str(), &last["hash"]), (Some("run_end"), &json!(outcome.head)));
        finish(ennead, session).await;
    }
}

// REQ: SES-2
#[tokio::test]
async fn what_an_event_tells_as_finished_is_on_disk() {
    let place = TestDirs::new();
    let model = says(vec![call("g", "Glob", json!({"pattern": "*"})), text("done")]);
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let mut events = session.events();
    let run = session.prompt("go");
    let (outcome, events_seen) = tokio::join!(run, until_end(&mut events));
    assert_eq!(outcome.unwrap().text, "done");
    assert_eq!(alerts(&events_seen), [""; 0]);
    assert_eq!(place.lines().pop().unwrap()["kind"], "run_end");
    finish(ennead, session).await;
}
