//! The live page: its files, and how they are served.
//!
//! It is static and asks the API like any other client, so the files hold nothing of any tenant and need no
//! token. The policy lets the page load its own files and nothing else, run no text as a program and
//! be shown in no frame: what it shows comes from models and tools, which are hostile.

use std::borrow::Cow;

use axum::{
    Router,
    body::Body,
    extract::{OriginalUri, Path},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
    routing::get,
};
use ennead_runtime::digest::Digest;

/// What a browser may do with the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The text of the page. Its style and its scripts are named between the comments `files` and `/files`.
pub const PAGE_INDEX: &str = include_str!("page/index.html");

/// The style of the page.
pub const PAGE_STYLE: &str = include_str!("page/app.css");

macro_rules! scripts {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("page/", $name)))),+]
    };
}

/// The scripts of the page, by name, in the order in which they run: each uses those before it.
pub const PAGE_SCRIPTS: [(&str, &str); 27] = scripts![
    "theme.js",
    "text.js",
    "dom.js",
    "frame.js",
    "api.js",
    "record.js",
    "live.js",
    "server.js",
    "opened.js",
    "living.js",
    "list.js",
    "sessions.js",
    "markdown.js",
    "diff.js",
    "calls.js",
    "conversation.js",
    "turns.js",
    "context.js",
    "usage.js",
    "actors.js",
    "asking.js",
    "approvals.js",
    "compose.js",
    "recorded.js",
    "session.js",
    "keys.js",
    "app.js",
];

/// Returns the routes of the page, for a router with any state.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/", get(index)).route(
        "/page/{name}",
        get(|Path(name): Path<String>, headers: HeaderMap| async move { file(&name, &headers) }),
    )
}

/// Answers with the text of the page, whose files are below the place where a program has mounted the server.
async fn index(OriginalUri(asked): OriginalUri, headers: HeaderMap) -> Response<Body> {
    let mount = asked.path().trim_end_matches('/');
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"/-._~".contains(&it);
    if mount.is_empty() || !mount.bytes().all(is_plain) {
        return file("index.html", &headers);
    }
    let text = PAGE_INDEX.replace("=\"page/", &format!("=\"{mount}/page/"));
    answer(text.into(), "text/html; charset=utf-8", &headers)
}

/// The text and the media type of a file of the page.
fn find(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "index.html" => Some((PAGE_INDEX, "text/html; charset=utf-8")),
        "app.css" => Some((PAGE_STYLE, "text/css; charset=utf-8")),
        _ => {
            let script = PAGE_SCRIPTS.iter().find(|it| it.0 == name)?;
            Some((script.1, "text/javascript; charset=utf-8"))
        }
    }
}

/// Answers with a file of the page.
fn file(name: &str, asked: &HeaderMap) -> Response<Body> {
    let Some((text, kind)) = find(name) else {
        let mut none = Response::new(Body::from("there is no such file\n"));
        *none.status_mut() = StatusCode::NOT_FOUND;
        return secured(none, "text/plain; charset=utf-8");
    };
    answer(text.into(), kind, asked)
}

/// Answers with a text, or with 304 when the browser has it already.
fn answer(text: Cow<'static, str>, kind: &'static str, asked: &HeaderMap) -> Response<Body> {
    let tag = format!("\"{}\"", Digest::of(text.as_bytes()));
    let known = asked.get(header::IF_NONE_MATCH).and_then(|it| it.to_str().ok());
    let is_known = known.is_some_and(|it| it.split(',').any(|it| it.trim() == tag));
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(text) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    // Asked for each time: after an update no file of the old page may run with those of the new one.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    secured(response, kind)
}

fn secured(mut response: Response<Body>, kind: &'static str) -> Response<Body> {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-5
    #[test]
    fn every_script_of_the_page_is_served_in_its_order() {
        let tags: Vec<&str> = PAGE_INDEX
            .lines()
            .filter_map(|it| it.split_once("src=\"page/")?.1.split_once('"'))
            .map(|it| it.0)
            .collect();
        assert_eq!(tags, PAGE_SCRIPTS.map(|it| it.0));
    }

    // REQ: SUR-5
    #[test]
    fn files_of_the_page_are_sent_once_and_under_the_policy() {
        let first = file("app.js", &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        assert_eq!(first.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        let mut again = HeaderMap::new();
        again.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(file("app.js", &again).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(file("app.css", &again).status(), StatusCode::OK, "the tag is of another file");
        assert_eq!(file("../page.rs", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }

    // REQ: SUR-5
    #[test]
    fn nothing_of_the_page_makes_elements_or_programs_of_text() {
        let banned = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "</script",
            "http://",
            "https://",
        ];
        for (name, text) in PAGE_SCRIPTS {
            for it in banned {
                // The name of a vocabulary is not an address that is requested.
                let text = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains(it), "{name} has {it}");
            }
        }
        assert!(
            !PAGE_STYLE.contains("url(") && !PAGE_STYLE.contains("@import"),
            "the style loads something"
        );
        assert!(
            !PAGE_INDEX.contains(" style=") && !PAGE_INDEX.contains(" onclick="),
            "the policy forbids these"
        );
    }
}
