//! What listeners are shown of an answer while it arrives, without its secrets.
//!
//! Text is held back as long as it may yet be part of a secret. What is held when a stream breaks is
//! never shown: the answer is withdrawn.

use std::collections::BTreeMap;

use ennead_runtime::{
    redaction::{RedactionStream, Redactor},
    step5_model_call::stream::StreamDelta,
};
use serde_json::Value;

/// The members of a delta of which texts are made, over all its kinds.
const PIECES: [&str; 3] = ["text", "thinking", "partial_json"];

/// Bytes of what no listener received that are kept at least: no secret is longer (`MAX_SPAN` in
/// `redaction/scan.rs` of `runtime`), so what comes next can only be the rest of one that began in them.
const MAX_SECRET: usize = 64 * 1024;

/// The deltas of one answer.
#[derive(Debug)]
pub(super) struct ShownDeltas {
    redactor: Redactor,
    text: RedactionStream,
    reasoning: RedactionStream,
    /// The blocks of the events, by index: their text so far, and the last event that added to it.
    blocks: BTreeMap<u64, (RedactionStream, Value)>,
    /// The end of what came while there was no listener: at most twice `MAX_SECRET` and one delta. One who comes
    /// later is shown no part of a secret that began in it.
    held: Vec<StreamDelta>,
    /// Number of bytes of text in `held`.
    n_held: usize,
}

impl ShownDeltas {
    pub(super) fn new(redactor: &Redactor) -> Self {
        let (text, reasoning) = (redactor.stream(), redactor.stream());
        Self {
            redactor: redactor.clone(),
            text,
            reasoning,
            blocks: BTreeMap::new(),
            held: Vec::new(),
            n_held: 0,
        }
    }

    /// Keeps what is shown to no listener.
    pub(super) fn hold(&mut self, deltas: &mut Vec<StreamDelta>) {
        for delta in deltas.drain(..) {
            self.n_held += n_bytes(&delta);
            match (self.held.last_mut(), delta) {
                (Some(StreamDelta::Text(held)), StreamDelta::Text(text))
                | (Some(StreamDelta::Reasoning(held)), StreamDelta::Reasoning(text)) => {
                    held.push_str(&text);
                }
                (_, delta) => self.held.push(delta),
            }
        }
        if 2 * MAX_SECRET < self.n_held {
            self.drop_early();
        }
    }

    /// Drops of what is held all that lies before the last `MAX_SECRET` bytes.
    fn drop_early(&mut self) {
        let mut excess = self.n_held - MAX_SECRET;
        self.held.retain_mut(|delta| {
            let n = n_bytes(delta);
            if 0 < excess && n <= excess {
                excess -= n;
                return false;
            }
            if let StreamDelta::Text(text) | StreamDelta::Reasoning(text) = delta {
                text.drain(..text.floor_char_boundary(excess));
            }
            excess = 0;
            true
        });
        self.n_held = self.held.iter().map(n_bytes).sum();
    }

    /// Returns what can be shown of these deltas and those before.
    pub(super) fn take(&mut self, deltas: &mut Vec<StreamDelta>) -> Vec<StreamDelta> {
        let mut held = std::mem::take(&mut self.held);
        self.n_held = 0;
        if !held.is_empty() {
            let _shown_to_nobody = self.redact_all(&mut held);
        }
        self.redact_all(deltas)
    }

    fn redact_all(&mut self, deltas: &mut Vec<StreamDelta>) -> Vec<StreamDelta> {
        let mut out = Vec::with_capacity(deltas.len());
        for delta in deltas.drain(..) {
            match delta {
                StreamDelta::Text(text) => {
                    self.end_reasoning(&mut out);
                    push(self.text.push(&text), StreamDelta::Text, &mut out);
                }
                StreamDelta::Reasoning(text) => {
                    self.end_text(&mut out);
                    push(self.reasoning.push(&text), StreamDelta::Reasoning, &mut out);
                }
                StreamDelta::ToolInput { id, name, preview } => {
                    out.extend(self.end());
                    let preview = self.preview(&preview);
                    out.push(StreamDelta::ToolInput { id, name, preview });
                }
                StreamDelta::Event(json) => self.event(&json, &mut out),
                StreamDelta::Usage(usage) => out.push(StreamDelta::Usage(usage)),
            }
        }
        out
    }

    /// Ends the answer, which is whole, and returns what is left of it.
    pub(super) fn end(&mut self) -> Vec<StreamDelta> {
        let mut out = Vec::new();
        self.end_reasoning(&mut out);
        self.end_text(&mut out);
        out
    }

    fn end_text(&mut self, out: &mut Vec<StreamDelta>) {
        push(self.text.finish(), StreamDelta::Text, out);
    }

    fn end_reasoning(&mut self, out: &mut Vec<StreamDelta>) {
        push(self.reasoning.finish(), StreamDelta::Reasoning, out);
    }

    /// The input so far, which was completed to valid JSON: without the beginning of a secret at
    /// its end, and completed in the same way.
    fn preview(&self, preview: &str) -> String {
        let written = preview.trim_end_matches(['"', '}', ']']);
        let closing = &preview[written.len()..];
        let mut stream = self.redactor.stream();
        let shown = stream.push(written) + closing;
        match serde_json::from_str::<serde::de::IgnoredAny>(&shown) {
            Ok(_) => self.redactor.json(&shown).into_owned(),
            // The cut went through a name.
            Err(_) => "{}".into(),
        }
    }

    /// An event of the answer as it came. What is held back of a block comes before its end.
    fn event(&mut self, json: &str, out: &mut Vec<StreamDelta>) {
        let event = serde_json::from_str::<Value>(json).unwrap_or_default();
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let index = event.get("index").and_then(Value::as_u64).unwrap_or_default();
        match kind {
            "content_block_delta" => return self.piece(json, index, event, out),
            "content_block_stop" => {
                if let Some((mut stream, last)) = self.blocks.remove(&index) {
                    let rest = stream.finish();
                    if !rest.is_empty() {
                        out.push(StreamDelta::Event(with_piece(last, rest).to_string()));
                    }
                }
            }
            _ => {}
        }
        out.push(StreamDelta::Event(self.redactor.json(json).into_owned()));
    }

    fn piece(&mut self, json: &str, index: u64, event: Value, out: &mut Vec<StreamDelta>) {
        let Some(text) = piece_of(&event).and_then(Value::as_str) else {
            // A signature, or a kind that is not known.
            return out.push(StreamDelta::Event(json.to_owned()));
        };
        let new = || (self.redactor.stream(), Value::Null);
        let (stream, last) = self.blocks.entry(index).or_insert_with(new);
        let shown = stream.push(text);
        if shown == text {
            out.push(StreamDelta::Event(json.to_owned()));
        } else if !shown.is_empty() {
            out.push(StreamDelta::Event(with_piece(event.clone(), shown).to_string()));
        }
        *last = event;
    }
}

/// Bytes of text in a delta.
fn n_bytes(delta: &StreamDelta) -> usize {
    match delta {
        StreamDelta::Text(text) | StreamDelta::Reasoning(text) => text.len(),
        StreamDelta::ToolInput { preview, .. } => preview.len(),
        StreamDelta::Event(json) => json.len(),
        StreamDelta::Usage(_) => 0,
    }
}

/// The text of a delta's event.
fn piece_of(event: &Value) -> Option<&Value> {
    let delta = event.get("delta")?;
    PIECES.iter().find_map(|it| delta.get(*it))
}

/// The event with another text.
fn with_piece(mut event: Value, text: String) -> Value {
    let delta = event.get_mut("delta").and_then(Value::as_object_mut);
    let piece = delta.and_then(|it| {
        let name = PIECES.into_iter().find(|name| it.contains_key(*name))?;
        it.get_mut(name)
    });
    if let Some(piece) = piece {
        *piece = Value::String(text);
    }
    event
}

fn push(text: String, delta: fn(String) -> StreamDelta, out: &mut Vec<StreamDelta>) {
    if !text.is_empty() {
        out.push(delta(text));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::redaction::Redaction;

    const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

    fn shown() -> ShownDeltas {
        ShownDeltas::new(Redaction::default().redactor())
    }

    // REQ: SES-8
    #[test]
    fn secret_that_is_split_over_deltas_is_not_shown() {
        let mut shown = shown();
        let mut deltas: Vec<StreamDelta> =
            format!("a {TOKEN} b").chars().map(|it| StreamDelta::Text(it.into())).collect();
        deltas.push(StreamDelta::Reasoning("then".into()));
        let (mut text, mut order) = (String::new(), Vec::new());
        let all = shown.take(&mut deltas).into_iter().chain(shown.end());
        for delta in all {
            match delta {
                StreamDelta::Text(it) => text += &it,
                other => order.push(other),
            }
        }
        assert_eq!(text, "a [secret:github-token:1] b");
        assert_eq!(order.len(), 1);
    }

    // REQ: SES-8
    #[test]
    fn one_who_listens_from_the_middle_of_a_secret_is_shown_none_of_it() {
        let mut shown = shown();
        let of = |text: &str| vec![StreamDelta::Text(text.into())];
        shown.hold(&mut of("a g"));
        shown.hold(&mut of(&TOKEN[1..20]));
        let seen = shown.take(&mut of(&format!("{} !", &TOKEN[20..])));
        assert_eq!(seen, [StreamDelta::Text("[secret:github-token:1] !".into())]);
    }

    // REQ: SES-8
    #[test]
    fn of_what_nobody_hears_only_the_end_is_kept_and_it_still_hides_a_secret() {
        let (mut shown, long) = (shown(), "é".repeat(MAX_SECRET / 3));
        let of = |text: &str| vec![StreamDelta::Text(text.into())];
        for _ in 0..50 {
            shown.hold(&mut of(&long));
            shown.hold(&mut vec![StreamDelta::Event(format!("\"{long}\""))]);
            assert!(shown.n_held <= 2 * MAX_SECRET, "{} bytes are held", shown.n_held);
        }
        shown.hold(&mut of(&format!("a {}", &TOKEN[..20])));
        let seen = shown.take(&mut of(&format!("{} !", &TOKEN[20..])));
        assert_eq!(seen, [StreamDelta::Text("[secret:github-token:1] !".into())]);
        assert_eq!(shown.n_held, 0);
    }

    // REQ: SES-8
    #[test]
    fn preview_of_an_input_ends_before_the_beginning_of_a_secret() {
        let shown = shown();
        let check = |preview: &str, expected: &str| assert_eq!(shown.preview(preview), expected);
        check(r#"{"a":"x ghp_abcdef"}"#, r#"{"a":"x "}"#);
        check(r#"{"a":["x","ghost"]}"#, r#"{"a":["x","ghost"]}"#);
        check(
            &format!(r#"{{"a":"{TOKEN}","b":"c"}}"#),
            r#"{"a":"[secret:github-token:1]","b":"c"}"#,
        );
        check("{}", "{}");
    }

    // REQ: SES-8
    #[test]
    fn events_as_they_came_show_no_secret_and_lose_no_text() {
        let mut shown = shown();
        let delta = |text: &str| {
            let delta = json!({"type": "text_delta", "text": text});
            let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            StreamDelta::Event(event.to_string())
        };
        let stop = json!({"type": "content_block_stop", "index": 0}).to_string();
        let mut deltas = vec![delta("a g"), delta(&TOKEN[1..20]), delta(&TOKEN[20..])];
        deltas.extend([delta(" gh"), StreamDelta::Event(stop.clone())]);
        let events: Vec<String> = shown
            .take(&mut deltas)
            .into_iter()
            .map(|it| match it {
                StreamDelta::Event(json) => json,
                other => panic!("{other:?}"),
            })
            .collect();
        let read = |it: &String| serde_json::from_str::<Value>(it).unwrap();
        let text: String = events
            .iter()
            .filter_map(|it| Some(piece_of(&read(it))?.as_str()?.to_owned()))
            .collect();
        assert_eq!(text, "a [secret:github-token:1] gh");
        assert_eq!(events.last(), Some(&stop));
    }
}
