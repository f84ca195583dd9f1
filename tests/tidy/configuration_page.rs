//! `docs/configuration.md` names every key of settings and every variable that the code reads. What
//! the types of settings hold is compared where these are; this is about names in the text of code.

use std::{collections::BTreeSet, path::Path};

use super::{read, rust_files};

/// Functions that read one variable or one setting, the name being their last argument or the first.
const READERS: [&str; 7] = ["number", "flag", "variable", "is_set", "time", "var", "var_os"];

/// Where settings are read: every name in capitals there is a variable, every name that is spelt as
/// keys are is a key.
const SETTINGS: [&str; 2] = ["runtime/src/step1_settings_resolution", "runtime/src/mcp/policy.rs"];

/// Names in those files that are not settings: members of lists, and lists of variables.
const MEMBERS: [&str; 3] = ["serverName", "serverUrl", "serverCommand"];

/// The code of a file without its tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

/// The texts in quotes of a line, each with what is in front of it.
fn quoted(line: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = line[at..].find('"').map(|it| at + it)
        && let Some(end) = line[begin + 1..].find('"').map(|it| begin + 1 + it)
    {
        found.push((&line[..begin], &line[begin + 1..end]));
        at = end + 1;
    }
    found
}

/// `MCP_TIMEOUT`: capitals, digits and at least one `_`.
fn is_variable(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_';
    text.contains('_') && text.bytes().all(fits) && text.as_bytes()[0].is_ascii_uppercase()
}

/// `defaultMode`: letters that begin small and have a capital among them.
fn is_camel(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphabetic())
        && text.bytes().next().is_some_and(|it| it.is_ascii_lowercase())
        && text.bytes().any(|it| it.is_ascii_uppercase())
}

/// Whether the text that follows is read as the name of a variable or of a setting.
fn is_read_by(before: &str) -> bool {
    let Some((call, arguments)) = before.rsplit_once('(') else { return false };
    let name = call.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
    !arguments.contains('"') && READERS.iter().any(|it| Some(*it) == name)
}

/// What the code reads by name.
fn read_by_name() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in rust_files() {
        let is_library =
            ["runtime/src", "tools/src", "actors/src"].iter().any(|it| path.starts_with(it));
        let is_test = path.components().any(|it| it.as_os_str() == "tests")
            || path.ends_with("tests.rs")
            || path.ends_with("page.rs");
        // Names that are taken away from child processes, and names that are dangerous there.
        let is_list = path.ends_with("secrets.rs") || path.ends_with("variables.rs");
        if !is_library || is_test || is_list {
            continue;
        }
        let is_settings = SETTINGS.iter().any(|it| path.starts_with(it) || path == Path::new(it));
        let text = read(&path);
        for line in without_tests(&text).lines().filter(|it| !it.trim_start().starts_with("//")) {
            for (before, text) in quoted(line) {
                if is_variable(text) && (is_settings || is_read_by(before)) {
                    found.insert(text.to_owned());
                }
                let last = text.rsplit('/').next().unwrap_or(text);
                if is_settings && is_camel(last) && !MEMBERS.contains(&last) {
                    found.insert(last.to_owned());
                }
            }
        }
    }
    found
}

/// The names in the first column of all tables; of a key its last part.
fn documented() -> BTreeSet<String> {
    let page = read("docs/configuration.md");
    let cells = page.lines().filter_map(|it| it.strip_prefix("| `")?.split('`').next());
    cells.map(|it| it.rsplit('.').next().unwrap_or(it).to_owned()).collect()
}

#[test]
fn keys_and_variables_that_the_code_reads_are_on_the_page_on_configuration() {
    let (read, documented) = (read_by_name(), documented());
    assert!(read.contains("MCP_TIMEOUT") && read.contains("baseRef"), "{read:?}");
    // A switch that is also a member of hooks has another spelling inside.
    let missing: Vec<_> =
        read.iter().filter(|it| !documented.contains(*it) && !is_spelling(it)).collect();
    assert!(missing.is_empty(), "read and not documented: {missing:?}");
}

/// Another way to write a name that is documented.
fn is_spelling(name: &str) -> bool {
    matches!(name, "FAIL_CLOSED" | "failClosed")
}

#[test]
fn variables_that_the_page_on_configuration_names_are_read() {
    let read = read_by_name();
    let unread: Vec<String> =
        documented().into_iter().filter(|it| is_variable(it) && !read.contains(it)).collect();
    assert!(unread.is_empty(), "documented and not read: {unread:?}");
}
