//! The formats that the simulated model speaks in addition to the Messages API, so that everything
//! between a session and a socket is used as it is with such servers, too.
//!
//! A playbook knows one kind of request. What comes in another format is put into the form of the
//! Messages API first, refused where the real one would refuse it, and answered in its own.

mod chat;
mod read;
mod responses;

use serde_json::Value as Json;

use super::{
    fields::{self, Refused},
    wire::{AnswerParts, Bytes, error_type, quoted, request_id},
};
use ennead_runtime::digest::Digest;

/// The format of a request and of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    #[default]
    Messages,
    /// The Chat Completions API.
    Chat {
        /// A stream shall end with the usage.
        with_usage: bool,
    },
    Responses,
}

impl Dialect {
    /// Returns the format that is spoken at a path, below any prefix.
    pub(super) fn of(path: &str) -> Option<Self> {
        let ends = |with: &str| path.ends_with(with);
        match () {
            () if ends("/v1/messages") || ends("/v1/messages/count_tokens") => Some(Self::Messages),
            () if ends("/chat/completions") => Some(Self::Chat { with_usage: false }),
            () if ends("/responses") => Some(Self::Responses),
            () => None,
        }
    }

    /// Reads the body as one of the Messages API, and the format with what the body adds to it.
    ///
    /// # Errors
    ///
    /// A field that the API does not know, or content that it does not take.
    pub(super) fn read(self, body: Json, counting: bool) -> Result<(Self, Json), Refused> {
        fields::no_thread(&body)?;
        match self {
            Self::Messages => {
                fields::of_messages(&body, counting)?;
                Ok((self, body))
            }
            Self::Chat { .. } => {
                fields::of_chat(&body)?;
                let with_usage = body["stream_options"]["include_usage"] == true;
                Ok((Self::Chat { with_usage }, read::chat(&body)?))
            }
            Self::Responses => {
                fields::of_responses(&body)?;
                Ok((self, read::responses(&body)?))
            }
        }
    }

    /// Writes an answer, streamed or whole, and its content type.
    pub(super) fn write(self, answer: &AnswerParts<'_>, stream: bool) -> (Bytes, &'static str) {
        let body = match (self, stream) {
            (Self::Messages, true) => answer.stream(),
            (Self::Messages, false) => answer.whole(),
            (Self::Chat { with_usage }, true) => chat::stream(answer, with_usage),
            (Self::Chat { .. }, false) => chat::whole(answer),
            (Self::Responses, true) => responses::stream(answer),
            (Self::Responses, false) => responses::whole(answer),
        };
        let kind = if stream { "text/event-stream; charset=utf-8" } else { "application/json" };
        (body, kind)
    }

    /// Returns the error of a body that is refused.
    pub(super) fn refusal(self, digest: Digest, refused: &Refused) -> String {
        let code = refused.code.map(quoted);
        self.worded(digest, 400, None, &refused.message, (refused.param.as_deref(), code))
    }

    /// Writes an error as the API words it. `kind` may be the name of one as a playbook writes it.
    pub(super) fn error(
        self,
        digest: Digest,
        status: u16,
        kind: Option<&str>,
        text: &str,
    ) -> String {
        let code = kind.filter(|_| self != Self::Messages).map(quoted);
        self.worded(digest, status, kind, text, (None, code))
    }

    /// `param` is the field that is wrong; `code` is JSON. The Messages API has neither, and its errors
    /// have a code only where the simulated model refuses something on its own account.
    fn worded(
        self,
        digest: Digest,
        status: u16,
        kind: Option<&str>,
        text: &str,
        (param, code): (Option<&str>, Option<String>),
    ) -> String {
        let text = quoted(text);
        if self == Self::Messages {
            let kind = quoted(kind.unwrap_or(error_type(status)));
            let code = code.map(|it| format!(r#","code":{it}"#)).unwrap_or_default();
            let id = request_id(digest);
            return format!(
                r#"{{"type":"error","error":{{"type":{kind},"message":{text}{code}}},"request_id":"{id}"}}"#
            );
        }
        let or_null = |it: Option<String>| it.unwrap_or_else(|| "null".to_owned());
        let (param, code) = (or_null(param.map(quoted)), or_null(code));
        let kind = quoted(match status {
            500.. => "server_error",
            429 => "requests",
            _ => "invalid_request_error",
        });
        format!(r#"{{"error":{{"message":{text},"type":{kind},"param":{param},"code":{code}}}}}"#)
    }
}
