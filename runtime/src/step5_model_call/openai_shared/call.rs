//! The calls of an answer: their ids, and their arguments while they arrive.
//!
//! Ids need care. The history pairs calls and results by them, over the whole conversation and with
//! every model that is asked next, and many servers that copy this format do not make them so.

use std::collections::BTreeSet;

use crate::{
    block::Block,
    digest::Digest,
    ids::{ToolName, ToolUseId},
    step5_model_call::{
        InvalidInput,
        stream::{
            DeltaBatch, Preview, StreamDelta,
            block_builder::{check_input, single_line},
        },
    },
};

/// Characters of an id that every provider takes back.
pub(crate) const MAX_ID_CHARS: usize = 64;

/// A call while its arguments arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartialCall {
    pub(crate) id: ToolUseId,
    /// Empty until the server says it.
    pub(crate) name: String,
    pub(crate) arguments: String,
    preview: Preview,
    end: End,
}

/// Finds where a JSON value ends while it arrives. Each byte is looked at once, however often
/// somebody asks: a server may name the function in every fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct End {
    scanned: usize,
    n_open: usize,
    in_string: bool,
    escaped: bool,
    /// The byte after the value, once it is there, and whether the value is usable.
    found: Option<(usize, bool)>,
}

impl End {
    /// Whether `text`, which only grew since the last call, is one usable object and nothing else.
    fn is_whole(&mut self, text: &str) -> bool {
        while self.found.is_none()
            && let Some(byte) = text.as_bytes().get(self.scanned).copied()
        {
            self.scanned += 1;
            self.read(byte, text);
        }
        self.found.is_some_and(|(end, is_usable)| {
            let rest = text.as_bytes().get(end..).unwrap_or_default();
            is_usable && rest.iter().all(u8::is_ascii_whitespace)
        })
    }

    fn read(&mut self, byte: u8, text: &str) {
        if self.in_string {
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.n_open += 1,
            b'}' | b']' => {
                self.n_open = self.n_open.saturating_sub(1);
                if self.n_open == 0 {
                    let value = text.get(..self.scanned).unwrap_or_default();
                    self.found = Some((self.scanned, check_input(value).is_ok()));
                }
            }
            _ => {}
        }
    }
}

impl PartialCall {
    pub(crate) fn new(id: ToolUseId, name: &str) -> Self {
        let (arguments, preview, end) = (String::new(), Preview::default(), End::default());
        Self { id, name: name.into(), arguments, preview, end }
    }

    /// Shows the arguments, if there is more to show than last time.
    pub(crate) fn show(&mut self, out: &mut DeltaBatch<'_>) {
        if self.name.is_empty() {
            return;
        }
        self.preview.advance(&self.arguments);
        if let Some(preview) = self.preview.take(&self.arguments) {
            let (id, name) = (self.id.clone(), ToolName::from(self.name.as_str()));
            out.deltas.push(StreamDelta::ToolInput { id, name, preview });
        }
    }

    /// Returns whether the arguments are a whole object already.
    pub(crate) fn is_whole(&mut self) -> bool {
        self.end.is_whole(&self.arguments)
    }

    /// Ends the call and returns its block. Arguments that cannot be used are noted and replaced by an empty object.
    pub(crate) fn finish(self, invalid: &mut Vec<(ToolUseId, InvalidInput)>) -> Block {
        let name = ToolName::from(self.name);
        let arguments = match self.arguments.trim() {
            "" => "{}",
            arguments => arguments,
        };
        match check_input(arguments) {
            Ok(()) => Block::tool_use(&self.id, &name, &single_line(arguments)),
            Err(why) => {
                invalid.push((self.id.clone(), why));
                Block::tool_use(&self.id, &name, "{}")
            }
        }
    }
}

/// Gives the calls of one answer their ids.
///
/// A server's own id is kept if it can be relied on. One that is missing, too long, used twice in
/// the answer, holds characters that another provider refuses, or only counts (`call_0`, and `call_0`
/// again in the next answer) is replaced by one made from the request and the place of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallIds {
    request: Digest,
    given: BTreeSet<String>,
    n: usize,
}

impl CallIds {
    pub(crate) fn new(request: Digest) -> Self {
        Self { request, given: BTreeSet::new(), n: 0 }
    }

    pub(crate) fn next(&mut self, given_id: Option<&str>) -> ToolUseId {
        let n = self.n;
        self.n += 1;
        let given_id = given_id.filter(|it| is_reliable(it) && !self.given.contains(*it));
        let id = given_id.map_or_else(|| ToolUseId::made_up(self.request, n), ToolUseId::from);
        self.given.insert(id.as_str().to_owned());
        id
    }
}

fn is_reliable(id: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let number = id.trim_start_matches(|it: char| !it.is_ascii_digit());
    let only_counts =
        (1..=3).contains(&number.len()) && number.chars().all(|it| it.is_ascii_digit());
    !id.is_empty() && id.len() <= MAX_ID_CHARS && id.chars().all(is_plain) && !only_counts
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-8
    #[test]
    fn ids_that_may_come_again_are_replaced() {
        let mut ids = CallIds::new(Digest::of(b"request"));
        let mut next = |given_id| ids.next(given_id).as_str().to_owned();
        assert_eq!(next(Some("call_a1B2c3")), "call_a1B2c3");
        let twice = next(Some("call_a1B2c3"));
        let made = [None, Some(""), Some("call_0"), Some("12"), Some("functions.Read:0")].map(next);
        let all: BTreeSet<&String> = made.iter().chain([&twice]).collect();
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all.iter().all(|it| it.starts_with("call_") && it.len() == 29));
        let mut again = CallIds::new(Digest::of(b"request"));
        assert_eq!(
            again.next(None).as_str(),
            CallIds::new(Digest::of(b"request")).next(None).as_str()
        );
        assert_ne!(again.next(None), CallIds::new(Digest::of(b"other")).next(None));
    }

    // REQ: MDL-1
    #[test]
    fn end_of_an_object_is_found_wherever_it_is_cut_and_each_byte_is_read_once() {
        for (text, expected) in [
            (r#"{"a":"}\""}"#, true),
            (" {\"a\":[{}]} \n", true),
            (r#"{"a":"}"#, false),
            ("{}{}", false),
            ("{x} ", false),
            ("x{}", false),
            ("[1]", false),
            ("}", false),
            ("", false),
        ] {
            let mut end = End::default();
            let all = (0..=text.len()).map(|it| end.is_whole(&text[..it])).last();
            assert_eq!(all, Some(expected), "{text}");
            assert!(end.scanned <= text.len());
        }
        // What comes after the first value is not searched for another end.
        let mut end = End::default();
        let text = "{x}".repeat(10_000);
        assert!(!end.is_whole(&text));
        assert_eq!(end.scanned, 3);
    }

    // REQ: MDL-1
    #[test]
    fn arguments_are_an_object_or_named_as_invalid() {
        let check = |arguments: &str, input: &str, why: Option<InvalidInput>| {
            let mut call = PartialCall::new("t".into(), "n");
            call.arguments = arguments.into();
            let mut invalid = Vec::new();
            let block = call.finish(&mut invalid);
            assert_eq!(block, Block::tool_use(&"t".into(), &"n".into(), input));
            assert_eq!(invalid.first().map(|it| it.1), why, "{arguments}");
        };
        check(r#"{"a":1}"#, r#"{"a":1}"#, None);
        check(" ", "{}", None);
        check("{\n\"a\": 1}", "{ \"a\": 1}", None);
        check(r#"{"a":"#, "{}", Some(InvalidInput::InvalidJson));
        check("[1]", "{}", Some(InvalidInput::NotAnObject));
    }
}
