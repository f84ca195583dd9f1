//! Results of tools, one way for every consumer (OUT-4).

use std::sync::Arc;

use serde::Serialize;

use crate::ids::{ToolName, ToolUseId};

/// What a tool gave, as a channel gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// Id of the tool use, as the model issued it.
    pub call: ToolUseId,
    /// Name of the tool that the call uses.
    pub tool: ToolName,
    /// Whether the call failed.
    pub is_error: bool,
    /// What the model reads of it, from its beginning.
    pub text: Arc<str>,
    /// Characters left out at the end; 0: it is all there.
    pub elided_chars: usize,
}

impl ToolResult {
    /// Returns whether something was left out.
    pub fn is_truncated(&self) -> bool {
        0 < self.elided_chars
    }
}

/// Makes the result that all readers get of a tool's text. It keeps this many characters at most; the text is shared
/// when nothing is cut. It is data: no tags are taken out of it.
pub(crate) fn on_tool_result(
    call: &ToolUseId,
    tool: &ToolName,
    is_error: bool,
    text: &Arc<str>,
    max_chars: usize,
) -> ToolResult {
    let end = super::chunking::cut_at(text, max_chars);
    let (text, elided_chars) = match text[end..].chars().count() {
        0 => (Arc::clone(text), 0),
        elided => (text[..end].into(), elided),
    };
    ToolResult { call: call.clone(), tool: tool.clone(), is_error, text, elided_chars }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: OUT-4
    #[test]
    fn long_result_is_cut_between_characters_and_says_by_how_much() {
        for (text, max_chars, kept, elided) in [
            ("", 3, "", 0),
            ("abc", 3, "abc", 0),
            ("abcd", 3, "abc", 1),
            ("äöüß", 2, "äö", 2),
            ("ae\u{301}b", 2, "a", 3),
            ("<think>a</think>", 99, "<think>a</think>", 0),
            ("abc", 0, "", 3),
        ] {
            let (call, tool) = ("c".into(), "Read".into());
            let found = on_tool_result(&call, &tool, true, &text.into(), max_chars);
            assert_eq!((&*found.text, found.elided_chars), (kept, elided), "{text:?} {max_chars}");
            assert_eq!((found.call, found.tool, found.is_error), (call, tool, true));
        }
    }
}
