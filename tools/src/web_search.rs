//! WebSearch: finds pages on the web, by a search that an embedder brings.
//!
//! The tool is there only where a search is. It is made for one session, and its sub-agents share it, so what it counts is counted
//! for all of them.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ennead_runtime::{
    ids::ToolUseId,
    ports::{BoxFuture, Tool, ToolContext},
    step7_permission_gate::{Permit, host_of_rules},
    tool::{Access, Concurrency, ToolEffect, ToolErrorKind, ToolOutcome, ToolSpec},
};
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    capped::capped,
    declared::{Declaration, number, parsed},
    schema::Schema,
};

/// Searches of a session and its sub-agents, where `CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION` does not say otherwise.
const MAX_SEARCHES: u64 = 200;

/// Characters of a query at least.
const MIN_QUERY: usize = 2;

/// Characters of a query at most.
const MAX_QUERY: usize = 1000;

/// Domains of one query, and bytes of each: the longest name that the system of names has.
const MAX_DOMAINS: usize = 20;
const MAX_DOMAIN: usize = 253;

/// Hits that the model sees.
const MAX_HITS: usize = 50;

/// Characters of a title, an address and a text of a hit.
const MAX_TITLE: usize = 300;
const MAX_URL: usize = 2000;
const MAX_TEXT: usize = 1000;

/// Characters that the model sees of all hits.
const OUTPUT_CAP: u32 = 50_000;

/// Milliseconds that a search may take.
const TIMEOUT_MS: u64 = 60_000;

/// Searches that run side by side.
const MAX_TOGETHER: u32 = 3;

/// Finds pages on the web. A function from [`SearchQuery`] to a future of its hits, or of why there are none, is a search.
pub trait SearchWeb: Send + Sync {
    /// Returns what a query finds, the best first, or why nothing was searched, in words for the model.
    fn search(&self, query: SearchQuery) -> BoxFuture<'static, Result<Vec<SearchHit>, String>>;
}

impl<F, R> SearchWeb for F
where
    F: Fn(SearchQuery) -> R + Send + Sync,
    R: Future<Output = Result<Vec<SearchHit>, String>> + Send + 'static,
{
    fn search(&self, query: SearchQuery) -> BoxFuture<'static, Result<Vec<SearchHit>, String>> {
        self(query).boxed()
    }
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// The words: 2 to 1,000 characters.
    pub text: String,
    /// Domains that alone are wanted, in lower case; none: all are.
    pub allowed_domains: Vec<String>,
    /// Domains that are not wanted, in lower case. One of the two lists is empty.
    pub blocked_domains: Vec<String>,
}

/// A page that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchHit {
    /// The title of the page.
    pub title: String,
    /// The whole address of the page.
    pub url: String,
    /// A part of its text, where the search gives one.
    pub text: Option<String>,
}

impl SearchHit {
    /// Makes a hit without a text.
    pub fn new(title: impl Into<String>, url: impl Into<String>) -> Self {
        Self { title: title.into(), url: url.into(), text: None }
    }
}

/// Input of the tool `WebSearch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchInput {
    /// What to search for.
    query: String,
    /// Only pages of these domains and those below them.
    #[serde(default)]
    allowed_domains: Option<Vec<String>>,
    /// No pages of these domains and those below them.
    #[serde(default)]
    blocked_domains: Option<Vec<String>>,
}

/// The tool of one session.
pub struct WebSearch {
    declaration: Declaration,
    search: Arc<dyn SearchWeb>,
    n_searches: Arc<AtomicU64>,
}

impl WebSearch {
    /// Makes the tool of a session that searches by this.
    pub fn new(search: Arc<dyn SearchWeb>) -> Self {
        let schema = Schema::of::<SearchInput>();
        let spec = ToolSpec::new(
            "WebSearch",
            "Searches the web. The result lists titles and addresses of pages, which WebFetch reads. Give \
                `allowed_domains` or `blocked_domains`, not both.",
            schema.text().clone(),
        )
        .with_effect(ToolEffect::ReadOnly)
        .with_concurrency(Concurrency::Together { max: MAX_TOGETHER })
        .with_access(Access::Ask)
        .with_output_cap(OUTPUT_CAP)
        .with_timeout_ms(TIMEOUT_MS);
        Self { declaration: Declaration::new(spec, schema), search, n_searches: Arc::default() }
    }
}

impl Tool for WebSearch {
    fn spec(&self) -> &ToolSpec {
        self.declaration.spec()
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.declaration.check(input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        self.declaration.run(permit, context, |permit, context| {
            let (id, query) = (permit.call().id.clone(), parsed(&permit.call().input));
            let (search, n) = (Arc::clone(&self.search), Arc::clone(&self.n_searches));
            async move {
                let outcome = match query.and_then(|it| read(it).map_err(refused)) {
                    Ok(query) => found(query, &*search, &n, &id, &context).await,
                    Err(refused) => *refused,
                };
                capped(outcome, Some(OUTPUT_CAP), &id, &context).await
            }
        })
    }
}

impl fmt::Debug for WebSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSearch").field("n_searches", &self.n_searches).finish_non_exhaustive()
    }
}

/// Reads what a call asks for, or returns what is wrong with it, in words for the model.
fn read(input: SearchInput) -> Result<SearchQuery, String> {
    let text = input.query.trim().to_owned();
    let n_chars = text.chars().count();
    if !(MIN_QUERY..=MAX_QUERY).contains(&n_chars) {
        return Err(format!(
            "The query has {n_chars} characters: {MIN_QUERY} to {MAX_QUERY} are taken."
        ));
    }
    let allowed_domains = input.allowed_domains.unwrap_or_default();
    let blocked_domains = input.blocked_domains.unwrap_or_default();
    if !allowed_domains.is_empty() && !blocked_domains.is_empty() {
        return Err("Give `allowed_domains` or `blocked_domains`, not both.".into());
    }
    if MAX_DOMAINS < allowed_domains.len() + blocked_domains.len() {
        return Err(format!("There are too many domains: {MAX_DOMAINS} are the most."));
    }
    let is_domain = |it: &String| {
        let is_of_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_');
        (1..=MAX_DOMAIN).contains(&it.len())
            && it.bytes().all(is_of_name)
            && it.strip_suffix('.').unwrap_or(it).split('.').all(|label| !label.is_empty())
    };
    if let Some(odd) = allowed_domains.iter().chain(&blocked_domains).find(|it| !is_domain(it)) {
        let odd: String = odd.chars().take(80).collect();
        return Err(format!("`{odd}` is not a domain such as example.com."));
    }
    let lower = |all: Vec<String>| {
        let name = |it: &String| it.strip_suffix('.').unwrap_or(it).to_ascii_lowercase();
        all.iter().map(name).collect()
    };
    let (allowed_domains, blocked_domains) = (lower(allowed_domains), lower(blocked_domains));
    Ok(SearchQuery { text, allowed_domains, blocked_domains })
}

fn refused(why: String) -> Box<ToolOutcome> {
    Box::new(ToolOutcome::failed(ToolErrorKind::InvalidInput, why))
}

async fn found(
    query: SearchQuery,
    search: &dyn SearchWeb,
    n_searches: &AtomicU64,
    id: &ToolUseId,
    context: &ToolContext,
) -> ToolOutcome {
    let max = number(context, "CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION").unwrap_or(MAX_SEARCHES);
    let start = context.clock.elapsed();
    let result = |text: String, content: serde_json::Value, n: u32| {
        let seconds = context.clock.elapsed().saturating_sub(start).as_secs_f64();
        let structured = json!({
            "query": query.text, "results": [content], "durationSeconds": seconds, "searchCount": n,
        });
        ToolOutcome::ok(text).with_structured(&structured)
    };
    let is_left = |n: u64| (n < max).then_some(n + 1);
    if n_searches.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_left).is_err() {
        let notice = format!(
            "[Nothing was searched: the session has made {max} searches, and no more may be made. Go on with what is known.]"
        );
        return result(notice.clone(), notice.into(), 0);
    }
    let mut hits = match search.search(query.clone()).await {
        Ok(hits) => hits,
        Err(why) => {
            let why: String = why.chars().take(MAX_TEXT).collect();
            return ToolOutcome::failed(
                ToolErrorKind::Failed,
                format!("Nothing was searched: {why}"),
            );
        }
    };
    hits.retain(|it| it.url.len() <= MAX_URL && is_wanted(&it.url, &query));
    hits.truncate(MAX_HITS);
    if hits.is_empty() {
        let text = format!("No page was found for {:?}.", query.text);
        return result(text, json!({"tool_use_id": id, "content": []}), 1);
    }
    let lines: Vec<String> = hits.iter().zip(1..).map(|(it, n)| line(n, it)).collect();
    let content: Vec<_> = hits
        .iter()
        .map(|it| json!({"title": on_one_line(&it.title, MAX_TITLE), "url": it.url}))
        .collect();
    result(lines.join("\n"), json!({"tool_use_id": id, "content": content}), 1)
}

/// Whether a hit is of the web, and of the domains that are wanted, whatever the search made of them.
fn is_wanted(url: &str, query: &SearchQuery) -> bool {
    let Some(host) =
        host_of_rules(url).filter(|_| !url.contains(|c: char| c.is_whitespace() || c.is_control()))
    else {
        return false;
    };
    let is_of = |domain: &String| {
        host.strip_suffix(domain.as_str()).is_some_and(|it| it.is_empty() || it.ends_with('.'))
    };
    (query.allowed_domains.is_empty() || query.allowed_domains.iter().any(is_of))
        && !query.blocked_domains.iter().any(is_of)
}

fn line(n: usize, hit: &SearchHit) -> String {
    let (title, url) = (on_one_line(&hit.title, MAX_TITLE), &hit.url);
    let text = hit.text.as_deref().map(|it| on_one_line(it, MAX_TEXT)).filter(|it| !it.is_empty());
    match text {
        Some(text) => format!("{n}. {title}\n   {url}\n   {text}"),
        None => format!("{n}. {title}\n   {url}"),
    }
}

/// Returns the beginning of a text without line ends and signs that cannot be seen.
fn on_one_line(text: &str, max_chars: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|it| !it.is_control()).take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(value: serde_json::Value) -> Result<SearchQuery, String> {
        read(serde_json::from_value(value).unwrap())
    }

    // REQ: TOL-6
    #[test]
    fn query_has_two_characters_and_one_list_of_domains_at_most() {
        for (value, complaint) in [
            (json!({"query": "ab"}), ""),
            (json!({"query": " a "}), "1 characters"),
            (json!({"query": "ä".repeat(MAX_QUERY)}), ""),
            (json!({"query": "ä".repeat(MAX_QUERY + 1)}), "1001 characters"),
            (json!({"query": "ab", "allowed_domains": ["A.com"], "blocked_domains": []}), ""),
            (
                json!({"query": "ab", "allowed_domains": ["a.com"], "blocked_domains": ["b.com"]}),
                "not both",
            ),
            (json!({"query": "ab", "allowed_domains": ["https://a.com"]}), "not a domain"),
            (json!({"query": "ab", "blocked_domains": vec!["a.com"; MAX_DOMAINS + 1]}), "too many"),
        ] {
            match input(value.clone()) {
                Ok(query) => {
                    assert_eq!(complaint, "", "{value}");
                    assert!(query.allowed_domains.iter().all(|it| it == "a.com"), "{query:?}");
                }
                Err(why) => {
                    assert!(!complaint.is_empty() && why.contains(complaint), "{value}: {why}")
                }
            }
        }
    }

    // REQ: TOL-6
    #[test]
    fn hits_are_of_wanted_domains_whatever_the_search_gives() {
        let query = |field: &str| input(json!({"query": "ab", field: ["a.com"]})).unwrap();
        for (url, is_of_it, is_other) in [
            ("https://a.com/x", true, false),
            ("https://b.A.com./x", true, false),
            ("https://ba.com/", false, true),
            ("https://a.com.evil.com/", false, true),
            ("https://a.com@evil.com/", false, false),
            ("ftp://a.com/", false, false),
            ("https://a.com/ b", false, false),
            ("javascript:a", false, false),
        ] {
            assert_eq!(is_wanted(url, &query("allowed_domains")), is_of_it, "{url}");
            assert_eq!(is_wanted(url, &query("blocked_domains")), is_other, "{url}");
        }
    }

    #[test]
    fn hit_is_shown_on_lines_of_its_own() {
        let mut hit = SearchHit::new(" A\n2. title ", "https://a.com/");
        assert_eq!(line(1, &hit), "1. A 2. title\n   https://a.com/");
        hit.text = Some("some\u{1b}[1m\n\ntext".into());
        assert_eq!(line(1, &hit), "1. A 2. title\n   https://a.com/\n   some[1m text");
    }
}
