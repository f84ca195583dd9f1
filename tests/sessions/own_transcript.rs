//! A session and its own transcript: it may read it, and nothing that it does can change it, or be
//! found in it by a search.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead::{
    Event, RunEnd, SessionOptions,
    permission::PermissionMode,
    tool::{Access, CustomTool, ToolOutcome},
    transcript,
};
use serde_json::{Value, json};

use crate::support::approver::OneAnswer;
use crate::support::scripted::{
    SESSION, TestDirs, call, calls, finish, model, says, text, until_end,
};

fn transcript(place: &TestDirs) -> PathBuf {
    place.path(&format!("transcripts/{SESSION}.jsonl"))
}

/// The transcript lies in the workspace, as it does where nobody says otherwise.
fn inside(place: &TestDirs) -> SessionOptions {
    let mut options = place.session();
    options.transcripts = Some(place.path("workspace/.transcripts"));
    options
}

// REQ: SES-1, SES-2, PRM-4
#[tokio::test]
async fn own_transcript_is_written_by_no_call_whatever_mode_rule_or_person_allows() {
    for mode in [PermissionMode::AcceptEdits, PermissionMode::BypassPermissions] {
        let place = TestDirs::new();
        let own = format!("workspace/.transcripts/{SESSION}");
        let file = |name: &str| place.text(&format!("{own}{name}"));
        let tries: [(&str, Value); 6] = [
            ("Edit", json!({"file_path": file(".jsonl"), "old_string": "go", "new_string": "GO"})),
            ("Write", json!({"file_path": file(".checkpoint"), "content": "x"})),
            ("Write", json!({"file_path": file("/subagents/agent-1.jsonl"), "content": "x"})),
            ("Write", json!({"file_path": file("/tool-results/x"), "content": "x"})),
            ("Bash", json!({"command": format!("echo x >> .transcripts/{SESSION}.jsonl")})),
            ("Bash", json!({"command": "rm -rf .transcripts"})),
        ];
        let ids = ["a", "b", "c", "d", "e", "f"];
        let tries: Vec<_> =
            ids.into_iter().zip(&tries).map(|(id, it)| (id, it.0, it.1.clone())).collect();
        let read = call("r", "Read", json!({"file_path": file(".jsonl"), "limit": 1}));
        let model = says(vec![read, calls(&tries), call("l", "Bash", json!({"command": "true"}))]);
        let mut options = inside(&place).mode(mode).allow("Bash").unwrap().allow("Edit").unwrap();
        options.approver = Some(OneAnswer::allow());
        let outcome = place.run(&model, options).await;
        assert_eq!(outcome.end, RunEnd::NoPendingTools);
        for id in ids {
            let shown = model.last().result(id);
            assert!(shown.contains("the transcript of this session"), "{mode:?} {id}: {shown}");
        }
        assert!(model.last().result("r").contains("\"go\""), "it may be read");
        let checked = transcript::verify(&place.path(&format!("{own}.jsonl"))).unwrap();
        assert_eq!(checked[0].verified.turns, 4);
    }
}

// REQ: SES-1, AGT-9
#[tokio::test]
async fn sub_agent_writes_neither_its_own_transcript_nor_that_of_its_parent() {
    let place = TestDirs::new();
    let top = place.text(&format!("workspace/.transcripts/{SESSION}.jsonl"));
    let side = place.text(&format!("workspace/.transcripts/{SESSION}/subagents/x.jsonl"));
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    let (top, side) = (write(&top), write(&side));
    let model = model(move |asked| match (asked.is_agent(), asked.n_answers()) {
        (false, 0) => call("a", "Agent", json!({"description": "d", "prompt": "p"})),
        (true, 0) => calls(&[("t", "Write", top.clone()), ("s", "Write", side.clone())]),
        _ => text("done"),
    });
    let options = inside(&place).mode(PermissionMode::BypassPermissions);
    place.run(&model, options).await;
    let asked = model.asked_by_agents().pop().unwrap();
    for id in ["t", "s"] {
        let shown = asked.result(id);
        assert!(shown.contains("the transcript of this session"), "{shown}");
    }
}

// REQ: SES-1, PRM-4
#[tokio::test]
async fn transcripts_of_other_sessions_are_protected() {
    let place = TestDirs::new();
    let other = place.write("workspace/.transcripts/other.jsonl", "whole\n");
    let write = call("t", "Write", json!({"file_path": other, "content": "x"}));
    let model = says(vec![write]);
    place.run(&model, inside(&place).mode(PermissionMode::BypassPermissions)).await;
    let shown = model.last().result("t");
    assert!(shown.contains("protected path"), "{shown}");
    assert_eq!(place.read("workspace/.transcripts/other.jsonl"), "whole\n");
}

/// A session whose tool does this to its transcript, and what its first run and its second say.
async fn meddled(place: &TestDirs, meddle: fn(&Path)) -> [Result<String, String>; 2] {
    let path = transcript(place);
    let tool = CustomTool::raw("meddle", "", r#"{"type":"object"}"#, move |_, _| {
        let path = path.clone();
        async move {
            meddle(&path);
            ToolOutcome::ok("done it")
        }
    });
    let tool = Arc::new(tool.access(Access::Free).build().unwrap());
    let model = says(vec![call("a", "meddle", json!({})), text("done")]);
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().tool(tool)).await.unwrap();
    let mut events = session.events();
    let mut texts = Vec::new();
    for prompt in ["go", "go on"] {
        let outcome = session.prompt(prompt).await;
        texts.push(outcome.map(|it| it.text).map_err(|it| it.to_string()));
        if prompt == "go" {
            let ended = until_end(&mut events).await;
            let failed = matches!(ended.last(), Some(Event::RunLost { .. }));
            assert_eq!(failed, texts[0].is_err(), "{ended:?}");
        }
    }
    finish(ennead, session).await;
    texts.try_into().unwrap()
}

// REQ: SES-2, RUN-2
#[tokio::test]
async fn transcript_that_is_replaced_ends_the_run_and_is_kept() {
    let place = TestDirs::new();
    let texts = meddled(&place, |path| {
        fs::remove_file(path).unwrap();
        fs::write(path, "another\n").unwrap();
    });
    let [first, second] = texts.await;
    let (why, kept) = (first.unwrap_err(), transcript(&place).with_extension("kept"));
    assert!(why.contains("was replaced or removed while it was written to"), "{why}");
    assert!(why.contains(&kept.display().to_string()), "{why}");
    // Nor is anything said to be recorded later.
    assert!(second.is_err());
    let kept = fs::read_to_string(kept).unwrap();
    assert!(kept.contains("done it") && kept.contains(r#""text":"go""#), "{kept}");
    assert_eq!(fs::read_to_string(transcript(&place)).unwrap(), "another\n");
}

// REQ: SES-2, RUN-2
#[tokio::test]
async fn transcript_that_is_emptied_ends_the_run() {
    let place = TestDirs::new();
    let texts = meddled(&place, |path| fs::write(path, "").unwrap());
    let [first, second] = texts.await;
    assert!(first.unwrap_err().contains("was replaced or removed"), "{second:?}");
    assert!(second.is_err());
}

// REQ: SES-1, SES-2
#[tokio::test]
async fn transcript_that_is_removed_or_moved_loses_nothing_and_the_session_goes_on() {
    let place = TestDirs::new();
    let texts = meddled(&place, |path| fs::remove_file(path).unwrap());
    assert!(texts.await.iter().all(Result::is_ok));
    let checked = transcript::verify(&transcript(&place)).unwrap();
    assert_eq!(checked[0].verified.turns, 3);
    let place = TestDirs::new();
    let texts = meddled(&place, |path| {
        let directory = path.parent().unwrap();
        fs::rename(directory, directory.with_extension("moved")).unwrap();
    });
    assert!(texts.await.iter().all(Result::is_ok));
    let moved = place.path(&format!("transcripts.moved/{SESSION}.jsonl"));
    assert_eq!(transcript::verify(&moved).unwrap()[0].verified.turns, 3);
    assert!(!transcript(&place).exists());
}

// REQ: SES-2
#[tokio::test]
async fn transcript_that_was_cleared_away_does_not_come_back_when_its_session_is_closed() {
    let place = TestDirs::new();
    let ennead = place.start(&says(vec![text("done")])).await;
    let session = ennead.open(place.session()).await.unwrap();
    session.prompt("go").await.unwrap();
    fs::remove_dir_all(place.path("transcripts")).unwrap();
    finish(ennead, session).await;
    assert!(!place.path("transcripts").exists());
}

// REQ: SES-2, PRM-4
#[tokio::test]
async fn part_of_a_kept_result_may_be_printed_and_copied() {
    let place = TestDirs::new();
    let kept = format!(".transcripts/{SESSION}/tool-results/x.txt");
    place.write(&format!("workspace/{kept}"), "one\ntwo\n");
    let commands = [format!("sed -n 1,1p {kept}"), format!("cp {kept} copy.txt")];
    let asked: Vec<_> = commands.iter().map(|it| json!({"command": it})).collect();
    let model = says(vec![
        call("a", "Bash", asked[0].clone()),
        call("b", "Bash", asked[1].clone()),
        text("done"),
    ]);
    let options = inside(&place).mode(PermissionMode::BypassPermissions);
    place.run(&model, options).await;
    assert!(model.last().result("a").contains("one"), "{}", model.last().result("a"));
    assert_eq!(place.read("workspace/copy.txt"), "one\ntwo\n");
}
// REQ: TOL-6
#[tokio::test]
async fn search_does_not_find_itself_unless_it_is_asked_to() {
    let place = TestDirs::new();
    place.write("workspace/a.txt", "a\n");
    let there = place.text("workspace/.transcripts");
    let model = says(vec![calls(&[
        ("grep", "Grep", json!({"pattern": "xyzzy"})),
        ("glob", "Glob", json!({"pattern": "**/*"})),
        ("grep_there", "Grep", json!({"pattern": "xyzzy", "path": there})),
        ("glob_there", "Glob", json!({"pattern": "**/*", "path": there})),
    ])]);
    place.run(&model, inside(&place)).await;
    let shown = |id| model.last().result(id);
    assert!(!shown("grep").contains(SESSION), "{}", shown("grep"));
    assert_eq!(shown("glob"), place.text("workspace/a.txt"));
    assert!(shown("grep_there").contains(SESSION), "{}", shown("grep_there"));
    assert!(shown("glob_there").contains(&format!("{SESSION}.jsonl")), "{}", shown("glob_there"));
}

// REQ: SES-7, SES-9
#[tokio::test]
async fn session_that_was_torn_within_a_result_is_in_order_once_it_went_on() {
    for failing in [false, true] {
        let place = TestDirs::new();
        place.write("workspace/big", &"line\n".repeat(1500));
        let big = place.text(if failing { "workspace/none" } else { "workspace/big" });
        let read = call("r", "Read", json!({"file_path": big}));
        place.run(&says(vec![read]), place.session()).await;
        let whole = fs::read_to_string(transcript(&place)).unwrap();
        let result = whole.find(r#""tool_use_id":"r""#).unwrap();
        fs::write(transcript(&place), &whole[..result + 30]).unwrap();
        let _none = fs::remove_file(transcript(&place).with_extension("checkpoint"));
        let model = model(|_| text("still here"));
        assert_eq!(place.run(&model, place.session()).await.text, "still here");
        let results = model.last().results();
        assert_eq!((results.len(), results[0].2), (1, failing), "{results:?}");
        assert!(results[0].1.contains("Its result was lost"), "{results:?}");
        let checked = transcript::verify(&transcript(&place)).unwrap();
        assert_eq!((checked[0].verified.runs, checked[0].verified.calls), (2, 1));
    }
}
