//! What is taken out, what is left, and that it does not matter how a text arrives.

mod look_alikes;
mod properties;
mod samples;

use std::{collections::BTreeMap, sync::Arc};

use super::*;

/// Numbers secrets by what they are.
#[derive(Debug)]
struct ByContent;

impl NumberSecrets for ByContent {
    fn number(&self, _: &'static str, secret: &[u8]) -> Option<u32> {
        // The same secret has the same number, and few others have it.
        let sum = secret.iter().fold(7_u32, |sum, it| sum.wrapping_mul(31) ^ u32::from(*it));
        Some(sum % 1000)
    }
}

fn redactor(values: &[&str]) -> Redactor {
    let value = |it: &&str| SecretValue { is_credential: false, value: (*it).into() };
    let patterns = Patterns::new(values.iter().map(value));
    Redactor::new(Arc::new(patterns), Arc::new(ByContent))
}

/// The kinds that are taken out, and the text around them.
fn kinds(redactor: &Redactor, text: &str) -> (Vec<String>, String) {
    let redacted = redactor.text(text).into_owned();
    let found: Vec<_> = placeholders(&redacted).map(|it| it.1.kind.to_owned()).collect();
    let mut rest = redacted.clone();
    for (_, it) in placeholders(&redacted) {
        rest = rest.replacen(&it.to_string(), "§", 1);
    }
    (found, rest)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    check_with(&redactor(&[]), text, expected);
}

#[track_caller]
fn check_with(redactor: &Redactor, text: &str, expected: &str) {
    assert_eq!(kinds(redactor, text).1, expected, "{text}");
}

// REQ: SES-8
#[test]
fn values_are_taken_out_wherever_they_are_and_short_ones_are_not_looked_for() {
    let redactor = redactor(&["hunter2-hunter2", " padded-value\n", "short", "zwölf\"Zeichen"]);
    assert_eq!(redactor.patterns().values().len(), 3);
    check_with(&redactor, "xhunter2-hunter2x hunter2-hunter", "x§x hunter2-hunter");
    check_with(&redactor, "padded-value short", "§ short");
    check_with(&redactor, "Hunter2-hunter2", "Hunter2-hunter2");
    let json = r#"{"a":"padded-value","zw\u00f6lf\"Zeichen":1,"b":"zwölf\"Zeichen\n"}"#;
    let redacted = redactor.json(json);
    assert_eq!(placeholders(&redacted).count(), 3, "{redacted}");
    assert!(serde_json::from_str::<BTreeMap<String, serde_json::Value>>(&redacted).is_ok());
}

#[test]
fn values_that_overlap_are_taken_out_as_one() {
    let redactor = redactor(&["abcdefgh", "efghijkl", "aaaaaaaaaa"]);
    check_with(&redactor, "-abcdefghijkl-", "-§-");
    check_with(&redactor, &"a".repeat(25), "§");
    check_with(&redactor, &"a".repeat(9), &"a".repeat(9));
}

#[test]
fn values_beyond_the_limit_are_left_out() {
    let long = |n: usize| SecretValue { is_credential: false, value: format!("{n:0>40000}") };
    let patterns = Patterns::new([long(1), long(2)]);
    assert_eq!(patterns.values().len(), 1);
}

#[test]
fn same_secret_has_the_same_placeholder_and_another_one_has_another() {
    let redactor = redactor(&[]);
    let (one, other) = (samples::of("github-token"), samples::of("npm-token"));
    let text = redactor.text(&format!("{one} {other} {one}")).into_owned();
    let words: Vec<&str> = text.split(' ').collect();
    assert_eq!(words[0], words[2]);
    assert!(words[0].starts_with("[secret:github-token:") && words[0] != words[1], "{text}");
}

#[test]
fn context_of_a_secret_is_left_in_place() {
    check("postgres://me:s3cr3t-pass@db:5432/x", "postgres://me:§@db:5432/x");
    check(
        "curl -H 'Authorization: Basic dXNlcjpwYXNzd29yZA=='",
        "curl -H 'Authorization: Basic §'",
    );
    check(
        r#"{"authorization": "Bearer abc123DEF456ghi789jkl0"}"#,
        r#"{"authorization": "Bearer §"}"#,
    );
    check("x-api-key: 0123456789abcdef0123", "x-api-key: §");
    check(
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz0zzzz1",
        "aws_secret_access_key = §",
    );
    check("The token is ghp_abcdefghijklmnopqrstuvwxyz0123456789.", "The token is §.");
    check(
        "https://x-access-token:ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/a",
        "https://x-access-token:§@github.com/a",
    );
}

#[test]
fn key_block_is_one_secret_in_a_file_in_json_and_with_numbers_before_its_lines() {
    let lines = [
        "-----BEGIN RSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "",
        &"Ab3/".repeat(16),
        &"Cd4+".repeat(16),
        "Ef==",
        "-----END RSA PRIVATE KEY-----",
    ];
    check(&format!("a\n{}\nb", lines.join("\n")), "a\n§\nb");
    check(&format!("{{\"k\":\"{}\\n\"}}", lines.join("\\n")), "{\"k\":\"§\\n\"}");
    let numbered: Vec<String> =
        lines.iter().zip(1..).map(|(it, n)| format!("{n:6}→{it}")).collect();
    check(&numbered.join("\n"), "     1→§");
    // Without its end it goes as far as it may.
    check(&format!("{}\n\n\"rest\"", lines[..5].join("\n")), "§\n\n\"rest\"");
}

#[test]
fn json_stays_json_and_keeps_its_bytes() {
    let redactor = redactor(&[]);
    let token = samples::of("github-token");
    for (json, expected) in [
        (format!(r#"{{ "a" : "{token}",  "b":[1.50] }}"#), r#"{ "a" : "§",  "b":[1.50] }"#),
        (format!(r#"{{"a":"x\n{token}\nb"}}"#), r#"{"a":"x\n§\nb"}"#),
        (format!(r#"{{"a":"\u003c{token}\u003e"}}"#), r#"{"a":"<§>"}"#),
        (format!(r#"{{"{token}":null}}"#), r#"{"§":null}"#),
        (r#"{"x-api-key":123456789012345678e5}"#.into(), r#"{"x-api-key":123456789012345678e5}"#),
    ] {
        let redacted = redactor.json(&json).into_owned();
        let found = placeholders(&redacted).next().map(|it| it.1.to_string()).unwrap_or_default();
        let shown =
            if found.is_empty() { redacted.clone() } else { redacted.replace(&found, "§") };
        assert!(serde_json::from_str::<serde_json::Value>(&redacted).is_ok(), "{redacted}");
        assert_eq!(shown, expected);
    }
    assert_eq!(
        placeholder_in_json(r#"{"a":"\u005bsecret:jwt:3]"}"#).as_deref(),
        Some("[secret:jwt:3]")
    );
    assert_eq!(placeholder_in_json(r#"{"a":"\"[secret:no:3]"}"#), None);
}

#[test]
fn beginning_of_a_secret_at_the_end_of_a_text_that_was_cut_is_taken_out() {
    let redactor = redactor(&["sk-test-0123456789abcdef"]);
    for (text, expected) in [
        ("no such key", "no such key"),
        ("got \"sk-test-0123456789abcde…", "got \"§…"),
        ("got sk-test-01234", "got §"),
        ("got ghp_abcdef0123", "got §"),
        ("got sk-test", "got sk-test"),
    ] {
        let redacted = redactor.cut_text(text).into_owned();
        let found = placeholders(&redacted).next().map(|it| it.1.to_string());
        let shown = found.map_or(redacted.clone(), |it| redacted.replace(&it, "§"));
        assert_eq!(shown, expected, "{text}");
    }
}

// REQ: SES-8
#[test]
fn stream_holds_back_only_what_may_be_a_secret() {
    let redactor = redactor(&["hunter2-hunter2"]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push("an ordinary word"), "an ordinary word");
    assert_eq!(stream.push(" gh"), " ");
    assert_eq!(stream.push("ost "), "ghost ");
    assert_eq!(stream.push("hunter2-"), "");
    assert_eq!(stream.push("z"), "hunter2-z");
    assert_eq!(stream.push("hunter2-"), "");
    assert!(stream.is_holding());
    assert!(stream.push("hunter2").starts_with("[secret:variable:") || stream.is_holding());
    assert!(!stream.finish().contains("hunter2"));
    assert_eq!(stream.push("7"), "7");
    assert_eq!(stream.finish(), "");
}

// REQ: SES-8
#[test]
fn escapes_of_quotes_hide_nothing_and_coded_letters_may_wherever_they_are() {
    let plain = redactor(&[]);
    let quotes = r#"{\"a\":\"b\\n\"} "#.repeat(12);
    assert!(!plain.may_find(quotes.as_bytes()));
    assert!(redactor(&["a \"quoted\" value"]).may_find(quotes.as_bytes()));
    for at in 0..quotes.len() {
        for hidden in ["\\u0067", "\\/"] {
            let (before, after) = quotes.split_at(at);
            let json = [before, hidden, after].concat();
            assert!(plain.may_find(json.as_bytes()), "{hidden} at {at}");
        }
    }
}
