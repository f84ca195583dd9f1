//! What the manifests promise: which way dependencies point, and that a panic stays a failure of
//! one actor.

use toml::{Table, Value};

use super::read;

/// All that the pure crate may stand on. None of these reads a clock, a file or a socket in the
/// way it is used; `purity` watches the calls.
const RUNTIME_MAY_USE: [&str; 20] = [
    "base64",
    "blake3",
    "bytes",
    "crc32fast",
    "fancy-regex",
    "futures-core",
    "globset",
    "http",
    "icu_normalizer",
    "itoa",
    "jiff",
    "memchr",
    "minijinja",
    "regex",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "toml",
    "unicode-segmentation",
];

fn manifest(path: &str) -> Table {
    read(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What the code of a crate may use, its tests aside, platforms included.
fn dependencies(manifest: &Table) -> Vec<String> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let tables = platforms.into_iter().flat_map(|it| it.values().filter_map(Value::as_table));
    [manifest]
        .into_iter()
        .chain(tables)
        .flat_map(|it| [it.get("dependencies"), it.get("build-dependencies")])
        .flatten()
        .flat_map(|it| it.as_table().expect("a table of dependencies").keys().cloned())
        .collect()
}

#[test]
fn the_runtime_stands_on_pure_libraries_only() {
    let found = dependencies(&manifest("runtime/Cargo.toml"));
    assert!(found.contains(&"serde".to_owned()), "{found:?}");
    let wrong: Vec<_> = found.iter().filter(|it| !RUNTIME_MAY_USE.contains(&it.as_str())).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn the_tools_stand_on_the_runtime_and_know_no_actor() {
    let found = dependencies(&manifest("tools/Cargo.toml"));
    assert!(found.contains(&"ennead-runtime".to_owned()), "{found:?}");
    assert!(!found.iter().any(|it| it == "ennead" || it == "ractor"), "{found:?}");
}

#[test]
fn an_embedder_without_the_command_gets_none_of_its_libraries() {
    let manifest = manifest("Cargo.toml");
    for name in ["axum", "clap", "tracing-subscriber"] {
        let optional = manifest["dependencies"][name].get("optional").and_then(Value::as_bool);
        assert_eq!(optional, Some(true), "{name}");
    }
}

// REQ: RUN-2
#[test]
fn no_profile_turns_a_panic_into_the_end_of_the_process() {
    let manifest = manifest("Cargo.toml");
    let profiles = manifest["profile"].as_table().unwrap();
    assert!(profiles.values().all(|it| it.get("panic").is_none()), "{profiles:?}");
}

#[test]
fn the_readme_tests_as_the_check_before_a_merge_does() {
    let line = |text: &str, of: &str| text.lines().any(|line| line.trim() == of);
    assert!(line(&read("README.md"), "cargo test --workspace"));
    assert!(line(&read(".ci/run"), "step \"tests\" cargo test --workspace"));
    assert!(line(&read(".github/workflows/ci.yml"), "- run: .ci/run"));
}
