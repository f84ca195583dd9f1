//! Whether two records are equal but for the secrets that only the model was shown.
//!
//! The writer takes secrets out of the lines of such a session, so what is walked again holds
//! placeholders where the model had secrets. Requests made of them have other digests and sizes, and
//! estimates of tokens differ by the difference in length. All else is the same.

use serde_json::Value;

use crate::{
    digest::Digest,
    transcript::entry::{Line, RecordKind},
};

/// Members of records that are counted or digested over texts that the model is shown.
const OF_TEXTS: [&str; 14] = [
    "request",
    "request_bytes",
    "sizes",
    "tokens",
    "estimated",
    "remaining",
    "tokens_before",
    "tokens_after",
    "chars",
    "state",
    "why",
    "anchor",
    "head",
    "tail",
];

/// Returns whether the line that is made and the one that is recorded differ only by redaction.
pub(super) fn is_equal(line: &Line, made: &[u8], recorded: &[u8]) -> bool {
    let has_figures = |it: &RecordKind| {
        matches!(
            it,
            RecordKind::ContextAppended { .. }
                | RecordKind::View(_)
                | RecordKind::ShapersPassed { .. }
                | RecordKind::Shaper { .. }
                | RecordKind::ModelAttempt { .. }
                | RecordKind::TurnStep { .. }
        )
    };
    if !line.record().is_some_and(|it| has_figures(&it.what)) {
        return false;
    }
    let read = |body: &[u8]| {
        let object = [body, b"}"].concat();
        serde_json::from_slice::<Value>(&object).ok()
    };
    match (read(made), read(recorded)) {
        (Some(made), Some(recorded)) => same("", &made, &recorded),
        _ => false,
    }
}

/// Compares two members of this name. No deeper than the reader of JSON lets a record be.
fn same(name: &str, made: &Value, recorded: &Value) -> bool {
    match (made, recorded) {
        (Value::Object(made), Value::Object(recorded)) => {
            let is_same = |(name, made): (&String, &Value)| {
                recorded.get(name).is_some_and(|it| same(name, made, it))
            };
            (made.len() == recorded.len() && made.iter().all(is_same))
                || is_same_text(made.get("text"), recorded.get("at"))
                || is_same_text(recorded.get("text"), made.get("at"))
        }
        (Value::Array(made), Value::Array(recorded)) => {
            made.len() == recorded.len()
                && made.iter().zip(recorded).all(|(made, found)| same(name, made, found))
        }
        (Value::Number(_), Value::Number(_)) if OF_TEXTS.contains(&name) => true,
        (Value::String(made), Value::String(found))
            if matches!(name, "why" | "stages" | "shown") =>
        {
            let words = |text: &str| text.replace(|it: char| it.is_ascii_digit(), "");
            words(made) == words(found)
        }
        (Value::String(made), Value::String(found)) if OF_TEXTS.contains(&name) => {
            made == found || (made.parse::<Digest>().is_ok() && found.parse::<Digest>().is_ok())
        }
        (made, recorded) => made == recorded,
    }
}

/// Whether a text inside a record is the one that another names: with its secrets it was too long to
/// be inside.
fn is_same_text(text: Option<&Value>, digest: Option<&Value>) -> bool {
    match (text.and_then(Value::as_str), digest.and_then(Value::as_str)) {
        (Some(text), Some(digest)) => Digest::of(text.as_bytes()).to_string() == digest,
        _ => false,
    }
}
