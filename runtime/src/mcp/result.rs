//! What the model reads of a result (compat 7.4, 7.5).

use serde_json::Value;

use crate::tool::{ToolErrorKind, ToolOutcome, Truncation};

/// Characters of a text that was too long that the model is shown.
const PREVIEW: usize = 2000;

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
    /// Words.
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
        /// Where.
        uri: String,
        /// What it is called.
        name: String,
    },
    /// A text with its name.
    Resource {
        /// Where it is from.
        uri: String,
        /// What it says.
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
                // Four characters stand for three bytes.
                format!("[{mime}, about {} bytes, is not shown]", chars / 4 * 3)
            }
            Self::Link { uri, name } => format!("[{name}]({uri})"),
            Self::Resource { uri, text } => format!("[{uri}]\n{text}"),
        }
    }
}

/// An outcome whose text is too long for the model, once the text was kept in a file: where it is,
/// and how it begins.
#[must_use]
pub fn kept_in_file(outcome: ToolOutcome, n_chars: usize, path: &str) -> ToolOutcome {
    let head: String = outcome.text.chars().take(PREVIEW).collect();
    let text = format!(
        "The result has {n_chars} characters, too many to show. All of it is in {path}. It \
         begins:\n{head}"
    );
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let truncation = Some(Truncation {
        original_chars: count(n_chars),
        kept_chars: count(head.chars().count()),
        stored_at: Some(path.to_owned()),
    });
    ToolOutcome { text, truncation, ..outcome }
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

    // T7.11
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

    // T7.10
    #[test]
    fn text_that_is_too_long_becomes_a_path_and_its_beginning() {
        let outcome = kept_in_file(ToolOutcome::ok("ä".repeat(200_000)), 200_000, "/t/1.txt");
        assert!(outcome.text.contains("/t/1.txt") && outcome.text.contains("200000"));
        assert!(outcome.text.ends_with(&"ä".repeat(PREVIEW)));
        let truncation = outcome.truncation.unwrap();
        assert_eq!((truncation.original_chars, truncation.kept_chars), (200_000, 2000));
        assert_eq!(truncation.stored_at.as_deref(), Some("/t/1.txt"));
    }
}
