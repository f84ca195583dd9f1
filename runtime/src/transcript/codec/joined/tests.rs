//! Tests of lines that hold several records.

use proptest::prelude::*;

use crate::{
    step::Step,
    time::Timestamp,
    transcript::{
        codec::{MAX_RECORD, encode, joined},
        entry::{Line, LineFrame, Record, RecordKind, StepDetail},
        read::{Entry, read_line},
        seal::{Head, LineBatch, body_of, seal_of},
    },
    turn::tests::random::random,
};

fn record(at: u64, run: Option<&str>, turn: u32, what: RecordKind) -> Record {
    let (at, run) = (Timestamp(at), run.map(Into::into));
    Record { at, run, turn, what, shares_line: true }
}

fn alert(text: &str) -> RecordKind {
    RecordKind::Alert { what: text.to_owned() }
}

/// What one write of these leaves, line by line.
fn written(records: &[Record]) -> Vec<String> {
    let mut out = Vec::new();
    let mut batch = LineBatch::new(Head::default(), None, &mut out);
    for record in records {
        batch.push(&Line::Harness(Box::new(record.clone())), &LineFrame::of_test(), |_, _, _| {});
    }
    batch.finish();
    String::from_utf8(out).unwrap().lines().map(ToOwned::to_owned).collect()
}

fn read(line: &str) -> Vec<Record> {
    let Entry::Harness(records) = read_line(line).unwrap().entry else { panic!("{line}") };
    records
}

fn body(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&Line::Harness(Box::new(record.clone())), &LineFrame::of_test(), &mut out);
    out
}

fn any_record() -> impl Strategy<Value = Record> {
    let what = prop_oneof![
        any::<String>().prop_map(|it| alert(&it)),
        (0..2000_usize).prop_map(|n| alert(&"long ".repeat(n))),
        Just(RecordKind::TurnStep {
            number: 9,
            step: Step::StopCheck,
            detail: StepDetail::Stop { done: false, reason: None },
        }),
    ];
    let run = prop_oneof![Just(Some("r1")), Just(Some("r2")), Just(None)];
    (0..3_u64, run, 0..3_u32, what, any::<bool>()).prop_map(|(at, run, turn, what, shares_line)| {
        Record { shares_line, ..record(at, run, turn, what) }
    })
}

proptest! {
    // REQ: SES-1
    #[test]
    fn records_are_read_as_they_were_written_and_each_as_on_a_line_of_its_own(
        records in prop::collection::vec(any_record(), 1..30),
    ) {
        let mut expected = Vec::new();
        for line in written(&records) {
            prop_assert!(line.len() <= MAX_RECORD && seal_of(line.as_bytes()).unwrap().intact);
            let found = read(&line);
            let bodies = joined::split(body_of(line.as_bytes()).unwrap(), &found);
            prop_assert_eq!(&bodies, &found.iter().map(body).collect::<Vec<_>>());
            prop_assert!(found.iter().all(|it| it.turn == found[0].turn && it.run == found[0].run));
            prop_assert!(found.iter().skip(1).all(|it| it.shares_line) && !found[0].shares_line);
            expected.extend(found);
        }
        // What was too long for a line is shortened, the rest is as it was.
        prop_assert_eq!(expected.len(), records.len());
        for (found, given) in expected.iter().zip(&records) {
            prop_assert_eq!((found.at, &found.run, found.turn), (given.at, &given.run, given.turn));
            prop_assert!(given.shares_line || !found.shares_line);
            if body(given).len() < MAX_RECORD / 2 {
                prop_assert_eq!(&found.what, &given.what);
            }
        }
    }
}

// REQ: SES-1
#[test]
fn line_holds_the_records_that_a_turn_made_without_waiting_in_between() {
    let lines = written(&[
        record(1, Some("r"), 1, alert("a")),
        record(1, Some("r"), 1, alert("b")),
        record(2, Some("r"), 1, alert("c")),
        Record { shares_line: false, ..record(2, Some("r"), 1, alert("after a wait")) },
        record(2, Some("r"), 2, alert("d")),
        record(2, Some("r"), 0, alert("of no turn")),
        record(2, Some("r"), 0, alert("nor this")),
        record(2, Some("q"), 2, alert("e")),
    ]);
    let starts = [
        r#"{"type":"ennead","kind":"alert","v":3,"at":1,"run":"r","turn":1,"what":"a","then":[{"kind":"alert","what":"b"},{"kind":"alert","at":2,"what":"c"}],"seq":1,"#,
        r#"{"type":"ennead","kind":"alert","v":3,"at":2,"run":"r","turn":1,"what":"after a wait","seq":2,"#,
        r#"{"type":"ennead","kind":"alert","v":3,"at":2,"run":"r","turn":2,"what":"d","seq":3,"#,
        r#"{"type":"ennead","kind":"alert","v":3,"at":2,"run":"r","turn":0,"what":"of no turn","seq":4,"#,
        r#"{"type":"ennead","kind":"alert","v":3,"at":2,"run":"r","turn":0,"what":"nor this","seq":5,"#,
        r#"{"type":"ennead","kind":"alert","v":3,"at":2,"run":"q","turn":2,"what":"e","seq":6,"#,
    ];
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

// REQ: SES-1, SES-9
#[test]
fn session_takes_fewer_lines_than_records_and_none_is_long() {
    let play = random(5);
    let bytes = play.bytes();
    let lines: Vec<&[u8]> = bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty()).collect();
    assert!(lines.len() * 5 < play.lines.len() * 4, "{} of {}", lines.len(), play.lines.len());
    for line in lines {
        let is_record = line.starts_with(br#"{"type":"ennead""#);
        assert!(!is_record || line.len() < MAX_RECORD, "{}", line.len());
    }
}

#[test]
fn list_that_is_none_of_ours_makes_the_line_one_of_an_unknown_kind() {
    let with = |then: &str| {
        let alert = r#"{"type":"ennead","kind":"alert","v":3,"at":1,"turn":1,"what":"a","then":"#;
        read_line(&format!("{alert}{then}}}")).unwrap().entry
    };
    assert!(matches!(with("[]"), Entry::Harness(it) if it.len() == 1));
    let many = format!("[{}]", vec![r#"{"kind":"alert","what":""}"#; 100_000].join(","));
    let deep = "[".repeat(100) + &"]".repeat(100);
    for then in ["5", "\"x\"", "{}", "[1]", r#"[{"kind":"of tomorrow"}]"#, &many, &deep] {
        assert!(matches!(with(then), Entry::Other { .. }), "{}", &then[..then.len().min(40)]);
    }
}
