//! WebFetch: a page from the web, and what a fast model answers about it.
//!
//! The tool fetches; that a model is asked about the page follows from its note (`ToolNote::PageFetched`).

use std::sync::Arc;

use ennead_runtime::{
    ports::{
        ToolContext,
        web::{FetchError, Fetched, FetchedPage},
    },
    tool::{
        Access, Concurrency, ToolEffect, ToolErrorKind, ToolOutcome, ToolSpec, web_page::WebPage,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    built_in::{BuiltIn, BuiltInCall},
    declared::millis,
};

/// Milliseconds that a page may take, redirects included.
const TIMEOUT_MS: u64 = 60_000;

/// Calls that run side by side.
const MAX_TOGETHER: u32 = 3;

/// The tool that fetches a page and has a question about it answered.
pub(crate) struct WebFetch;

/// Input of the tool `WebFetch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuestion {
    /// The address of the page, with its scheme.
    url: String,
    /// What to find out from the page.
    prompt: String,
}

impl BuiltIn for WebFetch {
    type Input = PageQuestion;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "WebFetch",
            "Fetches a page from the web and answers a question about it. The page is read as Markdown by a small fast \
                model, and the result is what that answers to `prompt`: so ask for all that is needed, quotations \
                included. http becomes https. A redirect to another host is not followed: the result names the \
                address, which can be fetched with another call. Pages are kept for 15 minutes. Only what anybody may \
                read can be fetched: nothing is logged in anywhere.",
            input_schema,
        )
        .with_effect(ToolEffect::ReadOnly)
        .with_concurrency(Concurrency::Together { max: MAX_TOGETHER })
        .with_access(Access::Ask)
        .with_output_cap(100_000)
        .with_timeout_ms(TIMEOUT_MS)
    }

    async fn call(call: BuiltInCall<PageQuestion>, context: ToolContext) -> ToolOutcome {
        let PageQuestion { url, prompt } = call.input;
        if prompt.trim().is_empty() {
            return ToolOutcome::failed(ToolErrorKind::InvalidInput, "The prompt is empty.");
        }
        let Some(pages) = context.pages.clone() else {
            let why = "Nothing is fetched from the web here.";
            return ToolOutcome::failed(ToolErrorKind::Failed, why);
        };
        let start = context.clock.elapsed();
        let fetched = pages.fetch(url.clone()).await;
        let duration_ms = millis(context.clock.elapsed().saturating_sub(start));
        match fetched {
            Ok(Fetched::Page(page)) => answerable(page, &prompt, duration_ms),
            Ok(Fetched::Elsewhere { from, to, code, code_text }) => {
                let text = elsewhere(&from, &to, code);
                let structured = json!({
                    "bytes": 0, "code": code, "codeText": code_text, "result": text,
                    "durationMs": duration_ms, "url": from,
                });
                ToolOutcome::ok(text).with_structured(&structured)
            }
            Ok(_) => unreadable("The server answered what this version cannot read."),
            Err(error) => failed(&url, &error),
        }
    }
}

fn answerable(page: FetchedPage, prompt: &str, duration_ms: u64) -> ToolOutcome {
    let FetchedPage { url, text, is_cut, bytes, code, code_text, .. } = page;
    if text.trim().is_empty() {
        return unreadable(&format!("The page {url} has no text ({bytes} bytes)."));
    }
    let mut page = WebPage::new(url, prompt, text);
    (page.is_cut, page.bytes, page.code, page.code_text) = (is_cut, bytes, code, code_text);
    page.duration_ms = duration_ms;
    page.outcome()
}

/// The words about a redirect that is not followed.
fn elsewhere(from: &str, to: &str, code: u16) -> String {
    format!(
        "The page redirects to another host, which was not asked.\n\nFrom: {from}\nTo: {to}\nStatus: {code}\n\nTo fetch \
         it, call WebFetch with that address and the same prompt."
    )
}

fn unreadable(why: &str) -> ToolOutcome {
    ToolOutcome::failed(ToolErrorKind::Failed, why)
}

fn failed(url: &str, error: &FetchError) -> ToolOutcome {
    let kind = match error {
        FetchError::Address { .. } | FetchError::NotPlain { .. } => ToolErrorKind::InvalidInput,
        _ => ToolErrorKind::Failed,
    };
    let shown: String = url.chars().filter(|it| !it.is_control()).take(500).collect();
    ToolOutcome::failed(kind, format!("{shown} was not fetched: {error}."))
        .with_structured(&json!({"error": error.code(), "url": shown}))
}
