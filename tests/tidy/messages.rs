//! Messages are in plain English: "is not an object", and not "is no object"; "next to", and not "beside".

use super::{read, rust_files};

/// Texts that stand in transcripts, where a replay compares them.
const RECORDED: [(&str, usize); 4] = [
    ("runtime/src/hook/answer.rs", 1),
    ("runtime/src/hook/answer/field.rs", 1),
    ("runtime/src/hook/answer/specific.rs", 3),
    ("runtime/src/step7_permission_gate/stage2_pre_tool_use_hooks.rs", 1),
];

/// Words after which "no" is plain English.
const PLAIN: [&str; 4] = ["longer", "more", "later", "such"];

/// Returns whether a line has a string literal with words that are not plain.
fn is_quaint(line: &str) -> bool {
    let line = line.trim();
    let Some(at) = line.find('"').filter(|_| !line.starts_with("//")) else { return false };
    let text = &line[at..];
    let denies = ["is no ", "are no "].iter().any(|it| {
        text.match_indices(it).any(|(at, found)| {
            let before = text[..at].trim_end().to_ascii_lowercase();
            let after = &text[at + found.len()..];
            !before.ends_with("there") && !PLAIN.iter().any(|it| after.starts_with(it))
        })
    });
    denies || text.contains(" beside ")
}

#[test]
fn messages_say_that_something_is_not_an_object() {
    let mut found = Vec::new();
    for file in rust_files() {
        let path = file.to_string_lossy().into_owned();
        let is_test = path.starts_with("tests/") || path.contains("/tests");
        // Tests within a file follow the code.
        let text = read(&file);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let n = code.lines().filter(|it| is_quaint(it)).count();
        if 0 < n && !is_test {
            found.push((path, n));
        }
    }
    found.sort();
    let expected = RECORDED.map(|(path, n)| (path.to_owned(), n));
    assert_eq!(found, expected, "messages with \"is no\", \"are no\" or \"beside\"");
}

#[test]
fn plain_messages_are_told_from_others() {
    let lines = [
        r#"Err("`a` is no object".into())"#,
        r#""bytes that are no text""#,
        r#""a result beside the chain""#,
        r#""there is no agent {name}""#,
        r#""it is no longer there""#,
        r#"// It "is no object"."#,
        "let is_no_object = is no object;",
    ];
    assert_eq!(lines.map(is_quaint), [true, true, true, false, false, false, false]);
}
