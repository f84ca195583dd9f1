//! Sessions that go on after their process has ended, in order or not.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead::{
    OpenError, RunEnd, RunRequest,
    data::TranscriptError,
    tool::{Access, CustomTool, ToolOutcome},
    transcript,
};
use serde_json::json;

use crate::support::approver::OneAnswer;
use crate::support::scripted::{
    Asked, SESSION, TestDirs, call, calls, finish, model, says, text, until_end,
};

fn transcript(place: &TestDirs) -> std::path::PathBuf {
    place.path(&format!("transcripts/{SESSION}.jsonl"))
}

// REQ: SES-4, SES-1
#[tokio::test]
async fn session_goes_on_with_its_history_and_never_rewrites_a_line() {
    let place = TestDirs::new();
    place.run(&says(vec![text("my name is Nine")]), place.session()).await;
    let before = fs::read(transcript(&place)).unwrap();
    let model = model(|_| text("as I said"));
    place.run(&model, place.session()).await;
    let asked = model.last();
    assert_eq!(asked.n_answers(), 1);
    assert!(asked.body.to_string().contains("my name is Nine"));
    assert!(fs::read(transcript(&place)).unwrap().starts_with(&before));
    let lines = place.whole_lines();
    let link = |it: &serde_json::Value| {
        it["hash"].as_str().map_or(it["sum"].clone(), |hash| hash[..8].into())
    };
    for pair in lines.windows(2) {
        assert_eq!(pair[1]["prev"], link(&pair[0]), "{}", pair[1]);
    }
}

/// A tool with side effects that counts how often it ran.
fn counted() -> (Arc<CustomTool>, Arc<AtomicUsize>) {
    let n = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n);
    let tool = CustomTool::raw("effect", "", r#"{"type":"object"}"#, move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async { ToolOutcome::ok("done it") }
    });
    (Arc::new(tool.access(Access::Free).build().unwrap()), n)
}

/// Cuts the transcript after the first line that holds `needle`, and drops what else is known.
fn cut_behind(place: &TestDirs, needle: &str) {
    let text = fs::read_to_string(transcript(place)).unwrap();
    let at = text.find(needle).unwrap_or_else(|| panic!("{needle} in {text}"));
    let end = at + text[at..].find('\n').unwrap() + 1;
    fs::write(transcript(place), &text[..end]).unwrap();
    let _none = fs::remove_file(transcript(place).with_extension("checkpoint"));
}

// REQ: SES-3, SES-7
#[tokio::test]
async fn call_that_was_under_way_is_answered_as_interrupted_and_never_run_again() {
    let place = TestDirs::new();
    let (tool, n_ran) = counted();
    let script = || says(vec![calls(&[("a", "effect", json!({})), ("b", "effect", json!({}))])]);
    place.run(&script(), place.session().tool(tool.clone())).await;
    assert_eq!(n_ran.load(Ordering::SeqCst), 2);
    // As if the process had died when the first call was about to run.
    cut_behind(&place, r#""kind":"tool_intent""#);
    let model = model(|_| text("I see"));
    let outcome = place.run(&model, place.session().tool(tool)).await;
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    assert_eq!(n_ran.load(Ordering::SeqCst), 2, "nothing ran again");
    for id in ["a", "b"] {
        let shown = model.last().result(id);
        assert!(shown.contains("Interrupted") && shown.contains("not run again"), "{shown}");
    }
    // Answered on disk, once.
    let on_disk =
        place.lines().into_iter().filter(|it| it["message"]["content"][0]["type"] == "tool_result");
    assert_eq!(on_disk.count(), 2);
    let ends: Vec<_> = place.lines().into_iter().filter(|it| it["kind"] == "turn_end").collect();
    assert_eq!((ends.len(), &ends[0]["reason"]), (1, &json!("crashed")));
}

// REQ: SES-7
#[tokio::test]
async fn transcript_that_ends_anywhere_can_be_gone_on_with() {
    let place = TestDirs::new();
    let (tool, _) = counted();
    place
        .run(&says(vec![call("a", "effect", json!({}))]), place.session().tool(tool.clone()))
        .await;
    let whole = fs::read(transcript(&place)).unwrap();
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    // After every line, and in the middle of every line.
    let ends: Vec<usize> = ends.flat_map(|end| [end, end - 20]).collect();
    for end in ends {
        let _none = fs::remove_file(transcript(&place).with_extension("checkpoint"));
        fs::write(transcript(&place), &whole[..end]).unwrap();
        let model = model(|_| text("still here"));
        let outcome = place.run(&model, place.session().tool(tool.clone())).await;
        assert_eq!(outcome.text, "still here", "cut at {end}");
        assert!(model.last().results().len() <= 1);
        let kept = fs::read(transcript(&place)).unwrap();
        assert!(kept.starts_with(&whole[..end]), "cut at {end}");
    }
}

// REQ: SES-2
#[tokio::test]
async fn torn_last_line_is_reported_and_stays() {
    let place = TestDirs::new();
    place.run(&says(vec![text("one")]), place.session()).await;
    let mut torn = fs::read(transcript(&place)).unwrap();
    torn.extend_from_slice(br#"{"type":"user","uu"#);
    fs::write(transcript(&place), &torn).unwrap();
    let model = model(|_| text("two"));
    let outcome = place.run(&model, place.session()).await;
    assert_eq!(outcome.text, "two");
    let text = fs::read_to_string(transcript(&place)).unwrap();
    assert!(text.contains("\n{\"type\":\"user\",\"uu\n"));
    assert!(text.contains(r#""kind":"repair""#));
}

// REQ: SES-1
#[tokio::test]
async fn second_holder_is_told_who_holds_the_session() {
    let place = TestDirs::new();
    let model = says(vec![]);
    let (one, two) = (place.start(&model).await, place.start(&model).await);
    let held = one.open(place.session()).await.unwrap();
    let error = two.open(place.session()).await.unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    let pid = std::process::id().to_string();
    assert!(error.to_string().contains(&pid), "{error}");
    // The one who has it is not disturbed, and frees it.
    assert_eq!(held.prompt("go").await.unwrap().text, "done");
    finish(one, held).await;
    let session = two.open(place.session()).await.unwrap();
    finish(two, session).await;
}

// REQ: SES-1
#[tokio::test]
async fn session_that_is_open_here_is_not_opened_twice() {
    let place = TestDirs::new();
    let model = says(vec![]);
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    assert!(ennead.open(place.session()).await.is_err());
    assert_eq!(session.prompt("go").await.unwrap().text, "done");
    finish(ennead, session).await;
}

// REQ: SES-5
#[tokio::test]
async fn checkpoint_is_left_and_made_again_when_missing_or_damaged() {
    let place = TestDirs::new();
    let checkpoint = transcript(&place).with_extension("checkpoint");
    for damage in [None, Some(&b""[..]), Some(b"not a checkpoint")] {
        // Of a short transcript none is left: it is read whole anyway.
        let model = model(|_| text(&"here ".repeat(1 << 16)));
        place.run(&model, place.session()).await;
        assert!(checkpoint.exists());
        match damage {
            None => fs::remove_file(&checkpoint).unwrap(),
            Some(bytes) => fs::write(&checkpoint, bytes).unwrap(),
        }
    }
    let lines = place.whole_lines();
    let seqs: Vec<u64> = lines.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|it| it[0] + 1 == it[1]), "{seqs:?}");
}

/// What `verify` names first.
#[track_caller]
fn violation(place: &TestDirs) -> (u64, &'static str) {
    match transcript::verify(&transcript(place)) {
        Err(TranscriptError::Violated { violation, .. }) => (violation.line, violation.what.code()),
        other => panic!("{other:?}"),
    }
}

// REQ: TRN-3, SES-5, SES-9
#[tokio::test]
async fn transcript_that_was_cut_behind_the_end_of_a_run_is_noticed_by_its_checkpoint() {
    let place = TestDirs::new();
    let long = || model(|_| text(&"here ".repeat(1 << 16)));
    place.run(&long(), place.session()).await;
    let first = fs::read(transcript(&place)).unwrap();
    let n_lines = place.whole_lines().len() as u64;
    place.run(&long(), place.session()).await;
    let both = fs::read(transcript(&place)).unwrap();
    transcript::verify(&transcript(&place)).unwrap();
    fs::write(transcript(&place), &first).unwrap();
    assert_eq!(violation(&place), (n_lines + 1, "cut_off"));
    // Going on takes the witness away neither at once nor when lines of these numbers are there.
    let short = || says(vec![text("other")]);
    place.run(&short(), place.session()).await;
    place.run(&short(), place.session()).await;
    assert_eq!(violation(&place).1, "not_as_closed");
    // What came after a checkpoint is no fault.
    fs::write(transcript(&place), &both).unwrap();
    transcript::verify(&transcript(&place)).unwrap();
    place.run(&short(), place.session()).await;
    transcript::verify(&transcript(&place)).unwrap();
}

// REQ: TRN-3, SES-5
#[tokio::test]
async fn checkpoint_is_no_witness_against_a_copy_nor_for_long_against_a_session_begun_anew() {
    let place = TestDirs::new();
    let long = || model(|_| text(&"here ".repeat(1 << 16)));
    place.run(&long(), place.session()).await;
    let copy = transcript(&place).with_extension("bak");
    fs::copy(transcript(&place), &copy).unwrap();
    place.run(&long(), place.session()).await;
    transcript::verify(&copy).unwrap();
    fs::remove_file(transcript(&place)).unwrap();
    place.run(&long(), place.session()).await;
    transcript::verify(&transcript(&place)).unwrap();
}

// REQ: TRN-14
#[tokio::test]
async fn repeated_run_id_answers_with_the_earlier_outcome() {
    let place = TestDirs::new();
    let model = model(|asked: &Asked| text(&format!("answer {}", asked.n_answers())));
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let ask = || RunRequest::new("go").run("r1");
    let first = session.run(ask()).await.unwrap();
    let other = session.prompt("other").await.unwrap();
    let again = session.run(ask()).await.unwrap();
    assert_eq!((first.text.as_str(), other.text.as_str()), ("answer 0", "answer 1"));
    assert_eq!((again.text, again.head), (first.text, first.head));
    assert_eq!(model.asked().len(), 2);
    finish(ennead, session).await;
}

// REQ: PRM-6
#[tokio::test]
async fn what_was_granted_before_is_asked_again() {
    let place = TestDirs::new();
    let (approver, asked) = OneAnswer::new(true, "");
    for n in 1..=2 {
        let model = model(move |it| match it.n_answers() % 2 {
            0 => call(&format!("c{n}"), "Bash", json!({"command": "date >> made"})),
            _ => text("done"),
        });
        let mut options = place.session();
        options.approver = Some(approver.clone());
        place.run(&model, options).await;
        assert_eq!(asked.len(), n);
    }
}

// REQ: TOL-7, SES-4
#[tokio::test]
async fn file_must_be_read_again_before_it_is_changed() {
    let place = TestDirs::new();
    let file = place.write("workspace/a.txt", "one\n");
    let options = || place.session().allow("Edit").unwrap();
    let read = says(vec![call("r", "Read", json!({"file_path": file})), text("done")]);
    place.run(&read, options()).await;
    let edit = json!({"file_path": file, "old_string": "one", "new_string": "two"});
    let model = model(move |it| match it.results().len() {
        1 => call("e", "Edit", edit.clone()),
        _ => text("done"),
    });
    place.run(&model, options()).await;
    let shown = model.last().result("e");
    assert!(shown.contains("read"), "{shown}");
    assert_eq!(place.read("workspace/a.txt"), "one\n");
}

// REQ: TRN-11
#[tokio::test]
async fn opening_a_cut_session_tells_of_repairs_and_then_runs() {
    let place = TestDirs::new();
    let (tool, _) = counted();
    place
        .run(&says(vec![call("a", "effect", json!({}))]), place.session().tool(tool.clone()))
        .await;
    cut_behind(&place, r#""kind":"tool_intent""#);
    let model = model(|_| text("on"));
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().tool(tool)).await.unwrap();
    let mut events = session.events();
    session.prompt("go").await.unwrap();
    let shown = until_end(&mut events).await;
    let ends = shown.iter().filter(|it| {
        use ennead::Event;
        matches!(it, Event::RunFinished { .. } | Event::RunLost { .. })
    });
    assert_eq!(ends.count(), 1);
    finish(ennead, session).await;
}
