//! Commands that enter a directory through a link: real links, a real shell, and the transcript walked again.

use std::{fs, os::unix::fs::symlink};

use ennead::permission::PermissionMode;
use serde_json::json;

use super::result;
use crate::support::{record::verified, scripted::TestDirs};

const SECRET: &str = "marker-81d0";

fn place() -> TestDirs {
    let place = TestDirs::new();
    place.write("workspace/secrets/prod.key", SECRET);
    place.write("workspace/.git/config", "[core]\n");
    place.write("workspace/src/a.rs", "fn main() {}");
    symlink("secrets", place.path("workspace/lnk")).unwrap();
    symlink("lnk/prod.key", place.path("workspace/note")).unwrap();
    symlink(".git", place.path("workspace/g")).unwrap();
    place
}

/// What the model reads of a command; the transcript of its session holds all that decided.
async fn result_of(place: &TestDirs, command: &str) -> String {
    let options = place.session().mode(PermissionMode::Default);
    let options = options.deny("Read(secrets/**)").unwrap();
    let options = options.allow("Bash").unwrap().allow("Edit").unwrap();
    let result_of = result(place, options, "Bash", json!({ "command": command })).await;
    let files = fs::read_dir(place.path("transcripts")).unwrap().map(|it| it.unwrap().path());
    let files: Vec<_> = files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")).collect();
    assert_eq!(files.len(), 1);
    for file in files {
        ennead::transcript::verify(&file).unwrap_or_else(|error| panic!("{command}: {error}"));
        let _checked = verified(&file);
        fs::remove_file(file).unwrap();
    }
    result_of
}

// REQ: PRM-8, SES-4
#[tokio::test]
async fn denied_file_is_read_through_no_link_that_was_there() {
    let place = place();
    for command in [
        "cd lnk && cat prod.key",
        "pushd lnk && cat prod.key",
        "env -C lnk cat prod.key",
        "git -C lnk show :prod.key",
        "tar -C lnk -cf - prod.key",
        "(cd lnk; cat prod.key)",
        "cat lnk/prod.key",
        "cat < note",
        "cat l*/prod.key",
        "cat [n]ote",
    ] {
        let result_of = result_of(&place, command).await;
        assert!(
            result_of.starts_with("Permission denied: ") && !result_of.contains(SECRET),
            "{result_of}"
        );
        assert!(result_of.contains("Read(secrets/**)"), "{command}: {result_of}");
    }
    // Nothing else is in its way.
    for command in ["cd src && cat a.rs", "cat sr*/*.rs"] {
        assert!(result_of(&place, command).await.contains("fn main"), "{command}");
    }
}

// REQ: PRM-4, SES-4
#[tokio::test]
async fn protected_file_is_written_through_no_link_that_was_there() {
    let place = place();
    for command in [
        "cd g; echo x >> config",
        "(cd g; echo x > config)",
        "cp src/a.rs g*/config",
        "echo x >> g/config",
    ] {
        let result_of = result_of(&place, command).await;
        assert!(result_of.contains("protected path"), "{command}: {result_of}");
        assert_eq!(place.read("workspace/.git/config"), "[core]\n", "{command}");
    }
}
