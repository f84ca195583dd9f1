//! The calls of an answer: their ids, and their arguments while they arrive.
//!
//! Alone because ids need care. The history pairs calls and results by them, over the whole
//! conversation and whoever is asked next, and many servers that copy this format do not make them
//! so.

use std::collections::BTreeSet;

use crate::{
    block::Block,
    digest::Digest,
    ids::{ToolName, ToolUseId},
    step5_model_call::{
        InvalidInput,
        stream::{
            Batch, Preview, StreamDelta,
            block_builder::{check_input, single_line},
        },
    },
};

/// Characters of an id that every provider takes back.
pub(crate) const MAX_ID_CHARS: usize = 64;

/// A call while its arguments arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: ToolUseId,
    /// Empty until the server says it.
    pub(crate) name: String,
    pub(crate) arguments: String,
    preview: Preview,
}

impl Call {
    pub(crate) fn new(id: ToolUseId, name: &str) -> Self {
        Self { id, name: name.into(), arguments: String::new(), preview: Preview::default() }
    }

    /// Shows the arguments, if there is more to show than last time.
    pub(crate) fn show(&mut self, out: &mut Batch<'_>) {
        if self.name.is_empty() {
            return;
        }
        self.preview.advance(&self.arguments);
        if let Some(preview) = self.preview.take(&self.arguments) {
            let (id, name) = (self.id.clone(), ToolName::from(self.name.as_str()));
            out.deltas.push(StreamDelta::ToolInput { id, name, preview });
        }
    }

    /// Whether the arguments are a whole object already.
    pub(crate) fn is_whole(&self) -> bool {
        self.arguments.trim_end().ends_with('}') && check_input(&self.arguments).is_ok()
    }

    /// The block; arguments that cannot be used are noted and replaced by an empty object.
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
pub(crate) struct Ids {
    request: Digest,
    given: BTreeSet<String>,
    n: usize,
}

impl Ids {
    pub(crate) fn new(request: Digest) -> Self {
        Self { request, given: BTreeSet::new(), n: 0 }
    }

    pub(crate) fn next(&mut self, said: Option<&str>) -> ToolUseId {
        let n = self.n;
        self.n += 1;
        let said = said.filter(|it| is_reliable(it) && !self.given.contains(*it));
        let id = said.map_or_else(|| ToolUseId::made_up(self.request, n), ToolUseId::from);
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
        let mut ids = Ids::new(Digest::of(b"request"));
        let mut next = |said| ids.next(said).as_str().to_owned();
        assert_eq!(next(Some("call_a1B2c3")), "call_a1B2c3");
        let twice = next(Some("call_a1B2c3"));
        let made = [None, Some(""), Some("call_0"), Some("12"), Some("functions.Read:0")].map(next);
        let all: BTreeSet<&String> = made.iter().chain([&twice]).collect();
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all.iter().all(|it| it.starts_with("call_") && it.len() == 29));
        let mut again = Ids::new(Digest::of(b"request"));
        assert_eq!(again.next(None).as_str(), Ids::new(Digest::of(b"request")).next(None).as_str());
        assert_ne!(again.next(None), Ids::new(Digest::of(b"other")).next(None));
    }

    // REQ: MDL-1
    #[test]
    fn arguments_are_an_object_or_named_as_invalid() {
        let check = |arguments: &str, input: &str, why: Option<InvalidInput>| {
            let mut call = Call::new("t".into(), "n");
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
