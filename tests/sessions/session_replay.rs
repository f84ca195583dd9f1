//! What a session decided is walked again from its transcript: which prompt begins a run, what follows a
//! turn, and how turns and runs are closed.

use std::{fs, path::Path, sync::Arc, time::Duration};

use ennead::{
    Placement, RunEnd, RunRequest, SessionHandle, data::TranscriptError, testing::ManualClock,
    transcript::verify,
};
use ennead_runtime::{digest::Digest, transcript::replay::ReplayError};

use crate::support::{
    host::{Host, prompt, prompt_to},
    until::until,
};

/// The lines with other bytes, sealed anew as their writer would have done.
fn resealed(text: &str, change: &dyn Fn(&str) -> String) -> String {
    let (mut link, mut hash, mut write) = ("0".repeat(8), Digest::default(), String::new());
    let mut sealed = String::new();
    for (n, line) in text.lines().enumerate() {
        let body = &line[..body_end(line)];
        let mut body = change(body);
        let is_end = body.contains(r#""kind":"run_end""#);
        if let Some(at) = body.find(r#","head":""#).filter(|_| is_end) {
            body.truncate(at);
            body += &format!(r#","head":"{hash}""#);
        }
        let mut line_text = format!(r#"{body},"seq":{},"prev":"{link}""#, n + 1);
        let bears_hash = line[body_end(line)..].contains(r#","hash":""#);
        if bears_hash {
            let covered = [&hash.0[..], write.as_bytes(), line_text.as_bytes()];
            hash = Digest::of_parts(&covered);
            line_text += &format!(r#","hash":"{hash}""#);
        }
        let sum = format!("{:08x}", crc32(line_text.as_bytes()));
        line_text += &format!(",\"sum\":\"{sum}\"}}\n");
        (link, write) = if bears_hash {
            (hash.to_string()[..8].to_owned(), String::new())
        } else {
            (sum, write + &line_text)
        };
        sealed += &line_text;
    }
    sealed
}

fn body_end(line: &str) -> usize {
    line.rfind(r#","seq":"#).unwrap()
}

/// The check sum of gzip and PNG, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let shift = |it: u32, _| if it & 1 == 1 { it >> 1 ^ 0xedb8_8320 } else { it >> 1 };
        (0..8).fold(sum ^ u32::from(*byte), shift)
    };
    !bytes.iter().fold(!0, step)
}

/// Checks a copy of a transcript in which something else was decided.
#[track_caller]
fn check_altered(transcript: &Path, what: &str, change: &dyn Fn(&str) -> String) {
    let text = fs::read_to_string(transcript).unwrap();
    let altered = resealed(&text, change);
    assert_ne!(altered, text, "{what}");
    // What lies next to it is found by its name.
    let checkpoint = transcript.with_extension("checkpoint");
    let _none = fs::remove_file(checkpoint);
    fs::write(transcript, altered).unwrap();
    let found = verify(transcript);
    fs::write(transcript, &text).unwrap();
    match found {
        Err(TranscriptError::Differs {
            error: ReplayError::Decided { .. } | ReplayError::WrongPrompt { .. },
            ..
        }) => {}
        other => panic!("{what}: {other:?}"),
    }
}

async fn queued(session: &SessionHandle, n: usize) {
    until("the queue", async || session.status().await.unwrap().queued == n).await;
}

// REQ: SES-4, TRN-13
#[tokio::test]
async fn queue_interrupt_stop_and_resume_are_walked_again_and_an_altered_decision_is_reported() {
    let clock = Arc::new(ManualClock::at(1_790_000_000_000));
    let change = |options: ennead::Options| options.clock(clock.clone());
    let host = Host::start_with(Placement::Ambient, change).await;
    let session = host.open().await;
    let later = || clock.advance(Duration::from_secs(1));
    let first = prompt_to(&session, "use wait", &host.workshop.wait).await;
    later();
    let second = prompt(&session, "use echo");
    queued(&session, 1).await;
    later();
    let third = prompt(&session, "again");
    queued(&session, 2).await;
    later();
    session.interrupt();
    host.workshop.wait.open();
    assert_eq!(first.await.unwrap().unwrap().end, RunEnd::Interrupted);
    assert_eq!(second.await.unwrap().unwrap().end, RunEnd::NoPendingTools);
    assert_eq!(third.await.unwrap().unwrap().end, RunEnd::NoPendingTools);
    later();
    let stopped = prompt_to(&session, "use wait", &host.workshop.wait).await;
    session.stop();
    later();
    host.workshop.wait.open();
    assert_eq!(stopped.await.unwrap().unwrap().end, RunEnd::ExplicitStop);
    let delegated = session.prompt("delegate use echo").await.unwrap();
    assert_eq!(delegated.end, RunEnd::NoPendingTools);
    let (id, transcript) = (session.id().clone(), session.transcript().to_owned());
    session.close().await;
    later();
    let resumed = host.ennead.open(host.options().id(id)).await.unwrap();
    let limited = RunRequest::new("again").time_limit(Duration::from_secs(60));
    assert_eq!(resumed.run(limited).await.unwrap().end, RunEnd::NoPendingTools);
    resumed.close().await;
    assert_eq!(verify(&transcript).unwrap().len(), 2);
    check_decisions(&transcript);
}

/// Each thing that the session decided, decided otherwise.
fn check_decisions(transcript: &Path) {
    let text = fs::read_to_string(transcript).unwrap();
    assert_eq!(resealed(&text, &|it| it.to_owned()), text);
    let asked: Vec<&str> = text
        .lines()
        .filter_map(|it| it.split_once(r#""asked":"#))
        .map(|it| &it.1[..it.1.find([',', '}']).unwrap()])
        .collect();
    let [second, third] = asked[..] else { panic!("{asked:?}") };
    let replaced = |from: &str, to: &str| {
        let (from, to) = (from.to_owned(), to.to_owned());
        move |line: &str| line.replace(&from, &to)
    };
    let swapped = |line: &str| {
        let marked = line.replace(&format!(r#""asked":{second}"#), "SECOND");
        let swapped =
            marked.replace(&format!(r#""asked":{third}"#), &format!(r#""asked":{second}"#));
        swapped.replace("SECOND", &format!(r#""asked":{third}"#))
    };
    check_altered(transcript, "the order of the queue", &swapped);
    check_altered(
        transcript,
        "when a run begins",
        &replaced(&format!(r#""asked":{second}"#), r#""asked":1790000000000000"#),
    );
    check_altered(
        transcript,
        "an end by a limit that there is not",
        &replaced(r#""reason":"interrupted""#, r#""reason":"timed_out""#),
    );
    check_altered(transcript, "what a run used", &|line| {
        let is_end = line.contains(r#""kind":"run_end""#);
        if is_end {
            line.replace(r#""output_tokens":"#, r#""output_tokens":1"#)
        } else {
            line.into()
        }
    });
    check_altered(transcript, "why a run ended", &|line| {
        let is_end = line.contains(r#""kind":"run_end""#);
        let (from, to) = (r#""reason":"no_pending_tools""#, r#""reason":"max_turns""#);
        if is_end { line.replace(from, to) } else { line.into() }
    });
    check_altered(
        transcript,
        "where a turn was ended",
        &replaced(r#""at_step":"tool_execution""#, r#""at_step":"permission_gate""#),
    );
}
