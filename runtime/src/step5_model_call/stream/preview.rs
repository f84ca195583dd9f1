//! Previews of a tool input while it still arrives.
//!
//! Partial JSON is completed only where that needs no guess: after a whole value. A scanner
//! remembers the last such place and how many brackets are open there, so nothing is read twice. The
//! input is what a model or server sends, so work is bounded: one step per byte, and previews that
//! together are a few times as long as the input.

use memchr::memchr2;
use serde_json::value::RawValue;

/// Longest preview, in bytes. A longer input is shown when it is whole.
const MAX_PREVIEW_BYTES: usize = 64 * 1024;

/// Brackets that may be open at once; serde_json reads 127. A deeper input cannot be read later
/// either, so it has no preview.
const MAX_DEPTH: usize = 127;

/// Up to this length, in bytes, there is a preview after each whole value. A longer one is shown
/// again when an eighth was added, so that all previews together have at most nine times the bytes of
/// the last one.
const SHOWN_AT_ONCE: usize = 512;

/// Where in the input a preview can end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preview {
    scanned: usize,
    in_string: bool,
    escaped: bool,
    /// Closing brackets still to come, outermost first; at most [`MAX_DEPTH`].
    open: Vec<u8>,
    /// The last place after a whole value, and how many of `open` were open there. Between two such
    /// places brackets are only opened, so those that were open there are still the first of `open`.
    cut: usize,
    open_at_cut: usize,
    shown: usize,
    /// The text is not a JSON object, too deep or too long: no more previews.
    given_up: bool,
}

impl Preview {
    /// Reads what was added to `input` since the last call.
    pub(crate) fn advance(&mut self, input: &str) {
        let bytes = input.as_bytes();
        while !self.given_up && self.scanned < bytes.len() {
            if self.in_string {
                self.skip_string(bytes);
                continue;
            }
            let at = self.scanned;
            self.scanned += 1;
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' => self.open(b'}'),
                b'[' => self.open(b']'),
                b'}' | b']' => {
                    self.open.pop();
                    self.cut_at(at + 1);
                }
                b',' => self.cut_at(at),
                _ => {}
            }
        }
    }

    /// Returns the preview; `None` unless there is enough more to show than last time.
    pub(crate) fn take(&mut self, input: &str) -> Option<String> {
        let is_due = self.shown < SHOWN_AT_ONCE || self.shown / 8 <= self.cut - self.shown;
        if is_due { self.take_last(input) } else { None }
    }

    /// Returns the preview; `None` unless there is anything more to show than last time.
    pub(crate) fn take_last(&mut self, input: &str) -> Option<String> {
        if self.given_up || self.cut <= self.shown {
            return None;
        }
        let closing = self.open.get(..self.open_at_cut)?;
        let mut preview = String::with_capacity(self.cut + closing.len());
        preview.push_str(input.get(..self.cut)?);
        preview.extend(closing.iter().rev().map(|it| char::from(*it)));
        self.shown = self.cut;
        let is_object = preview.trim_start().starts_with('{')
            && serde_json::from_str::<&RawValue>(&preview).is_ok();
        self.given_up = !is_object;
        is_object.then_some(preview)
    }

    fn open(&mut self, closing: u8) {
        self.given_up = MAX_DEPTH <= self.open.len();
        self.open.push(closing);
    }

    fn cut_at(&mut self, at: usize) {
        self.cut = at;
        self.open_at_cut = self.open.len();
        self.given_up = MAX_PREVIEW_BYTES < at;
    }

    fn skip_string(&mut self, bytes: &[u8]) {
        if self.escaped {
            self.escaped = false;
            self.scanned += 1;
            return;
        }
        match memchr2(b'"', b'\\', &bytes[self.scanned..]) {
            None => self.scanned = bytes.len(),
            Some(i) => {
                self.in_string = bytes[self.scanned + i] == b'\\';
                self.escaped = self.in_string;
                self.scanned += i + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The previews when `input` arrives in `pieces`.
    fn previews(pieces: &[&str]) -> Vec<String> {
        let mut preview = Preview::default();
        let mut input = String::new();
        let mut shown = Vec::new();
        for piece in pieces {
            input.push_str(piece);
            preview.advance(&input);
            shown.extend(preview.take(&input));
        }
        shown
    }

    // REQ: MDL-2
    #[test]
    fn preview_ends_behind_a_whole_value() {
        assert_eq!(
            previews(&[r#"{"a":"x,"#, r#"y","b":[1,"#, r#"2"#, r#"],"c":{"d":"\""#, r#""}}"#]),
            [
                r#"{"a":"x,y","b":[1]}"#,
                r#"{"a":"x,y","b":[1,2]}"#,
                r#"{"a":"x,y","b":[1,2],"c":{"d":"\""}}"#
            ]
        );
    }

    // REQ: MDL-2
    #[test]
    fn every_preview_is_a_json_object_wherever_the_input_is_cut() {
        let input = r#" {"a": [ {"b": "\\\"]},"}, [], {} ], "é": -1.5e3, "z": null}"#;
        let cuts: Vec<&str> = input.split_inclusive(|_| true).collect();
        let shown = previews(&cuts);
        assert!(4 < shown.len());
        for preview in &shown {
            assert!(serde_json::from_str::<serde_json::Value>(preview).unwrap().is_object());
        }
        assert_eq!(shown.last().map(String::as_str), Some(input));
    }

    // REQ: MDL-2
    #[test]
    fn broken_and_foreign_inputs_have_no_preview() {
        assert_eq!(previews(&["[1,2]"]), Vec::<String>::new());
        assert_eq!(previews(&[r#"{"a":,"b":1}"#]), Vec::<String>::new());
        assert_eq!(previews(&["}}}", "]"]), Vec::<String>::new());
    }

    // REQ: MDL-2
    #[test]
    fn what_is_too_deep_to_be_read_has_no_preview_and_is_not_scanned_to_its_end() {
        let nested = |depth: usize| {
            format!(r#"{{"a":{}{},"b":1}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1))
        };
        assert_eq!(previews(&[&nested(MAX_DEPTH)]), [nested(MAX_DEPTH)]);
        assert_eq!(previews(&[&nested(MAX_DEPTH + 1)]), Vec::<String>::new());
        let deep = nested(300_000);
        let mut preview = Preview::default();
        preview.advance(&deep);
        assert!(preview.scanned <= MAX_DEPTH + 6 && preview.open.len() <= MAX_DEPTH + 1);
    }

    // REQ: MDL-2
    #[test]
    fn all_previews_together_are_a_few_times_as_long_as_the_input() {
        let input = format!(r#"{{"a":[{}0]}}"#, "1,".repeat(30_000));
        let pieces: Vec<&str> = input.split_inclusive(',').collect();
        let shown: usize = previews(&pieces).iter().map(String::len).sum();
        let early = SHOWN_AT_ONCE * SHOWN_AT_ONCE;
        assert!(input.len() <= shown && shown <= early + 9 * input.len(), "{shown}");
    }

    // REQ: MDL-2
    #[test]
    fn the_last_preview_is_the_whole_input_however_little_was_added() {
        let long = format!(r#"{{"a":"{}","b":1"#, "x".repeat(2_000));
        let (mut preview, whole) = (Preview::default(), format!("{long}}}"));
        let first = format!("{long},");
        preview.advance(&first);
        assert_eq!(preview.take(&first), Some(whole));
        let all = format!(r#"{first}"c":2}}"#);
        preview.advance(&all);
        assert_eq!((preview.take(&all), preview.take_last(&all)), (None, Some(all.clone())));
    }

    // REQ: MDL-2
    #[test]
    fn a_long_input_is_not_copied_again_and_again() {
        let long = format!(r#"{{"a":"{}","b":1,"#, "x".repeat(MAX_PREVIEW_BYTES));
        assert_eq!(previews(&[r#"{"z":0,"#, &long[1..], r#""c":1}"#]), [r#"{"z":0}"#]);
    }
}
