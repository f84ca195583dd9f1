//! What the model reads of a result.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    picture::picture,
    run::PromptBlock,
    step5_model_call::view::MAX_IMAGE_BYTES,
    tool::{MAX_MEDIA, ToolErrorKind, ToolOutcome},
};

/// Bytes of the texts of a result that are for a program, as much as it reads of a command.
const MAX_TEXTS: usize = 1 << 20;

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// In the server's order.
    pub content: Vec<McpContent>,
    /// The structured result, if there is one.
    pub structured: Option<Value>,
    /// The server says that it failed.
    pub is_error: bool,
}

/// A piece of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpContent {
    /// Text for the model.
    Text(String),
    /// A picture, which the model is shown if its format is one that models read.
    Image {
        /// What the server calls it: `image/png`. What is shown goes by the bytes.
        mime: String,
        /// Its bytes as base64.
        data: String,
    },
    /// Something that is not shown: a sound, bytes.
    Binary {
        /// What it is: `audio/wav`.
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
    /// Returns whether it holds pictures: their bytes are looked at by [`CallResult::outcome`], which takes
    /// milliseconds for large ones.
    pub fn has_images(&self) -> bool {
        self.content.iter().any(|it| matches!(it, McpContent::Image { .. }))
    }

    /// Returns the texts of the result, a line break between them, up to a megabyte; what is not a text is left out.
    ///
    /// # Errors
    ///
    /// The same texts, where the server says that the call failed.
    pub fn texts(&self) -> Result<String, String> {
        let mut texts = String::new();
        for content in &self.content {
            let McpContent::Text(text) = content else { continue };
            if !texts.is_empty() {
                texts.push('\n');
            }
            let left = MAX_TEXTS.saturating_sub(texts.len());
            texts.push_str(&text[..text.floor_char_boundary(left)]);
        }
        if self.is_error { Err(texts) } else { Ok(texts) }
    }

    /// Returns how the call ended. The text is whole; pictures that a model can see come after it.
    pub fn outcome(&self) -> ToolOutcome {
        let mut media = Vec::new();
        let mut parts: Vec<String> =
            self.content.iter().map(|it| it.text_for_model(&mut media)).collect();
        if let (true, Some(structured)) = (parts.is_empty(), &self.structured) {
            parts.push(structured.to_string());
        }
        let text = parts.join("\n");
        let outcome = if self.is_error {
            ToolOutcome::failed(ToolErrorKind::Failed, text)
        } else {
            ToolOutcome::ok(text)
        };
        let outcome = outcome.with_media(media);
        match &self.structured {
            Some(structured) => outcome.with_structured(structured),
            None => outcome,
        }
    }
}

impl McpContent {
    /// What the model reads of it. Adds a picture that it can see to the others.
    fn text_for_model(&self, media: &mut Vec<PromptBlock>) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Image { mime, data } => match shown_image(data, media.len()) {
                Ok((block, text)) => {
                    media.push(block);
                    text
                }
                Err(why) => {
                    format!("[{mime}, about {} bytes, is not shown: {why}]", data.len() / 4 * 3)
                }
            },
            Self::Binary { mime, chars } => {
                // Four characters represent three bytes.
                format!("[{mime}, about {} bytes, is not shown]", chars / 4 * 3)
            }
            Self::Link { uri, name } => format!("[{name}]({uri})"),
            Self::Resource { uri, text } => format!("[{uri}]\n{text}"),
        }
    }
}

/// A picture and its name in the text, where `n_before` of the result are shown already.
fn shown_image(data: &str, n_before: usize) -> Result<(PromptBlock, String), String> {
    if MAX_MEDIA <= n_before {
        return Err(format!("a result shows {MAX_MEDIA} pictures at most"));
    }
    if MAX_IMAGE_BYTES < data.len() {
        return Err("it is too large".into());
    }
    let bytes = STANDARD.decode(data).map_err(|_| "it is not base64".to_owned())?;
    let (block, found) = picture(&bytes).map_err(|it| it.to_string())?;
    Ok((block, found.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(content: Vec<McpContent>, structured: Option<Value>, text: &str) {
        let outcome = CallResult { content, structured, is_error: false }.outcome();
        assert_eq!((outcome.text.as_str(), outcome.error), (text, None));
    }
    #[test]
    fn what_the_server_calls_an_error_is_one() {
        let content = vec![McpContent::Text("boom".into())];
        let outcome = CallResult { content, structured: None, is_error: true }.outcome();
        assert_eq!((outcome.text.as_str(), outcome.error), ("boom", Some(ToolErrorKind::Failed)));
    }

    #[test]
    fn pieces_stand_below_each_other_and_what_cannot_be_shown_is_named() {
        check(
            vec![
                McpContent::Text("a".into()),
                McpContent::Binary { mime: "audio/wav".into(), chars: 400 },
                McpContent::Link { uri: "file:///x".into(), name: "x".into() },
                McpContent::Resource { uri: "u:1".into(), text: "t".into() },
            ],
            None,
            "a\n[audio/wav, about 300 bytes, is not shown]\n[x](file:///x)\n[u:1]\nt",
        );
        check(vec![], None, "(no output)");
        let odd = McpContent::Image { mime: "image/png".into(), data: "QUJD".into() };
        let why = "it is not a PNG, JPEG, GIF or WebP picture";
        check(vec![odd], None, &format!("[image/png, about 3 bytes, is not shown: {why}]"));
        check(vec![], Some(json!({"n": 1})), r#"{"n":1}"#);
        check(vec![McpContent::Text("said".into())], Some(json!({"n": 1})), "said");
    }

    // REQ: TOL-3
    #[test]
    fn pictures_are_shown_as_far_as_a_result_may_have_them() {
        let data = STANDARD.encode(b"GIF89a\x05\0\x00\x01\0\0");
        let image = McpContent::Image { mime: "image/png".into(), data };
        let content = vec![image; MAX_MEDIA + 1];
        let result = CallResult { content, structured: None, is_error: false };
        assert!(result.has_images());
        let outcome = result.outcome();
        assert_eq!(outcome.media.len(), MAX_MEDIA);
        assert!(outcome.text.starts_with("[image/gif, 5 x 256 pixels]\n"), "{}", outcome.text);
        assert!(outcome.text.ends_with("shows 20 pictures at most]"), "{}", outcome.text);
        let block = outcome.to_block(&"id".into());
        assert_eq!(block.media_in_result().len(), MAX_MEDIA);
    }
}
