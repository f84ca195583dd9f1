//! Whole sessions on damaged transcripts, against the simulated model, which refuses what a provider
//! refuses. Every this many damages by default; all of them with `ENNEAD_DAMAGE_TRIAL=whole`.

use std::{fs, path::Path, sync::Arc};

use ennead::{
    Ennead, Options, Placement, RunEnd,
    internal::{SimulatedTransport, Simulator},
    testing::Playbook,
};
use ennead_runtime::transcript::load::{LoadAs, load};

use super::{apply::damages, is_whole_trial, n_lost, stories};
use crate::support::scripted::{SESSION, TestDirs, alerts, until_end};

const PLAYBOOK: &str = r#"
[[rule]]
name = "any"
reply = [{ text = "still here" }]
"#;

/// Damages between two that are tried.
const STEP: usize = 40;

async fn started(place: &TestDirs) -> Ennead {
    let playbook = Playbook::parse(PLAYBOOK, "test").unwrap();
    let options = Options::default()
        .placement(Placement::Ambient)
        .seed(7)
        .clock(place.clock.clone())
        .transport(Arc::new(SimulatedTransport::new(Simulator::new(playbook))));
    Ennead::start(options).await.unwrap()
}

/// Resumes what lies there and gives one prompt: how that ended, and what was alerted.
async fn resumed(
    ennead: &Ennead,
    place: &TestDirs,
    transcripts: &Path,
) -> (Option<RunEnd>, String, Vec<String>) {
    let mut options = place.session();
    options.transcripts = Some(transcripts.to_owned());
    let session = match ennead.open(options).await {
        Ok(session) => session,
        Err(error) => return (None, error.to_string(), Vec::new()),
    };
    let mut events = session.events();
    let outcome = session.prompt("go on").await;
    let alerted = alerts(&until_end(&mut events).await);
    session.close().await;
    match outcome {
        Ok(outcome) => {
            let last_words = outcome.error.unwrap_or_else(|| outcome.text.clone());
            (Some(outcome.end), last_words, alerted)
        }
        Err(error) => (None, error.to_string(), alerted),
    }
}

fn put(place: &TestDirs, n: usize, bytes: &[u8]) -> std::path::PathBuf {
    let transcripts = place.path(&format!("transcripts-{n}"));
    fs::create_dir(&transcripts).unwrap();
    fs::write(transcripts.join(format!("{SESSION}.jsonl")), bytes).unwrap();
    transcripts
}

// REQ: SES-7, SHP-12
#[tokio::test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
async fn session_takes_the_next_prompt_whatever_its_transcript_has_suffered() {
    let step = if is_whole_trial() { 1 } else { STEP };
    let place = TestDirs::new();
    let ennead = started(&place).await;
    let (mut n, mut bricked, mut silent) = (0, Vec::new(), Vec::new());
    for (name, bytes) in stories::all().await {
        let clean = load(&bytes, LoadAs::Session).recorded;
        for damage in damages(&bytes).into_iter().step_by(step) {
            let damaged = damage.apply(&bytes);
            let lost = n_lost(&clean, &load(&damaged, LoadAs::Session));
            n += 1;
            let transcripts = put(&place, n, &damaged);
            let (end, last_words, alerted) = resumed(&ennead, &place, &transcripts).await;
            if end != Some(RunEnd::NoPendingTools) || last_words != "still here" {
                bricked.push(format!("{name}, {damage:?}: {end:?} {last_words}"));
            }
            if lost != 0 && !alerted.iter().any(|it| it.contains("repaired")) {
                silent.push(format!("{name}, {damage:?}: {lost} messages"));
            }
            fs::remove_dir_all(transcripts).unwrap();
        }
    }
    ennead.shutdown().await;
    println!("{n} damaged sessions: {} bricked, {} silent drops", bricked.len(), silent.len());
    assert!(bricked.is_empty() && silent.is_empty(), "{bricked:#?} {silent:#?}");
}

// REQ: SES-7
#[tokio::test]
async fn transcript_with_line_ends_of_another_system_is_gone_on_with_and_that_is_told() {
    let place = TestDirs::new();
    let ennead = started(&place).await;
    let (_, bytes) = stories::all().await.swap_remove(2);
    let text = String::from_utf8(bytes.clone()).unwrap().replace('\n', "\r\n");
    let transcripts = put(&place, 0, text.as_bytes());
    let (end, last_words, alerted) = resumed(&ennead, &place, &transcripts).await;
    assert_eq!((end, last_words.as_str()), (Some(RunEnd::NoPendingTools), "still here"));
    let n_lines = text.lines().count();
    let expected = format!("carriage return, which is left out ({n_lines} of them)");
    assert!(alerted.iter().any(|it| it.contains(&expected)), "{alerted:?}");
    let after = fs::read(transcripts.join(format!("{SESSION}.jsonl"))).unwrap();
    assert!(after.starts_with(text.as_bytes()));
    let (before, now) = (load(&bytes, LoadAs::Session), load(&after, LoadAs::Session));
    assert_eq!(now.recorded[..before.recorded.len()], before.recorded[..]);
    assert_eq!(now.tail.head.seq, now.tail.head.seq.max(before.tail.head.seq + 1));
    ennead.shutdown().await;
}

// REQ: SES-7, SHP-12
#[tokio::test]
async fn result_that_is_lost_in_an_ended_run_is_answered_once_and_told() {
    let place = TestDirs::new();
    let ennead = started(&place).await;
    let (_, bytes) = stories::all().await.swap_remove(2);
    let text = String::from_utf8(bytes).unwrap();
    let is_result =
        |it: &&str| it.contains(r#""tool_use_id":"a""#) && it.contains(r#""type":"user""#);
    let cut: String = text.split_inclusive('\n').filter(|it| !is_result(it)).collect();
    assert_eq!(cut.lines().count() + 1, text.lines().count());
    let transcripts = put(&place, 0, cut.as_bytes());
    for _ in 0..2 {
        let (end, last_words, _) = resumed(&ennead, &place, &transcripts).await;
        assert_eq!((end, last_words.as_str()), (Some(RunEnd::NoPendingTools), "still here"));
    }
    let after = fs::read_to_string(transcripts.join(format!("{SESSION}.jsonl"))).unwrap();
    let made_up = after.lines().filter(is_result);
    let made_up: Vec<&str> =
        made_up.filter(|it| it.contains("missing from the transcript")).collect();
    assert_eq!(made_up.len(), 1, "{made_up:?}");
    ennead.shutdown().await;
}
