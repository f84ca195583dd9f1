//! How fast a stream is read, against the least that reading it could cost.
//!
//! `cargo bench -p ennead-runtime --bench sse` prints megabytes a second of the stream reader, of
//! its parts below, and of a plain scan for line ends over the same bytes, with the ratio. The
//! bytes come in pieces of 16 KiB, as from a socket.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::{
    hint::black_box,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use ennead_runtime::step5_model_call::{
    sse::SseParser,
    stream::{StreamOutcome, StreamReader},
};

/// Bytes of a stream.
const SIZE: usize = 512 << 10;

/// Bytes that one read of a socket gives.
const PIECE: usize = 16 << 10;

/// How often each is measured; the best counts. Short and often, so that on a busy machine some
/// are not interrupted.
const TIMES: usize = 400;

/// What the deltas of a stream are about.
#[derive(Clone, Copy)]
enum Mix {
    /// Text without anything to escape.
    Plain,
    /// Blocks of thinking, of text with line ends and quotes, and of input of tools.
    Mixed,
}

fn main() {
    for (name, mix) in [("plain text", Mix::Plain), ("thinking, text and tools", Mix::Mixed)] {
        let stream = stream(mix);
        let n_events = stream.windows(2).filter(|it| it == b"\n\n").count();
        println!("{name}: {} bytes, {n_events} events", stream.len());
        let lines = measure("plain line scan", &stream, scan_lines);
        for (name, read) in [
            ("events (SseParser)", read_events as fn(&[u8]) -> usize),
            ("messages (StreamReader)", read_message),
        ] {
            let speed = measure(name, &stream, read);
            println!("  {name}: 1 to {:.1} of the line scan", lines / speed);
        }
    }
}

/// Prints and returns megabytes a second.
fn measure(name: &str, stream: &[u8], read: fn(&[u8]) -> usize) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..TIMES {
        #[expect(clippy::disallowed_methods, reason = "a benchmark asks the machine")]
        let started = Instant::now();
        black_box(read(black_box(stream)));
        best = best.min(started.elapsed());
    }
    let speed = stream.len() as f64 / best.as_secs_f64() / 1e6;
    println!("  {name}: {speed:.0} MB/s");
    speed
}

fn scan_lines(stream: &[u8]) -> usize {
    stream.chunks(PIECE).map(|piece| memchr::memchr_iter(b'\n', piece).count()).sum()
}

fn read_events(stream: &[u8]) -> usize {
    let (mut parser, mut n) = (SseParser::new(), 0);
    for piece in stream.chunks(PIECE) {
        let read = parser.push_chunk(piece, |event| {
            n += event.data.len();
            ControlFlow::Continue(())
        });
        assert!(read.is_ok(), "events are short");
    }
    n
}

fn read_message(stream: &[u8]) -> usize {
    let (mut reader, mut shown) = (StreamReader::new(), Vec::new());
    let mut n = 0;
    for piece in stream.chunks(PIECE) {
        reader.push_chunk(piece, &mut shown);
        n += shown.drain(..).count();
    }
    let report = reader.finish();
    assert!(matches!(report.outcome, StreamOutcome::Message(_)), "{:?}", report.phase);
    n
}

/// A stream as the Messages API sends it.
fn stream(mix: Mix) -> Vec<u8> {
    let mut out = String::new();
    let event = |out: &mut String, name: &str, data: &str| {
        for part in ["event: ", name, "\ndata: ", data, "\n\n"] {
            out.push_str(part);
        }
    };
    event(
        &mut out,
        "message_start",
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}"#,
    );
    let mut index = 0;
    while out.len() < SIZE {
        let (start, kind, field, pieces) = block(mix, index);
        event(
            &mut out,
            "content_block_start",
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#),
        );
        for piece in pieces {
            event(
                &mut out,
                "content_block_delta",
                &format!(
                    r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{field}":"{piece}"}}}}"#
                ),
            );
        }
        let stop = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
        event(&mut out, "content_block_stop", &stop);
        index += 1;
    }
    event(
        &mut out,
        "message_delta",
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}"#,
    );
    event(&mut out, "message_stop", r#"{"type":"message_stop"}"#);
    out.into_bytes()
}

/// How a block starts, its kind of delta, the field of it, and what is there, escaped.
fn block(mix: Mix, index: usize) -> (String, &'static str, &'static str, Vec<&'static str>) {
    const PLAIN: [&str; 8] = [
        "The quick brown fox",
        " jumps over the lazy",
        " dog, and then",
        " it reads the whole of the file to find out",
        " what",
        " the function is called by; naïvely,",
        " nobody knows.",
        " So it asks again",
    ];
    const ESCAPED: [&str; 8] = [
        "fn main() {\\n",
        "    let name = \\\"x\\\";\\n",
        "    println",
        "!(\\\"hello",
        ", {name}",
        "\\\");",
        " // says it",
        "\\n}\\n",
    ];
    const INPUT: [&str; 4] =
        ["{\\\"file_path\\\": \\\"src/", "main.rs", "\\\", \\\"limit\\\"", ": 200}"];
    let text = || r#"{"type":"text","text":""}"#.to_owned();
    let repeat = |of: &[&'static str], n: usize| of.iter().copied().cycle().take(n).collect();
    match (mix, index % 4) {
        (Mix::Plain, _) => (text(), "text_delta", "text", repeat(&PLAIN, 800)),
        (Mix::Mixed, 0) => (
            r#"{"type":"thinking","thinking":"","signature":""}"#.to_owned(),
            "thinking_delta",
            "thinking",
            repeat(&PLAIN, 400),
        ),
        (Mix::Mixed, 1) => (text(), "text_delta", "text", repeat(&PLAIN, 200)),
        (Mix::Mixed, 2) => (text(), "text_delta", "text", repeat(&ESCAPED, 80)),
        (Mix::Mixed, _) => (
            format!(r#"{{"type":"tool_use","id":"toolu_{index}","name":"Read","input":{{}}}}"#),
            "input_json_delta",
            "partial_json",
            repeat(&INPUT, 4),
        ),
    }
}
