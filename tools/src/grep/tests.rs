//! Grep against real trees.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::*;
use crate::test_support::{World, structured};

/// Text of a search, with the root of the workspace taken out.
fn grep(world: &mut World, input: Value) -> String {
    let root = world.path("");
    world.ok::<Grep>(input).text.replace(&root, "")
}

fn world() -> World {
    let world = World::new();
    world.file("a.rs", "fn one() {}\nlet x = 1;\nfn two() {}\n");
    world.file("b/c.rs", "// FN\nfn three() {}\n");
    world.file("b/d.py", "def fn(): pass\n");
    world.file("e.txt", "nothing\n");
    world
}

// REQ: TOL-5
#[test]
fn every_mode_ends_with_totals_over_everything() {
    let totals = "Found 4 matching lines in 3 files (4 files searched).";
    let cases = [
        (json!({"pattern": "fn"}), "a.rs\nb/c.rs\nb/d.py"),
        (json!({"pattern": "fn", "output_mode": "count"}), "a.rs:2\nb/c.rs:1\nb/d.py:1"),
        (
            json!({"pattern": "fn", "output_mode": "content"}),
            "a.rs:1:fn one() {}\na.rs:3:fn two() {}\nb/c.rs:2:fn three() {}\nb/d.py:1:def fn(): pass",
        ),
        (
            json!({"pattern": "fn", "output_mode": "count", "head_limit": 1}),
            "a.rs:2\n\n(showing entries 1 to 1 of 3; continue with offset=1)",
        ),
        (
            json!({"pattern": "fn", "head_limit": 1, "offset": 1}),
            "b/c.rs\n\n(showing entries 2 to 2 of 3; continue with offset=2)",
        ),
        (json!({"pattern": "fn", "offset": 3}), "No entries at this offset (there are 3)"),
    ];
    let mut world = world();
    for (input, shown) in cases {
        assert_eq!(grep(&mut world, input), format!("{shown}\n\n{totals}"));
    }
    let none = "No matches found\n\nFound 0 matching lines in 0 files (4 files searched).";
    assert_eq!(grep(&mut world, json!({"pattern": "absent"})), none);
}

#[test]
fn options_choose_what_is_matched_and_shown() {
    let cases = [
        (json!({"pattern": "fn", "-i": true, "glob": "*.rs"}), "a.rs\nb/c.rs"),
        (json!({"pattern": "fn", "type": "py"}), "b/d.py"),
        (json!({"pattern": "fn", "glob": "!*.rs"}), "b/d.py"),
        (json!({"pattern": "fn", "glob": "b/**"}), "b/c.rs\nb/d.py"),
        (
            json!({"pattern": "three", "output_mode": "content", "-n": false, "-B": 1}),
            "b/c.rs-// FN\nb/c.rs:fn three() {}",
        ),
        (
            json!({"pattern": "one", "output_mode": "content", "-A": 1}),
            "a.rs:1:fn one() {}\na.rs-2-let x = 1;",
        ),
        (
            json!({"pattern": "x =", "output_mode": "content", "-C": 1}),
            "a.rs-1-fn one() {}\na.rs:2:let x = 1;\na.rs-3-fn two() {}",
        ),
        (
            json!({"pattern": "^.*(one|two|three)", "output_mode": "content", "context": 0}),
            "a.rs:1:fn one() {}\na.rs:3:fn two() {}\nb/c.rs:2:fn three() {}",
        ),
        (
            json!({"pattern": "\\w+\\(\\)$|e", "output_mode": "content", "-o": true, "type": "rust"}),
            "a.rs:1:e\na.rs:2:e\nb/c.rs:2:e\nb/c.rs:2:e",
        ),
        (
            json!({"pattern": "one.*two", "output_mode": "content", "multiline": true}),
            "a.rs:1:fn one() {}\na.rs:2:let x = 1;\na.rs:3:fn two() {}",
        ),
    ];
    let mut world = world();
    for (input, shown) in cases {
        let text = grep(&mut world, input.clone());
        assert_eq!(text.split("\n\n").next(), Some(shown), "{input}");
    }
}

#[test]
fn only_matching_counts_matches_and_lines() {
    let mut world = world();
    let input = json!({"pattern": "e", "output_mode": "content", "-o": true, "type": "rust"});
    let text = grep(&mut world, input);
    let totals = "Found 4 matches on 3 matching lines in 2 files (2 files searched).";
    assert!(text.ends_with(totals), "{text}");
}
#[test]
fn ignored_files_are_left_out_unless_they_are_named() {
    let mut world = World::new();
    world.file(".gitignore", "ignored\n");
    world.file(".git/x", "needle");
    world.file(".hidden", "needle");
    let ignored = world.file("ignored/f", "needle");
    let totals = "Found 1 matching lines in 1 files (2 files searched).";
    assert_eq!(grep(&mut world, json!({"pattern": "needle"})), format!(".hidden\n\n{totals}"));
    let named = grep(&mut world, json!({"pattern": "needle", "path": ignored}));
    assert!(named.starts_with("ignored/f\n"), "{named}");
}

// REQ: TOL-1
#[test]
fn nearer_ignore_files_win_and_those_of_git_end_at_the_repository() {
    let mut world = World::new();
    for (name, text) in [
        (".gitignore", "above\n*.log\n"),
        (".ignore", "far\n"),
        ("repo/.git/info/exclude", "excluded\n"),
        ("repo/.gitignore", "build/\n*.tmp\n!kept.tmp\n/only-here\n"),
        ("repo/.ignore", "!wanted.tmp\n"),
        ("repo/sub/.gitignore", "!again.tmp\n"),
    ] {
        world.file(name, text);
    }
    let files = [
        ("above", true),
        ("x.log", true),
        ("far", false),
        ("excluded", false),
        ("build/x", false),
        ("a.tmp", false),
        ("kept.tmp", true),
        ("wanted.tmp", true),
        ("only-here", false),
        ("sub/only-here", true),
        ("sub/again.tmp", true),
        ("sub/b.tmp", false),
    ];
    for (name, _) in files {
        world.file(&format!("repo/{name}"), "needle");
    }
    let place = world.path("repo");
    let found = grep(&mut world, json!({"pattern": "needle", "path": place}));
    for (name, is_found) in files {
        let line = format!("repo/{name}");
        assert_eq!(found.lines().any(|it| it == line), is_found, "{name}: {found}");
    }
    // A glob asks for what it names, ignored or not; what is in an ignored directory stays out.
    let found = grep(&mut world, json!({"pattern": "needle", "path": place, "glob": "{*.tmp,x}"}));
    assert!(found.contains("repo/a.tmp") && !found.contains("build/x"), "{found}");
}

// REQ: TOL-1
#[test]
fn hostile_globs_and_ignore_files_are_errors_or_count_for_nothing() {
    let nested = |n: usize| format!("{}b{}", "{a,".repeat(n), "}".repeat(n));
    let mut world = World::new();
    world.file("a", "needle");
    world.file("b", "needle");
    for depth in [17, 300, 40_000] {
        let why = world.failed::<Grep>(json!({"pattern": "needle", "glob": nested(depth)}));
        assert!(why.contains("a pattern has at most"), "{depth}: {why}");
        for name in [".gitignore", ".ignore", ".git/info/exclude"] {
            world.file(name, format!("{}\nb\n", nested(depth)));
            let found = grep(&mut world, json!({"pattern": "needle"}));
            assert!(found.starts_with("a\n\n"), "{name}, {depth}: {found}");
            world.file(name, "");
        }
    }
    world.file(".gitignore", "x/**/{a,b}*\n".repeat(100_000));
    assert!(grep(&mut world, json!({"pattern": "needle"})).starts_with("a\nb\n"));
    std::fs::remove_file(world.path(".gitignore")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", world.path(".gitignore")).unwrap();
    assert!(grep(&mut world, json!({"pattern": "needle"})).starts_with("a\nb\n"));
}
#[test]
fn what_cannot_be_searched_for_is_an_error_with_the_diagnostic() {
    let mut world = world();
    let none = world.path("none");
    let cases = [
        (json!({"pattern": "("}), "unclosed group"),
        (json!({"pattern": "a", "type": "klingon"}), "klingon"),
        (json!({"pattern": "a", "glob": "{a"}), "{a"),
        (json!({"pattern": "a", "path": none}), "does not exist"),
    ];
    for (input, complaint) in cases {
        let why = world.failed::<Grep>(input);
        assert!(why.contains(complaint), "{why}");
    }
}

#[test]
fn hidden_files_are_not_searched_and_links_not_followed() {
    let mut world = World::new();
    world.file("a", "needle");
    world.file("secret/key", "needle");
    world.file("sub/.env", "needle");
    std::os::unix::fs::symlink(world.root.join("secret/key"), world.root.join("link")).unwrap();
    let root = world.root.display().to_string();
    world.hidden = vec![format!("/{root}/secret"), format!("/{root}/**/.env")];
    let totals = "Found 1 matching lines in 1 files (1 files searched).";
    assert_eq!(grep(&mut world, json!({"pattern": "needle"})), format!("a\n\n{totals}"));
    let named = world.path("sub/.env");
    let text = grep(&mut world, json!({"pattern": "needle", "path": named}));
    assert!(text.starts_with("No matches found"), "{text}");
}

#[test]
fn binary_files_are_left_out_and_long_lines_cut() {
    let mut world = World::new();
    world.file("bin", b"needle\0\n");
    world.file("utf16", [0xff, 0xfe, b'n', 0, b'e', 0, b'e', 0, b'd', 0, b'l', 0, b'e', 0]);
    world.file("long", format!("needle{}\n", "x".repeat(600)));
    let text = grep(&mut world, json!({"pattern": "needle", "output_mode": "content"}));
    assert!(text.contains("… [106 more characters]"), "{text}");
    assert!(text.contains("utf16:1:needle"), "{text}");
    assert!(text.contains("(1 binary files left out)\nFound 2 matching"), "{text}");
}

#[test]
fn long_results_are_paged_by_characters_and_the_pages_cover_everything() {
    let mut world = World::new();
    world.file("f", format!("{}\n", "x".repeat(400)).repeat(100));
    let mut offset = 0;
    let mut n_pages = 0;
    loop {
        let input =
            json!({"pattern": "x", "output_mode": "content", "head_limit": 0, "offset": offset});
        let outcome = world.ok::<Grep>(input);
        assert!(outcome.text.chars().count() <= 20_000);
        let result = structured(&outcome);
        assert_eq!(result["totalLines"], 100);
        offset += result["numLines"].as_u64().unwrap();
        n_pages += 1;
        if result.get("appliedLimit").is_none() {
            break;
        }
    }
    assert_eq!((offset, n_pages > 1), (100, true));
}

#[test]
fn the_default_limit_shows_250_and_counts_the_rest() {
    let mut world = World::new();
    for (n_lines, limited) in [(250, false), (251, true)] {
        world.file("f", "x\n".repeat(n_lines));
        let outcome = world.ok::<Grep>(json!({"pattern": "x", "output_mode": "content"}));
        assert_eq!(outcome.text.contains("showing entries 1 to 250 of 251"), limited);
        assert_eq!(structured(&outcome)["totalLines"], n_lines);
    }
}
