//! What the model reads of a result.

use serde_json::Value;

use crate::tool::{ToolErrorKind, ToolOutcome};

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// In the server's order.
    pub content: Vec<Content>,
    /// The structured result, if there is one.
    pub structured: Option<Value>,
    /// The server says that it failed.
    pub is_error: bool,
}

/// A piece of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text for the model.
    Text(String),
    /// Something that is not shown: an image, a sound, bytes.
    Binary {
        /// What it is: `image/png`.
        mime: String,
        /// Characters of its base64.
        chars: usize,
    },
    /// The name of something that can be read.
    Link {
        /// Address of the resource.
        uri: String,
        /// What it is called.
        name: String,
    },
    /// A text with its name.
    Resource {
        /// Where it is from.
        uri: String,
        /// Text of the resource.
        text: String,
    },
}

impl CallResult {
    /// How the call ended. The text is whole.
    pub fn outcome(&self) -> ToolOutcome {
        let mut parts: Vec<String> = self.content.iter().map(Content::shown).collect();
        if let (true, Some(structured)) = (parts.is_empty(), &self.structured) {
            parts.push(structured.to_string());
        }
        let text = parts.join("\n");
        let outcome = match self.is_error {
            true => ToolOutcome::failed(ToolErrorKind::Failed, text),
            false => ToolOutcome::ok(text),
        };
        match &self.structured {
            Some(structured) => outcome.with_structured(structured),
            None => outcome,
        }
    }
}

impl Content {
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Binary { mime, chars } => {
                // Four characters represent three bytes.
                format!("[{mime}, about {} bytes, is not shown]", chars / 4 * 3)
            }
            Self::Link { uri, name } => format!("[{name}]({uri})"),
            Self::Resource { uri, text } => format!("[{uri}]\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(content: Vec<Content>, structured: Option<Value>, text: &str) {
        let outcome = CallResult { content, structured, is_error: false }.outcome();
        assert_eq!((outcome.text.as_str(), outcome.error), (text, None));
    }
    #[test]
    fn what_the_server_calls_an_error_is_one() {
        let content = vec![Content::Text("boom".into())];
        let outcome = CallResult { content, structured: None, is_error: true }.outcome();
        assert_eq!((outcome.text.as_str(), outcome.error), ("boom", Some(ToolErrorKind::Failed)));
    }

    #[test]
    fn pieces_stand_below_each_other_and_what_cannot_be_shown_is_named() {
        check(
            vec![
                Content::Text("a".into()),
                Content::Binary { mime: "image/png".into(), chars: 400 },
                Content::Link { uri: "file:///x".into(), name: "x".into() },
                Content::Resource { uri: "u:1".into(), text: "t".into() },
            ],
            None,
            "a\n[image/png, about 300 bytes, is not shown]\n[x](file:///x)\n[u:1]\nt",
        );
        check(vec![], None, "(no output)");
        check(vec![], Some(json!({"n": 1})), r#"{"n":1}"#);
        check(vec![Content::Text("said".into())], Some(json!({"n": 1})), "said");
    }
}
