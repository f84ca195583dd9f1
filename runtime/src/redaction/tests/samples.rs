//! A secret of every shape, and what is just none.

use super::*;
use crate::redaction::table::{ByteRun, Shape};

/// Characters of samples; of each class the first ones that belong to it.
const CHARS: &[u8] = b"aB3dE5gH7jK9mN2pQ4rS6tU8:=@. -_/";

fn run(part: &ByteRun, n_bytes: usize) -> String {
    let chars = CHARS.iter().filter(|it| part.class.has(**it)).cycle();
    chars.take(n_bytes).map(|it| char::from(*it)).collect()
}

/// What follows the anchor, with `less` bytes fewer in the last secret run.
fn body(rule: &SecretRule, less: usize) -> String {
    let Shape::Parts(parts) = rule.shape else {
        let name = rule.anchors[1].replace("BEGIN", "END");
        return format!("\n{}\n{name}", "aB3/".repeat(10).split_at(40 - less).0);
    };
    if rule.kind == "jwt" {
        let third = &"aB3dE5gH7jK9mN2p"[..16 - less];
        return format!("hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{third}");
    }
    let last = parts.iter().rposition(|it| it.is_secret).unwrap();
    let parts = parts.iter().enumerate().map(|(place, part)| {
        let n_bytes = if part.is_secret && 12 <= part.max { part.min.max(12) } else { part.min };
        run(part, usize::try_from(n_bytes).unwrap() - if place == last { less } else { 0 })
    });
    parts.collect()
}

/// A secret of every row and beginning, with what is around it.
pub(super) fn all() -> Vec<(&'static SecretRule, String)> {
    let of_rule = |rule: &'static SecretRule| {
        let sample = move |anchor: &&str| (rule, format!("{anchor}{}", body(rule, 0)));
        rule.anchors.iter().map(sample)
    };
    TABLE.iter().flat_map(of_rule).collect()
}

pub(super) fn of(kind: &str) -> String {
    all().into_iter().find(|it| it.0.kind == kind).unwrap().1
}

// REQ: SES-8
#[test]
fn secret_of_every_row_is_taken_out_and_one_character_less_is_not() {
    let redactor = redactor(&[]);
    for (rule, sample) in all() {
        let (found, rest) = kinds(&redactor, &format!("({sample})"));
        assert_eq!(found, [rule.kind], "{sample}");
        let anchor = rule.anchors.iter().find(|it| sample.starts_with(**it)).unwrap();
        let secret = &body(rule, 0)[..];
        let kept = if rule.with_anchor { "" } else { anchor };
        assert!(rest.starts_with(&format!("({kept}")) && rest.len() < sample.len(), "{rest}");
        assert!(!rest.contains(secret), "{rest}");
        assert!(rule.source.len() > 7, "{}", rule.kind);
        // A password has no length.
        if rule.kind != "url-password" {
            let short = format!("({anchor}{})", body(rule, 1));
            assert_eq!(kinds(&redactor, &short).1, short);
        }
        if rule.at_word {
            let inside = format!("(x{sample})");
            assert_eq!(kinds(&redactor, &inside).1, inside);
        }
        if rule.any_case {
            let shouted = format!("({}{})", anchor.to_uppercase(), body(rule, 0));
            assert_eq!(kinds(&redactor, &shouted).0, [rule.kind], "{shouted}");
        }
    }
}

// REQ: SES-8
#[test]
fn characters_that_a_provider_puts_into_its_keys_do_not_end_them() {
    let redactor = redactor(&[]);
    let part = "aB3dE5gH7jK9mN2pQ4rS";
    for (key, kind) in [
        (format!("xai-{part}_{part}_{part}{part}"), "xai-key"),
        (format!("sk-service-{part}_{part}-T3BlbkFJ{part}"), "openai-key"),
        (format!("api_org_{part}{}", &part[..14]), "hugging-face-token"),
    ] {
        let (found, rest) = kinds(&redactor, &format!("({key})"));
        assert_eq!((found, rest.as_str()), (vec![kind.to_owned()], "(§)"));
    }
}

#[test]
fn rows_begin_with_three_bytes_and_their_kinds_are_words() {
    for rule in TABLE {
        assert!(rule.anchors.iter().all(|it| 3 <= it.len() && it.is_ascii()), "{}", rule.kind);
        assert!(rule.kind.bytes().all(|it| it.is_ascii_lowercase() || it == b'-'), "{}", rule.kind);
        let is_lower = |it: &&str| it.bytes().all(|it| !it.is_ascii_uppercase());
        assert!(!rule.any_case || rule.anchors.iter().all(is_lower), "{}", rule.kind);
    }
}

// REQ: SES-8
#[test]
fn page_names_every_row_with_its_source() {
    let page = include_str!("../../../../docs/redaction.md");
    let rows: Vec<&str> = page.lines().filter(|it| it.starts_with("| `")).collect();
    let expected = TABLE.iter().map(|rule| {
        let anchors: Vec<String> =
            rule.anchors.iter().map(|it| format!("`{}`", it.trim())).collect();
        format!("| `{}` | {} | {} |", rule.kind, anchors.join(", "), rule.source)
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}
