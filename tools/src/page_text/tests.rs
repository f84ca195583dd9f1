//! What becomes of pages, also of those that are made to do harm.
//!
//! Built under `#[cfg(test)]` only.

use std::time::{Duration, Instant};

use super::*;

fn text_of(body: &str) -> PageText {
    let resolve = |it: &str| (!it.starts_with("javascript:")).then(|| format!("https://h/{it}"));
    page_text(body.as_bytes(), Some("text/html; charset=utf-8"), &resolve).unwrap()
}

#[track_caller]
fn check(html: &str, markdown: &str) {
    assert_eq!(text_of(html).text, markdown, "{html}");
}

// REQ: TOL-6
#[test]
fn html_is_written_as_markdown() {
    check(
        "<title>T</title><h2>A &amp; B</h2><p>one\n two<p>three",
        "# T\n\n## A & B\n\none two\n\nthree",
    );
    check("a <b>bold</b>, <em> it </em>. <code>x</code>", "a **bold**, _it_ . `x`");
    check("<b></b>a<i> </i>b", "a b");
    check(
        "<a href=x>link</a> <a href='javascript:y'>none</a> <a href=z></a>",
        "[link](https://h/x) none",
    );
    check("<img src=i alt='a picture'><img src=j>", "![a picture](https://h/i)");
    check(
        "<ul><li>a<li>b<ol><li>c</li><li>d</ol><li>e</ul>f",
        "- a\n- b\n  1. c\n  2. d\n- e\n\nf",
    );
    check("<pre><code>fn a() {\n    b\n}\n</code></pre>x", "```\nfn a() {\n    b\n}\n```\n\nx");
    check("<blockquote>a<p>b</blockquote>c", "> a\n\n> b\n\nc");
    check("<table><tr><th>a<th>b<tr><td>1<td>2</table>x", "a | b\n1 | 2\n\nx");
    check("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n: b\nc\n: d");
    check("a<br>b<hr>c", "a\nb\n\n---\n\nc");
    check("<h1>a<br>b</h1>c", "# a b\n\nc");
}

// REQ: TOL-6
#[test]
fn scripts_styles_and_comments_are_left_out() {
    check("a<script>if (a < b) { '</p>' }</script>b", "ab");
    check("a<STYLE>p > q {}</Style >b<!-- <p>c --><!-->d", "abd");
    check("<svg><text>no</text></svg>a<template><p>no</template>b", "ab");
    check("<script>never closed <p>a", "");
    check("a<!-- never closed <p>b", "a");
    check("a<p title='never closed><p>b", "a");
    check("<p title='a>b' x=\"c>d\" href=e>f", "f");
}

// REQ: TOL-6
#[test]
fn references_are_replaced_once() {
    check(
        "&lt;b&gt; &amp;lt; &#65;&#x42; &auml;&ouml;&yuml;&nbsp;&mdash; &unknown; &; & a",
        "<b> &lt; AB äöÿ — &unknown; &; & a",
    );
    check("&#0;&#xd800;&#99999999;", "\u{fffd}\u{fffd}\u{fffd}");
    check("a&#27;[31mb&#x9b;c\u{7}", "a[31mbc");
}

// REQ: TOL-6
#[test]
fn tags_that_do_not_fit_lose_no_text() {
    check("<b><p>a</b>b</p>c", "**a**\n\nb\n\nc");
    check("</div></td>a</b><td>b", "a b");
    check("a < b <> c </ d> e", "a < b <> c e");
    check("<table>a<td>b</table><li>c", "a b\n\n- c");
    check("<", "<");
    check("<a", "");
    check("", "");
}

/// How long it takes to read pages of this many bytes.
#[expect(clippy::disallowed_methods, reason = "what is tested is the time that it takes")]
fn took(page: impl Fn(usize) -> String, n: usize) -> Duration {
    let page = page(n);
    let start = Instant::now();
    text_of(&page);
    start.elapsed()
}

// REQ: TOL-6
#[test]
fn hostile_pages_take_linear_time_and_a_small_stack() {
    let parts = [
        "<div>",
        "<b>",
        "<i><b>",
        "<a href=x>",
        "<ul><li>",
        "<blockquote>",
        "<table><tr><td>",
        "<p><b>",
        "</b>",
        "</div>",
        "<script>",
        "<!--",
        "<",
        "<!",
        "</",
        "<x ",
        "&",
        "&amp",
        "<svg>",
        "a=",
        "<p a='",
        "<h1>",
        "<table>a",
        "<b><p></b>",
        "<a x=1><p>",
        "<pre>\n",
        "<li>",
        "\u{1}",
        "<select><option>",
        "<font a=1><b id=2><p>x",
    ];
    std::thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(move || {
            for part in parts {
                let page = |n: usize| part.repeat(n / part.len());
                // A tenth of a second would be enough by far; quadratic work takes minutes.
                let took = took(page, 500_000);
                assert!(took < Duration::from_secs(20), "{part}: {took:?}");
            }
            let deep = format!("{}end{}", "<div><b>".repeat(100_000), "</b></div>".repeat(100_000));
            assert_eq!(text_of(&deep).text, "**end**");
        })
        .unwrap()
        .join()
        .unwrap();
}

// REQ: TOL-6
#[test]
fn text_has_as_many_characters_as_it_may_and_no_more() {
    for (n, is_cut) in [(MAX_PAGE_CHARS, false), (MAX_PAGE_CHARS + 1, true)] {
        let word = "ä".repeat(n);
        for kind in ["text/html", "text/plain"] {
            let page = page_text(word.as_bytes(), Some(kind), &|_| None).unwrap();
            assert_eq!(
                (page.text.chars().count(), page.is_cut),
                (MAX_PAGE_CHARS, is_cut),
                "{kind}"
            );
        }
    }
    let long = text_of(&"<li>a".repeat(400_000));
    let n = long.text.chars().count();
    assert!(long.is_cut && (MAX_PAGE_CHARS - 4..=MAX_PAGE_CHARS).contains(&n), "{n}");
}

// REQ: TOL-6
#[test]
fn what_is_not_a_text_is_refused_by_its_name() {
    let no = |body: &[u8], kind| page_text(body, kind, &|_| None).unwrap_err();
    assert_eq!(no(b"\x89PNG\r\n", Some("image/png")), "image/png");
    assert_eq!(no(b"%PDF", Some("application/pdf; x=y")), "application/pdf");
    assert_eq!(no(b"a\0b", Some("text/plain")), "binary data that is named text");
    assert_eq!(no(b"<p>\0", Some("text/html")), "binary data that is named HTML");
    assert_eq!(no(b"\xff\xfe\xfd", None), "data without a name for its kind");
    assert_eq!(no(b"\xff\xfe\xfd", Some("application/octet-stream")), "application/octet-stream");
    assert_eq!(no(b"", Some(&"x".repeat(500))).len(), MAX_KIND);
    let yes = |body: &[u8], kind| page_text(body, kind, &|_| None).unwrap().text;
    assert_eq!(yes(b"{\"a\": 1}", Some("application/problem+json")), "{\"a\": 1}");
    assert_eq!(yes(b"a <b>", Some("text/plain")), "a <b>");
    assert_eq!(yes(b"<!DOCTYPE html><p>a", None), "a");
    assert_eq!(yes("a\u{1b}[1mä\r\n".as_bytes(), None), "a[1mä\n");
}

// REQ: TOL-6
#[test]
fn characters_are_read_as_they_are_written_and_a_lie_about_it_does_no_harm() {
    let yes = |body: &[u8], kind| page_text(body, Some(kind), &|_| None).unwrap().text;
    assert_eq!(yes(b"\xe4", "text/plain; charset=ISO-8859-1"), "ä");
    assert_eq!(yes(b"<meta charset='windows-1252'>\x80", "text/html"), "€");
    assert_eq!(yes(b"\xff\xfea\0\xe4\0", "text/plain; charset=us-ascii"), "aä");
    assert_eq!(yes(b"\xe4\xff", "text/plain; charset=utf-8"), "\u{fffd}\u{fffd}");
    assert_eq!(yes("ä".as_bytes(), "text/plain; charset=no-such"), "ä");
    assert_eq!(yes(b"<meta charset=utf-16>a", "text/html"), "a");
    for charset in ["utf-16", "utf-7", "iso-2022-jp", "replacement", "x-user-defined", "\"\""] {
        let kind = format!("text/html; charset={charset}");
        page_text(b"a\xff~{+AGE-", Some(&kind), &|_| None).unwrap();
    }
}

// REQ: TOL-6
#[test]
fn script_ends_with_its_own_name() {
    check("a<script>x</scripty>y</script >b", "ab");
    check("a<style>x</styles></style/>b", "ab");
    check("a<script>x</script", "a");
}

// REQ: TOL-6
#[test]
fn addresses_of_a_page_are_made_absolute_up_to_a_number() {
    let n = std::cell::Cell::new(0);
    let resolve = |it: &str| {
        n.set(n.get() + 1);
        Some(format!("https://h/{it}"))
    };
    let page = "<a href=b>".repeat(100_000) + "<p>end";
    let found = page_text(page.as_bytes(), Some("text/html"), &resolve).unwrap();
    assert!(found.text.ends_with("end"), "{}", found.text);
    assert_eq!(n.get(), markdown::MAX_ADDRESSES);
}

// REQ: TOL-6, SES-8
#[test]
fn text_is_cut_between_words_and_a_large_body_is_read_in_part() {
    let words = "<p>".to_owned() + &"word ".repeat(30_000);
    let found = text_of(&words);
    assert!(found.is_cut && found.text.ends_with("word"), "{}", &found.text[99_980..]);
    let late = " ".repeat(MAX_READ) + "late";
    let found = text_of(&late);
    assert_eq!((found.text.as_str(), found.is_cut), ("", true));
}
