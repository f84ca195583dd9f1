//! Events are the same whatever way the bytes were cut.
//!
//! Built under `#[cfg(test)]` only.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;

/// Reads `stream` in the given pieces; events as (name, data).
fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut parser = SseParser::new();
    let mut found = Vec::new();
    for piece in pieces {
        parser
            .push_chunk(piece, |it| {
                found.push((it.event.into_owned(), it.data.into_owned()));
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    found
}

#[track_caller]
fn check(stream: &[u8], events: &[(&str, &str)]) {
    let expected: Vec<_> =
        events.iter().map(|(event, data)| (event.to_string(), data.to_string())).collect();
    assert_eq!(read(&[stream]), expected);
    for cut in 0..=stream.len() {
        assert_eq!(read(&[&stream[..cut], &stream[cut..]]), expected, "cut at {cut}");
    }
    assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), expected, "byte by byte");
}

// REQ: MDL-1
#[test]
fn lines_end_with_lf_crlf_or_cr_at_every_cut() {
    check(b"event: a\ndata: 1\n\ndata: 2\n\n", &[("a", "1"), ("", "2")]);
    check(b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &[("a", "1"), ("", "2")]);
    check(b"event: a\rdata: 1\r\rdata: 2\r\r", &[("a", "1"), ("", "2")]);
    check(b"event: a\rdata: 1\r\n\rdata: 2\n\r", &[("a", "1"), ("", "2")]);
}

// REQ: MDL-1
#[test]
fn marks_comments_and_other_fields_are_passed_over() {
    check(b"\xEF\xBB\xBFdata: x\n\n", &[("", "x")]);
    check(b"\xEF\xBB\xBF\ndata: x\n\n", &[("", "x")]);
    check(b": hi\n:\nid: 7\nretry: 10\ndatax: no\ndata:x\n\n", &[("", "x")]);
    check(b"event: gone\n\ndata: x\n\n", &[("", "x")]);
}

// REQ: MDL-1
#[test]
fn data_lines_are_joined_and_one_blank_is_dropped() {
    check(b"data: a\ndata:  b\ndata\ndata:c\n\n", &[("", "a\n b\n\nc")]);
    check(b"data\n\n", &[("", "")]);
    check(b"event: a\nevent: b\ndata: x\n\n", &[("b", "x")]);
    check(b"data: a\nevent: b\n\ndata: c\n\n", &[("b", "a"), ("", "c")]);
}

// REQ: MDL-1
#[test]
fn bad_bytes_are_replaced_and_characters_survive_any_cut() {
    check("data: \u{e9}\u{1f600}\n\n".as_bytes(), &[("", "\u{e9}\u{1f600}")]);
    check(b"data: a\xFFb\n\n", &[("", "a\u{fffd}b")]);
}

// REQ: MDL-1
#[test]
fn an_event_without_its_end_is_dropped() {
    check(b"data: a\n\ndata: b\n", &[("", "a")]);
    let mut parser = SseParser::new();
    parser.push_chunk(b"data: a\n", |_| ControlFlow::Continue(())).unwrap();
    assert!(parser.finish());
    assert!(!SseParser::new().finish());
}

// REQ: MDL-1
#[test]
fn an_event_at_the_limit_passes_and_one_past_it_does_not() {
    let at_limit = b"data: 12345678\n\n";
    let past_limit = b"data: 123456789\n\n";
    for size in 1..=at_limit.len() {
        let feed = |stream: &[u8]| {
            let mut parser = SseParser::with_limit(14);
            stream
                .chunks(size)
                .try_for_each(|it| parser.push_chunk(it, |_| ControlFlow::Continue(())))
        };
        assert_eq!(feed(at_limit), Ok(()));
        assert_eq!(feed(past_limit), Err(EventTooLarge { limit: 14 }));
    }
}

// REQ: MDL-1
#[test]
fn an_event_within_a_chunk_is_not_copied() {
    let mut parser = SseParser::new();
    parser
        .push_chunk(b"event: a\ndata: 1\n\n", |it| {
            assert!(matches!(it.data, Cow::Borrowed(_)));
            assert!(matches!(it.event, Cow::Borrowed(_)));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((parser.data.capacity(), parser.line.capacity()), (0, 0));
}

// REQ: MDL-1
#[test]
fn usual_events_are_read_the_same_behind_and_before_odd_ones() {
    let usual = "event: a\ndata: 1\n\n";
    let odd = [
        ("event: b\r\ndata: 2\r\n\r\n", vec![("b", "2")]),
        ("event: b\ndata: 2\r\n\n", vec![("b", "2")]),
        ("event: b\ndata: 2\n\r\n", vec![("b", "2")]),
        ("event: b\rdata: 2\n\n", vec![("b", "2")]),
        ("event: b\ndata: 2\ndata: 3\n\n", vec![("b", "2\n3")]),
        ("event: b\ndata: 2\nid: 3\n\n", vec![("b", "2")]),
        ("event: b\ndata: 2\n: c\n\n", vec![("b", "2")]),
        ("event: b\n\n", vec![]),
        ("\n", vec![]),
        ("data: 2\n\n", vec![("", "2")]),
        ("event:b\ndata:2\n\n", vec![("b", "2")]),
        ("event: b\ndata:2\n\n", vec![("b", "2")]),
        ("event: b\ndata\n\n", vec![("b", "")]),
        (": ping\n\n", vec![]),
    ];
    for (bytes, events) in odd {
        let stream = format!("{usual}{bytes}{usual}{bytes}{usual}");
        let mut expected = vec![("a", "1")];
        for _ in 0..2 {
            expected.extend(&events);
            expected.push(("a", "1"));
        }
        check(stream.as_bytes(), &expected);
        let marked = format!("\u{feff}{stream}");
        check(marked.as_bytes(), &expected);
    }
}

// REQ: MDL-1
#[test]
fn usual_events_keep_to_the_limit() {
    for stream in ["event: a\ndata: 012345\n\n", "event: 01234\ndata: \n\n"] {
        let feed = |limit| {
            let mut parser = SseParser::with_limit(limit);
            parser.push_chunk(stream.as_bytes(), |_| ControlFlow::Continue(()))
        };
        assert_eq!((feed(12), feed(11)), (Ok(()), Err(EventTooLarge { limit: 11 })), "{stream}");
    }
}

proptest! {
    // REQ: MDL-1
    #[test]
    fn any_text_reads_the_same_in_any_pieces(
        stream in proptest::collection::vec(
            prop_oneof![
                Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(b'a'), Just(b't'),
                any::<u8>(),
            ],
            0..80,
        ),
        words in proptest::collection::vec(0usize..5, 0..12),
        size in 1usize..9,
    ) {
        let mut text = stream;
        for word in words {
            text.extend_from_slice(
                [
                    &b"data: x\n"[..],
                    b"event: e\r\n",
                    b"\r",
                    b"data\n\n",
                    b"event: e\ndata: y\n\n",
                ][word],
            );
        }
        let pieces: Vec<_> = text.chunks(size).collect();
        prop_assert_eq!(read(&pieces), read(&[&text]));
    }
}
