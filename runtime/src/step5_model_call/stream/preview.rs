//! Previews of a tool input while it still arrives.
//!
//! Partial JSON is completed only where that needs no guess: behind a whole value. A scanner
//! remembers the last such place and which brackets are open there, so a preview costs one copy and
//! nothing is read twice.

use memchr::memchr2;
use serde_json::value::RawValue;

/// Longest preview, in bytes. A longer input is shown when it is whole: copying a long prefix at
/// every comma would cost the square of its length.
const MAX_PREVIEW_BYTES: usize = 64 * 1024;

/// Where in the input a preview can end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preview {
    scanned: usize,
    in_string: bool,
    escaped: bool,
    /// Closing brackets still to come, outermost first.
    open: Vec<u8>,
    /// The last place behind a whole value, and what was open there.
    cut: usize,
    open_at_cut: Vec<u8>,
    shown: usize,
    /// The text is no JSON object or too long: no more previews.
    given_up: bool,
}

impl Preview {
    /// Reads what was added to `input` since the last call.
    pub(crate) fn advance(&mut self, input: &str) {
        if self.given_up {
            return;
        }
        let bytes = input.as_bytes();
        while self.scanned < bytes.len() {
            if self.in_string {
                self.skip_string(bytes);
                continue;
            }
            let at = self.scanned;
            self.scanned += 1;
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' => self.open.push(b'}'),
                b'[' => self.open.push(b']'),
                b'}' | b']' => {
                    self.open.pop();
                    self.cut_at(at + 1);
                }
                b',' => self.cut_at(at),
                _ => {}
            }
        }
        self.given_up = MAX_PREVIEW_BYTES < self.cut;
    }

    /// The preview, if there is more to show than last time.
    pub(crate) fn take(&mut self, input: &str) -> Option<String> {
        if self.given_up || self.cut <= self.shown {
            return None;
        }
        let mut preview = String::with_capacity(self.cut + self.open_at_cut.len());
        preview.push_str(input.get(..self.cut)?);
        preview.extend(self.open_at_cut.iter().rev().map(|it| char::from(*it)));
        self.shown = self.cut;
        let is_object = preview.trim_start().starts_with('{')
            && serde_json::from_str::<&RawValue>(&preview).is_ok();
        self.given_up = !is_object;
        is_object.then_some(preview)
    }

    fn cut_at(&mut self, at: usize) {
        self.cut = at;
        self.open_at_cut.clone_from(&self.open);
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
    fn a_long_input_is_not_copied_again_and_again() {
        let long = format!(r#"{{"a":"{}","b":1,"#, "x".repeat(MAX_PREVIEW_BYTES));
        assert_eq!(previews(&[r#"{"z":0,"#, &long[1..], r#""c":1}"#]), [r#"{"z":0}"#]);
    }
}
