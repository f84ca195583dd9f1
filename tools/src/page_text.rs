//! Makes text of what a web server sends: Markdown of HTML, other text as it is, and nothing of what is not a text.
//!
//! Pages are hostile. So no tree is made of one: tags are read once from the beginning to the end, with a stack of fixed
//! depth and without recursion, and nothing is read any more once the text is as long as it may be. Time is linear in the bytes.

mod entities;
mod markdown;
mod tokens;

use encoding_rs::Encoding;
use ennead_runtime::tool::web_page::{MAX_PAGE_CHARS, beginning};

use self::markdown::Markdown;

/// Bytes in which a server may say how it writes characters, and that show whether a body is a text.
const HEAD: usize = 2048;

/// Bytes of a body that are made text of. It takes some ten times the memory while it is.
const MAX_READ: usize = 4 * 1024 * 1024;

/// Characters of the name of a content type in an error.
const MAX_KIND: usize = 80;

/// Content types of text that do not begin with `text/`, or end as one of JSON or XML does.
const TEXTS: [&str; 12] = [
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/sql",
    "application/toml",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

/// The text of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageText {
    /// At most [`MAX_PAGE_CHARS`] characters.
    pub text: String,
    /// Whether the body has more.
    pub is_cut: bool,
}

/// Returns the text of a body with this `Content-Type`. `resolve` makes addresses of links absolute, and returns `None`
/// for those that are left out.
///
/// # Errors
///
/// What the body is instead, in words.
pub fn page_text(
    body: &[u8],
    content_type: Option<&str>,
    resolve: &dyn Fn(&str) -> Option<String>,
) -> Result<PageText, String> {
    let (kind, charset) = split(content_type.unwrap_or_default());
    let head = &body[..body.len().min(HEAD)];
    let is_html = match kind.as_str() {
        "text/html" | "application/xhtml+xml" => true,
        // What nobody named is looked at.
        "" | "application/octet-stream" if looks_like_html(head) => true,
        "" | "application/octet-stream" if is_utf8(body) => false,
        "" => return Err("data without a name for its kind".into()),
        it if is_text(it) => false,
        other => return Err(other.chars().take(MAX_KIND).collect()),
    };
    let encoding = Encoding::for_bom(body).map(|it| it.0);
    if encoding.is_none_or(|it| it == encoding_rs::UTF_8) && memchr::memchr(0, head).is_some() {
        return Err(format!("binary data that is named {}", if is_html { "HTML" } else { "text" }));
    }
    let named = charset.or_else(|| is_html.then(|| named_in(head)).flatten());
    let encoding = named.as_deref().and_then(|it| Encoding::for_label(it.as_bytes()));
    // A mark at the beginning is stronger than the name; what cannot be read becomes a sign for that.
    let read = &body[..body.len().min(MAX_READ)];
    let (text, _, _) = encoding.unwrap_or(encoding_rs::UTF_8).decode(read);
    let found = match is_html {
        true => Markdown::new(resolve).of(&text),
        false => plain(&text),
    };
    Ok(PageText { is_cut: found.is_cut || read.len() < body.len(), ..found })
}

/// Returns the kind in lower case, and the name of its characters.
fn split(content_type: &str) -> (String, Option<String>) {
    let mut parts = content_type.split(';').map(|it| it.trim().to_ascii_lowercase());
    let kind = parts.next().unwrap_or_default();
    let charset = parts
        .find_map(|it| Some(it.strip_prefix("charset=")?.trim_matches(['"', '\'']).to_owned()));
    (kind, charset)
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || TEXTS.contains(&kind)
}

fn looks_like_html(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    let begins =
        |it: &[u8]| start.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it));
    begins(b"<!doctype html") || begins(b"<html")
}

/// Whether a body is UTF-8, but for a character that is cut off at the end.
fn is_utf8(body: &[u8]) -> bool {
    match str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Returns the name of the characters that HTML itself gives.
fn named_in(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let after = head.split("charset").nth(1)?.trim_start().strip_prefix('=')?;
    let name = after.trim_start().trim_start_matches(['"', '\'']);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    let name: String = name.chars().take_while(|it| is_of_name(*it)).take(40).collect();
    // Who could be read up to here does not write two bytes for a character.
    (!name.is_empty() && !name.starts_with("utf-16")).then_some(name)
}

/// Returns the beginning of a text, without what moves the cursor of a terminal.
fn plain(text: &str) -> PageText {
    let text: String = text.chars().filter(|it| is_shown(*it)).take(MAX_PAGE_CHARS + 1).collect();
    let shown = beginning(&text, MAX_PAGE_CHARS);
    PageText { is_cut: shown.len() < text.len(), text: shown.to_owned() }
}

/// Whether a character of a page is kept.
fn is_shown(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests;
