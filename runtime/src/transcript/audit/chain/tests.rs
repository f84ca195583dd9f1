//! What the chain shows of damaged lines.
//!
//! Built under `#[cfg(test)]` only.

use crate::{
    digest::Digest,
    transcript::audit::{
        Evidence, Verified, Violation,
        fixture::{good, seal},
        verify,
    },
};

fn audit(bytes: &[u8]) -> Result<Verified, (u64, &'static str)> {
    let evidence = Evidence {
        stored: &|_: Digest| Some("layers".into()),
        sidechain: &|_| None,
        checkpoint: None,
        run_budget: &|_| None,
        also: &|_| Ok(()),
    };
    verify(bytes, &evidence).map_err(|Violation { line, what }| (line, what.code()))
}

fn cut_sum(line: &str) -> &str {
    &line[..line.rfind(r#","sum":"#).unwrap()]
}

fn file() -> String {
    String::from_utf8(seal(&good())).unwrap()
}

// REQ: SES-9
#[test]
fn line_that_was_altered_together_with_its_sum_is_found_by_the_hash_that_covers_it() {
    let text = file();
    assert_eq!(audit(text.as_bytes()).unwrap().head.seq, good().len() as u64);
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap();
    let altered = cut_sum(last).replace(r#""turns":2"#, r#""turns":3"#);
    assert_ne!(altered, cut_sum(last));
    let with = |sum: u32| format!("{before}\n{altered},\"sum\":\"{sum:08x}\"}}\n");
    let n_lines = good().len() as u64;
    assert_eq!(audit(with(7).as_bytes()).unwrap_err(), (n_lines, "altered"));
    let sum = crc32fast::hash(altered.as_bytes());
    // The first line of those that it covers.
    let n_covered = before.lines().rev().take_while(|it| !it.contains(r#","hash":""#)).count();
    let found = audit(with(sum).as_bytes()).unwrap_err();
    assert_eq!(found, (n_lines - n_covered as u64, "altered_with_sum"));
}

// REQ: SES-9
#[test]
fn damaged_line_is_named_wherever_the_next_hash_is() {
    let text = file();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert!(lines.iter().filter(|it| it.contains(r#","hash":""#)).count() < lines.len() / 2);
    for at in 0..lines.len() {
        let number = at as u64 + 1;
        let mut altered: Vec<String> = lines.iter().map(|it| (*it).to_owned()).collect();
        altered[at] = altered[at].replacen("\":", "\" :", 1);
        assert_eq!(audit(altered.concat().as_bytes()).unwrap_err(), (number, "altered"));
        let Some(_) = lines.get(at + 1) else { break };
        let mut removed = lines.clone();
        removed.remove(at);
        let found = audit(removed.concat().as_bytes()).unwrap_err();
        assert_eq!(found, (number, "out_of_sequence"));
        let mut moved = lines.clone();
        moved.swap(at, at + 1);
        assert_eq!(audit(moved.concat().as_bytes()).unwrap_err(), (number, "out_of_sequence"));
    }
}
