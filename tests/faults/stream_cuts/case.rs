//! A recorded stream, the places where it is cut, and what must come of each.

use std::{collections::BTreeSet, fs, path::Path};

use bytes::Bytes;
use ennead_runtime::step5_model_call::stream::conformance::conformance_report;
use serde_json::{Value, json};

/// Where the streams lie.
pub(crate) const STREAMS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/sse_streams");

/// Streams up to this many bytes are cut all over, longer ones at places that are drawn.
const SMALL: usize = 8 * 1024;

/// Of the bytes at which no line, character or escape begins or ends, one in this many is cut at.
const EVERY: usize = 5;

/// The same with [`BOTH`] set.
const SMALL_IN_FULL: usize = 16 * 1024;

/// Places where a longer one is cut.
pub(crate) const CUTS_OF_LARGE: usize = 200;

/// Set in the environment, every byte is cut at with both endings, of longer streams too. That takes
/// about ten times as long, and is for builds that are optimised.
const BOTH: &str = "ENNEAD_CUT_BOTH_WAYS";

pub(crate) fn cuts_both_ways() -> bool {
    std::env::var_os(BOTH).is_some()
}

/// The answer to the one that asks again after a stream without a message.
pub(crate) const RECOVERED: &str = "Recovered.";

/// The answer to results of tools.
pub(crate) const DONE: &str = "Done.";

/// How a connection ends at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should, only too early. The next answer is the whole message of the stream.
    Proper,
    /// By a reset. The next answer is another one, without tools.
    Reset,
}

/// A place to cut at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamCut {
    pub(crate) at: usize,
    pub(crate) ending: Ending,
}

/// A recorded stream.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
    /// The first byte after which its outcome may be known, and the first after which it must.
    complete_at: Option<(usize, usize)>,
    /// Its message as an answer in one piece.
    pub(crate) whole: Option<Value>,
    executable_tools: Vec<String>,
}

/// What a run must have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedScreen {
    /// The content of the answers that count, in order.
    pub(crate) answers: Vec<Value>,
    /// Calls that were run.
    pub(crate) ran: Vec<String>,
    pub(crate) n_withdrawn: usize,
    pub(crate) n_requests: u64,
}

impl Case {
    pub(crate) fn read(name: &str) -> Self {
        let file = |ending: &str| {
            let path = Path::new(STREAMS).join(format!("{name}.{ending}"));
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let bytes = file("sse");
        let expected: Value = serde_json::from_slice(&file("expected.json")).unwrap();
        let place = |at: usize| expected["complete_at"][at].as_u64().map(|it| it as usize);
        // The long texts are known to the expectations by their digests only.
        let report = conformance_report([&bytes[..]]);
        assert_eq!(report["outcome"], expected["outcome"], "{name}");
        assert_eq!(report["executable_tools"], expected["executable_tools"], "{name}");
        let whole = report.get("message").cloned().map(|mut message| {
            message["type"] = "message".into();
            message
        });
        let calls = expected["executable_tools"].as_array().unwrap();
        Self {
            name: name.to_owned(),
            complete_at: place(0).zip(place(1)),
            whole,
            executable_tools: calls.iter().map(|it| it.as_str().unwrap().to_owned()).collect(),
            bytes: bytes.into(),
        }
    }

    pub(crate) fn is_large(&self) -> bool {
        let small = if cuts_both_ways() { SMALL_IN_FULL } else { SMALL };
        small < self.bytes.len()
    }

    /// Next to every line end, within every escape and every character of several bytes, and at one in
    /// [`EVERY`] of the other bytes; of a large stream this many places drawn from a fixed seed. The two
    /// endings take turns. With [`BOTH`] set, every byte has both.
    pub(crate) fn cuts(&self) -> Vec<StreamCut> {
        let (n, both) = (self.bytes.len(), cuts_both_ways());
        let places: Vec<usize> = if self.is_large() {
            let mut drawn = BTreeSet::new();
            let places = draws(0x5EED).map(|it| (it % (n as u64 + 1)) as usize);
            places.filter(|it| drawn.insert(*it)).take(CUTS_OF_LARGE).collect()
        } else {
            (0..=n).filter(|at| both || at % EVERY == 0 || self.is_edge(*at)).collect()
        };
        let endings = [Ending::Proper, Ending::Reset];
        let cuts = places.into_iter().flat_map(|at| endings.map(|ending| StreamCut { at, ending }));
        (0..).zip(cuts).filter(|(i, _)| both || matches!(i % 4, 0 | 3)).map(|it| it.1).collect()
    }

    /// Whether a line, an escape or a character of several bytes begins, ends or goes on at a place.
    fn is_edge(&self, at: usize) -> bool {
        let is_end = |it: &u8| matches!(it, b'\r' | b'\n');
        let around = &self.bytes[at.saturating_sub(1)..self.bytes.len().min(at + 1)];
        // The longest escape is `\u` and four digits.
        let before = &self.bytes[at.saturating_sub(5)..at];
        around.iter().any(|it| is_end(it) || !it.is_ascii()) || before.contains(&b'\\')
    }

    /// What may come of a cut: one thing, or two where the stream leaves it open.
    pub(crate) fn expected(&self, cut: StreamCut) -> Vec<ExpectedScreen> {
        let Some((first, last)) = self.complete_at else { return vec![self.unfinished(cut)] };
        match cut.at {
            at if at < first => vec![self.unfinished(cut)],
            at if at < last => vec![self.unfinished(cut), self.finished()],
            _ => vec![self.finished()],
        }
    }

    /// The whole stream came.
    fn finished(&self) -> ExpectedScreen {
        match &self.whole {
            Some(whole) => self.answered(whole),
            // An error of the provider.
            None => recovered(2),
        }
    }

    fn unfinished(&self, cut: StreamCut) -> ExpectedScreen {
        match (&self.whole, cut.ending) {
            (Some(whole), Ending::Proper) => {
                let then = self.answered(whole);
                ExpectedScreen {
                    n_withdrawn: then.n_withdrawn + 1,
                    n_requests: then.n_requests + 1,
                    ..then
                }
            }
            _ => recovered(2),
        }
    }

    /// The message of the stream is the answer.
    fn answered(&self, whole: &Value) -> ExpectedScreen {
        let content_of_whole = content(whole);
        match whole["stop_reason"].as_str().unwrap() {
            // More room is asked for, and got.
            "max_tokens" => recovered(2),
            "tool_use" => ExpectedScreen {
                answers: vec![content_of_whole, text(DONE)],
                ran: self.executable_tools.clone(),
                n_withdrawn: 0,
                n_requests: 2,
            },
            _ => ExpectedScreen {
                answers: vec![content_of_whole],
                ran: Vec::new(),
                n_withdrawn: 0,
                n_requests: 1,
            },
        }
    }

    /// The message as it is sent in one piece. An input that was not JSON in the stream is not an object
    /// there either.
    pub(crate) fn body(&self) -> Option<Vec<u8>> {
        let mut whole = self.whole.clone()?;
        for block in whole["content"].as_array_mut().unwrap() {
            if block.as_object_mut().unwrap().remove("input_error").is_some() {
                block["input"] = "no object".into();
            }
        }
        Some(whole.to_string().into_bytes())
    }
}

fn recovered(n_requests: u64) -> ExpectedScreen {
    ExpectedScreen { answers: vec![text(RECOVERED)], ran: Vec::new(), n_withdrawn: 1, n_requests }
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// The content of a message as a transcript keeps it.
fn content(whole: &Value) -> Value {
    let mut content = whole["content"].clone();
    for block in content.as_array_mut().unwrap() {
        if block.as_object_mut().unwrap().remove("input_error").is_some() {
            block["input"] = json!({});
        }
    }
    content
}

/// SplitMix64.
fn draws(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}
