//! Keeps a line below the length that programs read.
//!
//! An SDK gives a session up when a line has more than a megabyte of characters, so what is longer is
//! shown cut. The transcript has it whole.

use ennead_runtime::output::terminal::escape_json;
use serde_json::Value;

/// Characters of a line at most. Programs read 1,048,576 unless they are configured otherwise.
pub const MAX_LINE: usize = 1_000_000;

/// Characters that one text may keep, tried one after the other until the line is short enough.
const LIMITS: [usize; 5] = [400_000, 100_000, 20_000, 2_000, 200];

/// Entries of one list or object that are kept where cutting texts is not enough.
const MAX_ENTRIES: usize = 200;

/// Characters of a question at most; the rest of its line is what names it.
const MAX_QUESTION: usize = MAX_LINE - 1_000;

/// Makes the line of a value, with its texts cut where it would be too long. Cost: linear in the value.
pub(crate) fn line_of(mut value: Value) -> String {
    fit(&mut value, MAX_LINE).0
}

/// Returns a question to the program as its line will have it, and whether something was cut.
pub(crate) fn question_of(mut question: Value) -> (Value, bool) {
    let is_cut = fit(&mut question, MAX_QUESTION).1;
    (question, is_cut)
}

/// Cuts a value until its line has at most this many characters; the line, and whether something was cut.
fn fit(value: &mut Value, max: usize) -> (String, bool) {
    if let Some(line) = short_line(value, max) {
        return (line, false);
    }
    for limit in LIMITS {
        cut_texts(value, limit);
        if let Some(line) = short_line(value, max) {
            return (line, true);
        }
    }
    thin_out(value, true);
    (escape_json(&value.to_string()).into_owned(), true)
}

fn short_line(value: &Value, max: usize) -> Option<String> {
    // Never fewer bytes than characters.
    let is_short = |line: &str| line.len() <= max || line.chars().count() <= max;
    // Escapes only make a line longer.
    let line = Some(value.to_string()).filter(|it| is_short(it))?;
    Some(escape_json(&line).into_owned()).filter(|it| is_short(it))
}

fn cut_texts(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) => cut(text, limit),
        Value::Array(entries) => entries.iter_mut().for_each(|it| cut_texts(it, limit)),
        Value::Object(fields) => fields.values_mut().for_each(|it| cut_texts(it, limit)),
        _ => {}
    }
}

fn cut(text: &mut String, limit: usize) {
    let Some((end, _)) = text.char_indices().nth(limit) else { return };
    let n_more = text[end..].chars().count();
    text.truncate(end);
    text.push_str(&format!("… [{n_more} more characters; the transcript has them]"));
}

/// Drops the later entries of long lists, and lists within lists altogether.
fn thin_out(value: &mut Value, is_outer: bool) {
    match value {
        Value::Array(entries) => {
            entries.truncate(if is_outer { MAX_ENTRIES } else { 0 });
            entries.iter_mut().for_each(|it| thin_out(it, false));
        }
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().skip(MAX_ENTRIES).cloned().collect();
            names.iter().for_each(|it| drop(fields.remove(it)));
            fields.values_mut().for_each(|it| thin_out(it, is_outer));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // REQ: SUR-3
    #[test]
    fn line_is_never_longer_than_programs_read_and_keeps_its_small_fields() {
        let long = "é".repeat(3_000_000);
        let many: Vec<Value> =
            (0..50_000).map(|n| json!({"text": "x".repeat(100), "n": n})).collect();
        let escaped = "\u{7f}".repeat(500_000);
        let deep: Vec<Value> = (0..100).map(|_| json!(vec![json!([1, 2, 3]); 20_000])).collect();
        for value in [
            json!({"a": long, "b": long}),
            json!({"a": many}),
            json!({"a": deep}),
            json!({"a": escaped}),
        ] {
            let mut value = value;
            value["session_id"] = "s".into();
            let line = line_of(value);
            assert!(line.chars().count() <= MAX_LINE, "{}", line.chars().count());
            let read: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(read["session_id"], "s");
        }
    }

    // REQ: SUR-3
    #[test]
    fn line_that_is_short_enough_stays_as_it_is() {
        let value = json!({"a": "x".repeat(900_000), "b": [1, 2]});
        assert_eq!(line_of(value.clone()), value.to_string());
    }
}
