//! What the manifests promise: which way dependencies point, and that a panic stays a failure of
//! one actor.

use std::{collections::BTreeSet, process::Command};

use toml::{Table, Value};

use super::{read, root};

/// All that the pure crate may depend on. None of these reads a clock, a file or a socket in the
/// way it is used; `purity` watches the calls.
const RUNTIME_MAY_USE: [&str; 18] = [
    "base64",
    "blake3",
    "bytes",
    "crc32fast",
    "fancy-regex",
    "futures-core",
    "globset",
    "http",
    "itoa",
    "jiff",
    "memchr",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "toml",
    "unicode-normalization",
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
fn an_embedder_gets_none_of_the_libraries_of_the_command() {
    let manifest = manifest("Cargo.toml");
    let found = dependencies(&manifest);
    for name in ["clap", "tikv-jemallocator", "tracing-subscriber"] {
        assert!(!found.iter().any(|it| it == name), "{name}");
    }
    // What serves is compiled on request alone.
    for name in ["axum", "hyper", "hyper-util", "tokio-rustls", "utoipa"] {
        let is_optional = manifest["dependencies"][name].get("optional");
        assert_eq!(is_optional, Some(&Value::Boolean(true)), "{name}");
    }
    let default = manifest["features"]["default"].as_array().unwrap();
    assert!(!default.iter().any(|it| it.as_str() == Some("serve")), "{default:?}");
}

/// The crates that are compiled for `ennead` with these features and no others, itself included.
fn crates(features: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", "ennead", "--edges", "normal,build"])
        .args(["--prefix", "none", "--no-default-features", "--features", features])
        .current_dir(root())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "{printed}");
    // `name v1.2.3 (proc-macro) (*)`
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    String::from_utf8(tree.stdout).unwrap().lines().map(name).collect()
}

// REQ: SUR-1
#[test]
fn a_minimal_embedder_compiles_at_most_120_crates() {
    let found = crates("");
    assert!(found.iter().any(|it| it.starts_with("ractor ")), "{found:?}");
    assert!(found.len() <= 120, "{}: {found:#?}", found.len());
}

#[test]
fn figures_have_the_crates_of_each_feature() {
    let manifest = manifest("Cargo.toml");
    let names =
        |it: &Value| it.as_array().unwrap().iter().map(|it| it.as_str().unwrap().into()).collect();
    let default: Vec<String> = names(&manifest["features"]["default"]);
    let page = read("docs/figures.md");
    let all = manifest["features"].as_table().unwrap().keys().filter(|it| *it != "default");
    for feature in all {
        let row = format!("| with `{feature}` | {} |", crates(feature).len());
        assert!(page.contains(&row), "{row}");
    }
    let (none, all) = (crates("").len(), crates(&default.join(",")).len());
    let with_serve = crates(&format!("{},serve", default.join(","))).len();
    let row = format!(
        "| `ennead` as it is by default | {all} |\n| the same with `serve` | {with_serve} |\n"
    );
    assert!(page.contains(&row), "{row}");
    let told = format!("By default an embedder compiles {all} crates.");
    assert!(read("docs/embedding.md").contains(&told), "{told}");
    for (page, told) in [
        ("docs/embedding.md", format!("the simulated model ({none} crates)")),
        ("actors/src/lib.rs", format!("without any, {none} crates are compiled")),
        ("ARCHITECTURE.md", format!("without them {none} crates are compiled")),
    ] {
        assert!(read(page).contains(&told), "{page}: {told}");
    }
}

#[test]
fn every_feature_of_the_library_is_checked_alone() {
    let manifest = manifest("Cargo.toml");
    let features = manifest["features"].as_table().unwrap().keys();
    let mut features: Vec<_> = features.map(String::as_str).filter(|it| *it != "default").collect();
    // The library without any is checked, too.
    features.insert(0, "\"\"");
    features.sort_unstable();
    let script = read(".ci/run");
    let lines = script.lines().filter(|it| !it.starts_with('#'));
    let calls = lines.filter_map(|it| Some(it.split_once(" check_each ")?.1));
    let mut checked: Vec<_> = calls
        .flat_map(|it| it.split_whitespace().take_while(|it| !matches!(*it, "&" | "||")))
        .collect();
    checked.sort_unstable();
    assert_eq!(checked, features);
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
    assert!(line(&read(".ci/run"), "cargo test --workspace --no-fail-fast \\"));
    assert!(line(&read(".github/workflows/ci.yml"), "- run: .ci/run"));
}

#[test]
fn the_first_look_is_built_without_optimisation_and_is_what_is_timed() {
    let quick = manifest("Cargo.toml")["profile"]["quick"].clone();
    // Tests want some packages optimised, and what inherits from `dev` has them so; a first look wants none.
    assert_eq!(quick["inherits"].as_str(), Some("release"));
    assert_eq!((quick["opt-level"].as_integer(), quick["lto"].as_str()), (Some(0), Some("off")));
    let command = "cargo run --profile quick -- demo tests/cases";
    let readme = read("README.md");
    let first = readme.split("```sh\n").nth(1).and_then(|it| it.lines().next());
    assert_eq!(first, Some(command));
    assert!(
        read(".ci/weight").contains(&format!("measured \"the demo\" \"$work/clone\" {command}"))
    );
}
