//! The system prompt of a single run.

use std::fs;

use ennead::{RunEnd, RunRequest, transcript::verify};
use serde_json::{Value, json};

use crate::support::scripted::{Asked, SESSION, TestDirs, calls, finish, model, text};

/// The segments of the system prompt, without cache marks.
fn segments(asked: &Asked) -> Vec<String> {
    let segments = asked.body["system"].as_array().unwrap();
    segments.iter().map(|it| it["text"].as_str().unwrap().to_owned()).collect()
}

// REQ: TRN-14, SES-4
#[tokio::test]
async fn system_prompt_of_a_run_stands_behind_that_of_the_session_and_ends_with_the_run() {
    let place = TestDirs::new();
    let long = "Speak like a pirate. ".repeat(100);
    let model = model(|asked| match asked.n_answers() % 2 {
        0 => calls(&[(&format!("g{}", asked.n_answers()), "Glob", json!({"pattern": "*"}))]),
        _ => text("done"),
    });
    let runs = [None, Some("Be brief."), None, Some(&*long), Some(" "), Some("Be brief.")];
    for half in runs.chunks(4) {
        let ennead = place.start(&model).await;
        let session = ennead.open(place.session()).await.unwrap();
        for system in half {
            let request = match system {
                Some(text) => RunRequest::new("go").system(*text),
                None => RunRequest::new("go"),
            };
            let outcome = session.run(request).await.unwrap();
            assert_eq!((outcome.end, outcome.turns), (RunEnd::NoPendingTools, 2));
        }
        let file = session.transcript().to_owned();
        finish(ennead, session).await;
        verify(&file).unwrap();
    }
    let asked = model.asked();
    let fixed = segments(&asked[0]);
    for (two, system) in asked.chunks(2).zip(runs) {
        let own = system.filter(|it| !it.trim().is_empty());
        let expected: Vec<String> = fixed.iter().cloned().chain(own.map(str::to_owned)).collect();
        for asked in two {
            assert_eq!(segments(asked), expected);
            assert_eq!(asked.body["tools"], model.asked()[0].body["tools"]);
        }
    }
    let lines = place.lines();
    let starts: Vec<&Value> = lines.iter().filter(|it| it["kind"] == "run_start").collect();
    let recorded: Vec<bool> = starts.iter().map(|it| it.get("system").is_some()).collect();
    assert_eq!(recorded, [false, true, false, true, false, true]);
}

// REQ: TRN-14, SES-4
#[tokio::test]
async fn transcript_with_another_system_prompt_is_not_verified() {
    let place = TestDirs::new();
    let model = model(|_| text("done"));
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    session.run(RunRequest::new("go").system("Be brief.")).await.unwrap();
    let file = session.transcript().to_owned();
    finish(ennead, session).await;
    verify(&file).unwrap();
    let digest = place.lines()[1]["system"]["at"].as_str().unwrap().to_owned();
    let beside = fs::read_dir(place.path(&format!("transcripts/{SESSION}/stored"))).unwrap();
    let stored = beside.flatten().find(|it| it.path().display().to_string().contains(&digest));
    let stored = stored.unwrap().path();
    assert_eq!(fs::read_to_string(&stored).unwrap(), "Be brief.");
    fs::write(&stored, "Be long.").unwrap();
    verify(&file).unwrap_err();
}
