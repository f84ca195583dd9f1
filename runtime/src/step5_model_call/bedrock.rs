//! Reads the answers of the older Bedrock: frames of AWS around the events of the Messages API.
//!
//! Only the wrapping differs. What is inside goes to the same reader as a stream of
//! server-sent events; errors in Bedrock's own form are turned into theirs.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::{
    stream::wire::WireText,
    stream::{StreamDelta, StreamReader, StreamReport},
};
use crate::block::quote;
use frame::{EventFrame, FrameError, Frames};

pub mod frame;

/// Reads the event stream of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BedrockReader {
    frames: Frames,
    events: StreamReader,
}

impl BedrockReader {
    /// Shows each event as it came, too.
    pub(crate) fn keep_events(&mut self) {
        self.events.keep_events();
    }

    /// Feeds bytes; pushes what can be shown to `out`. Bytes after the outcome are not looked at.
    pub(crate) fn push_chunk(&mut self, bytes: &[u8], out: &mut Vec<StreamDelta>) {
        if self.is_complete() {
            return;
        }
        let mut events = Vec::new();
        let read = self.frames.push_chunk(bytes, |frame| {
            events.extend(event_of(&frame)?);
            Ok(())
        });
        self.events.push_events(events.iter().map(String::as_str), out);
        if let Err(error) = read {
            self.events.break_off(&error.to_string());
        }
    }

    /// Returns the bytes of progress; see [`StreamReader::progress`].
    pub(crate) fn progress(&self) -> usize {
        self.events.progress()
    }

    /// Returns whether the outcome is settled.
    pub(crate) fn is_complete(&self) -> bool {
        self.events.is_complete()
    }

    /// Ends the reader, since the connection has ended or [`BedrockReader::is_complete`].
    pub(crate) fn finish(self) -> StreamReport {
        self.events.finish()
    }
}

/// What a `chunk` holds.
#[derive(Deserialize)]
struct ChunkPayload<'a> {
    #[serde(borrow)]
    bytes: WireText<'a>,
}

/// What an exception says.
#[derive(Deserialize)]
struct ExceptionBody<'a> {
    #[serde(borrow, alias = "Message")]
    message: Option<WireText<'a>>,
}

/// The JSON text of the event in a frame. Frames of unknown kinds hold none.
fn event_of(frame: &EventFrame<'_>) -> Result<Option<String>, FrameError> {
    match (frame.header(":message-type"), frame.header(":event-type")) {
        (Some("event"), Some("chunk")) => {
            let chunk: ChunkPayload<'_> =
                serde_json::from_slice(frame.payload).map_err(|_| FrameError::Payload)?;
            let event =
                STANDARD.decode(chunk.bytes.0.as_bytes()).map_err(|_| FrameError::Payload)?;
            String::from_utf8(event).map(Some).map_err(|_| FrameError::Payload)
        }
        (Some("exception"), _) => {
            let name = frame.header(":exception-type").unwrap_or("exception");
            let body: Option<ExceptionBody<'_>> = serde_json::from_slice(frame.payload).ok();
            let message = body.and_then(|it| it.message);
            Ok(Some(error_event(name, message.as_ref().map_or("", |it| &it.0))))
        }
        (Some("error"), _) => {
            let name = frame.header(":error-code").unwrap_or("error");
            Ok(Some(error_event(name, frame.header(":error-message").unwrap_or(""))))
        }
        _ => Ok(None),
    }
}

/// An error event in the words of the Messages API.
fn error_event(name: &str, message: &str) -> String {
    let kind = error_kind(name);
    let message = if message.is_empty() { name.to_owned() } else { format!("{name}: {message}") };
    let message = quote(&message);
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
}

/// Returns the type of error in the Messages API that an exception of Bedrock is. Names differ in their first letter
/// between streams and responses.
pub(super) fn error_kind(name: &str) -> &'static str {
    match name.to_ascii_lowercase().as_str() {
        "throttlingexception" | "modelnotreadyexception" => "rate_limit_error",
        "serviceunavailableexception" => "overloaded_error",
        "validationexception" | "servicequotaexceededexception" => "invalid_request_error",
        "accessdeniedexception" => "permission_error",
        "unrecognizedclientexception" | "expiredtokenexception" => "authentication_error",
        "resourcenotfoundexception" => "not_found_error",
        "modeltimeoutexception" => "timeout_error",
        _ => "api_error",
    }
}
