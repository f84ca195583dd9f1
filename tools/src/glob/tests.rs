//! Glob against real trees.

use std::{
    fs::{self, File},
    time::Duration,
};

use super::*;
use crate::test_support::{World, structured};

fn age(world: &World, name: &str, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - seconds);
    File::open(world.root.join(name)).unwrap().set_modified(time).unwrap();
}

fn names(world: &mut World, input: serde_json::Value) -> Vec<String> {
    let result = structured(&world.ok::<Glob>(input));
    let all = result["filenames"].as_array().unwrap();
    let root = world.path("");
    all.iter().map(|name| name.as_str().unwrap().strip_prefix(&root).unwrap().into()).collect()
}
#[test]
fn of_many_files_the_hundred_newest_are_listed_ignored_ones_included() {
    let mut world = World::new();
    for i in 0..150 {
        let name = if i % 2 == 0 { format!("ignored/{i}") } else { format!("{i}") };
        world.file(&name, "");
        age(&world, &name, i);
    }
    world.file(".gitignore", "ignored/\n");
    age(&world, ".gitignore", 1000);
    let outcome = world.ok::<Glob>(json!({"pattern": "**/*"}));
    assert!(outcome.text.ends_with("\n(showing 100 of 151 files)"), "{}", outcome.text);
    let result = structured(&outcome);
    assert_eq!(
        (&result["numFiles"], &result["truncated"], &result["totalMatches"]),
        (&json!(100), &json!(true), &json!(151))
    );
    let first: Vec<_> = outcome.text.lines().take(2).map(String::from).collect();
    assert_eq!(first, [world.path("ignored/0"), world.path("1")]);
    assert!(outcome.text.contains(&world.path("99")) && !outcome.text.contains(&world.path("101")));
}

#[test]
fn stars_stay_in_a_directory_and_double_stars_do_not() {
    let mut world = World::new();
    for name in ["a.rs", "d/b.rs", "d/e/c.rs", "d/x.ts", ".h/d.rs", ".git/x.rs"] {
        world.file(name, "");
        age(&world, name, 5);
    }
    let cases: [(&str, &[&str]); 7] = [
        ("*.rs", &["a.rs"]),
        ("**/*.rs", &[".h/d.rs", "a.rs", "d/b.rs", "d/e/c.rs"]),
        ("d/*.{rs,ts}", &["d/b.rs", "d/x.ts"]),
        ("./d/**", &["d/b.rs", "d/e/c.rs", "d/x.ts"]),
        ("{ROOT}/d/*.rs", &["d/b.rs"]),
        (".git/*", &[".git/x.rs"]),
        ("*.py", &[]),
    ];
    for (pattern, expected) in cases {
        let pattern = pattern.replace("{ROOT}", world.root.to_str().unwrap());
        assert_eq!(names(&mut world, json!({"pattern": pattern})), expected, "{pattern}");
    }
    let outcome = world.ok::<Glob>(json!({"pattern": "*.py"}));
    assert_eq!(outcome.text, "No files found");
    let below = world.path("d");
    assert_eq!(names(&mut world, json!({"pattern": "*.rs", "path": below})), ["d/b.rs"]);
}

#[test]
fn hidden_paths_are_neither_listed_nor_entered() {
    let mut world = World::new();
    for name in ["a", "secret/key", "sub/.env", "sub/b"] {
        world.file(name, "");
        age(&world, name, 5);
    }
    std::os::unix::fs::symlink(world.root.join("secret/key"), world.root.join("link")).unwrap();
    let root = world.root.display().to_string();
    world.hidden = vec![format!("/{root}/secret"), format!("/{root}/**/.env")];
    assert_eq!(names(&mut world, json!({"pattern": "**/*"})), ["a", "sub/b"]);
    let inside = world.path("secret");
    assert_eq!(world.ok::<Glob>(json!({"pattern": "*", "path": inside})).text, "No files found");
}

#[test]
fn settings_leave_out_dot_files_and_ignored_files() {
    let mut world = World::new();
    for (name, content) in [("a", ""), (".b", ""), ("c", ""), (".gitignore", "c\n")] {
        world.file(name, content);
        age(&world, name, 5);
    }
    let off = |name: &str| (name.to_owned(), "false".to_owned());
    world.context.env = vec![off("CLAUDE_CODE_GLOB_HIDDEN")].into();
    assert_eq!(names(&mut world, json!({"pattern": "*"})), ["a", "c"]);
    world.context.env = vec![off("CLAUDE_CODE_GLOB_NO_IGNORE")].into();
    assert_eq!(names(&mut world, json!({"pattern": "*"})), [".b", ".gitignore", "a"]);
}

// REQ: TOL-1
#[test]
fn hostile_patterns_are_errors_whatever_their_length() {
    let mut world = World::new();
    world.file("b", "");
    for depth in [17, 300, 12_000, 40_000] {
        let pattern = format!("{}b{}", "{a,".repeat(depth), "}".repeat(depth));
        let why = world.failed::<Glob>(json!({ "pattern": pattern }));
        assert!(why.contains("a pattern has at most"), "{depth}: {why}");
    }
}

#[test]
fn patterns_and_places_that_cannot_be_are_errors() {
    let mut world = World::new();
    let file = world.file("f", "");
    let none = world.path("none");
    let cases = [
        (json!({"pattern": "a\u{0}"}), "NUL"),
        (json!({"pattern": "[z-a]"}), "invalid range"),
        (json!({"pattern": "../*"}), "`..`"),
        (json!({"pattern": "/elsewhere/*"}), "not below"),
        (json!({"pattern": "*", "path": none}), "does not exist"),
        (json!({"pattern": "*", "path": file}), "not a directory"),
    ];
    for (input, complaint) in cases {
        let why = world.failed::<Glob>(input);
        assert!(why.contains(complaint), "{why}");
    }
    fs::remove_file(file).unwrap();
}
