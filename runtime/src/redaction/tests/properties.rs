//! Properties on texts made of pieces of secrets.

use proptest::{prelude::*, sample::select};

use super::*;
use crate::redaction::scan::{Hay, Scanner};

const VALUE: &str = "correct horse";

/// Pieces of which secrets, and nearly secrets, come about.
fn pieces() -> impl Strategy<Value = String> {
    let mut parts =
        vec![" ".to_owned(), "\n".into(), "\\n".into(), "ä".into(), "]".into(), "\"".into()];
    parts.extend([".", "@", ":", "-", "_", "x", "7"].map(String::from));
    parts.extend(["correct ", "correct", " horse", VALUE, "-----", "-----END "].map(String::from));
    for (rule, sample) in samples::all() {
        let half = sample.len() / 2;
        parts.extend([sample[..half].into(), sample[half..].into(), sample]);
        parts.extend(rule.anchors.iter().map(|it| (*it).to_owned()));
    }
    proptest::collection::vec(select(parts), 0..12).prop_map(|it| it.concat())
}

/// The text in pieces that end at these places.
fn streamed(redactor: &Redactor, text: &str, cuts: &[usize]) -> String {
    let (mut stream, mut out, mut at) = (redactor.stream(), String::new(), 0);
    let mut cuts: Vec<usize> = cuts.iter().map(|it| it % (text.len() + 1)).collect();
    cuts.sort_unstable();
    for cut in cuts {
        if let Some(piece) = text.get(at..cut) {
            out += &stream.push(piece);
            at = cut;
        }
    }
    out += &stream.push(&text[at..]);
    out + &stream.finish()
}

proptest! {
    // REQ: SES-8
    #[test]
    fn stream_gives_what_the_whole_gives(
        text in pieces(),
        cuts in proptest::collection::vec(any::<usize>(), 0..8),
    ) {
        let redactor = redactor(&[VALUE, "aB3dE5gH7"]);
        let whole = redactor.text(&text).into_owned();
        prop_assert_eq!(streamed(&redactor, &text, &cuts), &whole[..]);
        let each: Vec<usize> = (0..=text.len()).collect();
        prop_assert_eq!(streamed(&redactor, &text, &each), &whole[..]);
        let mut bytes = redactor.stream();
        let mut out: Vec<u8> = text.bytes().flat_map(|it| bytes.push_bytes(&[it])).collect();
        out.extend(bytes.finish_bytes());
        prop_assert_eq!(out, whole.into_bytes());
    }

    // REQ: SES-8
    #[test]
    fn placeholders_stay_when_a_text_is_redacted_again(text in pieces()) {
        let redactor = redactor(&[VALUE]);
        let once = redactor.text(&text).into_owned();
        let twice = redactor.text(&once).into_owned();
        // Of secrets that run into each other the second time may find more.
        let mut later = placeholders(&twice).map(|it| it.1);
        prop_assert!(placeholders(&once).all(|it| later.any(|other| other == it.1)));
    }

    #[test]
    fn json_of_a_redacted_text_is_json_and_has_no_secret(text in pieces()) {
        let redactor = redactor(&[VALUE]);
        let json = serde_json::json!({ "a": text, "b": [text, 1] }).to_string();
        let redacted = redactor.json(&json).into_owned();
        let read: serde_json::Value = serde_json::from_str(&redacted).unwrap();
        for text in [&read["a"], &read["b"][0]] {
            let text = text.as_str().unwrap();
            prop_assert!(!text.contains(VALUE));
        }
    }
}

// REQ: SES-8
#[test]
fn work_is_linear_whatever_the_text_is() {
    let redactor = redactor(&["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "abababababababababababababac"]);
    let mut units: Vec<String> =
        ["a", "ab", "-", "eyJ", ".eyJ", "://", "://a:", "sk-", "gh"].map(String::from).into();
    units.extend(samples::all().into_iter().flat_map(|(rule, sample)| {
        let anchors = rule.anchors.iter().map(|it| (*it).to_owned());
        anchors.chain([sample]).collect::<Vec<_>>()
    }));
    for unit in units {
        let n_bytes = 64 * 1024;
        let text = unit.repeat(n_bytes / unit.len());
        let (mut scanner, mut spans) = (Scanner::default(), Vec::new());
        let hay = Hay { bytes: text.as_bytes(), base: 0, before: [0; 2] };
        scanner.run(&redactor.patterns, hay, &mut spans);
        // Few rules follow the same bytes; none does twice.
        assert!(scanner.n_followed <= 4 * n_bytes, "{unit}: {}", scanner.n_followed);
    }
}
