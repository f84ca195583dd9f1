//! Names by which OpenTelemetry's conventions for generative AI know what the spans are about.
//!
//! The spans of `tracing` have the project's names (`session`, `turn`, `step`, `model_call`, `tool`, `hook`);
//! here sessions become `invoke_agent`, model calls `chat <model>` and tool calls `execute_tool <tool>`, with
//! the attributes that go with these. Everything else stays as it is.

use std::borrow::Cow;

use opentelemetry::{
    Key, KeyValue, Value,
    trace::{SpanKind, Status},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

const OPERATION: &str = "gen_ai.operation.name";

/// An exporter that is given spans by their conventional names.
#[derive(Debug)]
pub(super) struct Conventional<E>(pub(super) E);

impl<E: SpanExporter> SpanExporter for Conventional<E> {
    fn export(
        &self,
        mut batch: Vec<SpanData>,
    ) -> impl std::future::Future<Output = OTelSdkResult> + Send {
        batch.iter_mut().for_each(rename);
        self.0.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: std::time::Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

fn rename(span: &mut SpanData) {
    let operation = match &*span.name {
        "session" => {
            also(span, "session.id", "gen_ai.conversation.id");
            "invoke_agent"
        }
        "model_call" => {
            span.span_kind = SpanKind::Client;
            "chat"
        }
        "tool" => {
            also(span, "tool.name", "gen_ai.tool.name");
            also(span, "tool_use.id", "gen_ai.tool.call.id");
            "execute_tool"
        }
        _ => return,
    };
    let of = match operation {
        "chat" => value(span, "gen_ai.request.model"),
        "execute_tool" => value(span, "gen_ai.tool.name"),
        _ => None,
    };
    span.name = match of {
        Some(of) => format!("{operation} {of}").into(),
        None => Cow::Borrowed(operation),
    };
    if let Some(code) = value(span, "error.type") {
        span.status = Status::error(code.to_string());
    }
    span.attributes.push(KeyValue::new(OPERATION, operation));
}

fn value(span: &SpanData, name: &'static str) -> Option<Value> {
    let name = Key::from_static_str(name);
    span.attributes.iter().find(|it| it.key == name).map(|it| it.value.clone())
}

/// Gives the value of an attribute under a second name.
fn also(span: &mut SpanData, name: &'static str, second: &'static str) {
    if let Some(value) = value(span, name) {
        span.attributes.push(KeyValue::new(second, value));
    }
}

/// Reads the headers of a variable: `name=value` with commas between, values percent-encoded.
pub(super) fn headers(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|it| it.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_lowercase(), decoded(value.trim()))).collect()
}

/// A value whose `%xx` are bytes. What is not text then is taken as it is written.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let byte = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = byte.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-6
    #[test]
    fn headers_are_read_as_the_exporter_documents_them() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let found = headers("Authorization=Bearer%20a%3Db, x-team = red ,nothing,%=100%");
        let expected =
            [pair("authorization", "Bearer a=b"), pair("x-team", "red"), pair("%", "100%")];
        assert_eq!(found, expected);
        assert_eq!(headers("a=%ff%"), [pair("a", "%ff%")]);
        assert_eq!(headers(""), []);
    }
}
