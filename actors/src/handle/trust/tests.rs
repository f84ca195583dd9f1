//! What the user recorded, and what a repository would start.

use std::fs;

use serde_json::json;

use super::*;

struct TrustRecords {
    _keep: tempfile::TempDir,
    home: PathBuf,
}

impl TrustRecords {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let home = keep.path().canonicalize().unwrap().join("home");
        for directory in ["repo/.git", "repo/sub/deep", "repo/inner/.git", "notes/sub"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        Self { _keep: keep, home }
    }

    fn state(&self) -> PathBuf {
        self.home.join(".claude.json")
    }

    fn trusts(&self, directory: &str) -> bool {
        recorded_trust(&self.state(), &self.home.join(directory), &self.home).unwrap()
    }

    fn record(&self, directory: &str, value: Value) {
        let path = self.home.join(directory).to_str().unwrap().trim_end_matches('/').to_owned();
        let text = json!({"numStartups": 3, "projects": {
            path: {"hasTrustDialogAccepted": value, "history": [{"display": "hi"}]},
            "/other": {"allowedTools": []},
        }});
        fs::write(self.state(), text.to_string()).unwrap();
    }
}
#[test]
fn trust_is_inherited_below_and_ends_at_the_top_of_a_repository() {
    let world = TrustRecords::new();
    assert!(!world.trusts("repo"), "there is no record");
    for (recorded, trusted, untrusted) in [
        ("repo", &["repo", "repo/sub", "repo/sub/deep"][..], &["repo/inner", "notes"][..]),
        ("repo/sub", &["repo/sub", "repo/sub/deep"], &["repo", "repo/inner"]),
        ("repo/inner", &["repo/inner"], &["repo"]),
        ("notes", &["notes", "notes/sub"], &["repo"]),
        ("", &[""], &["repo", "repo/sub", "notes", "notes/sub"]),
    ] {
        world.record(recorded, true.into());
        trusted.iter().for_each(|it| assert!(world.trusts(it), "{recorded}: {it}"));
        untrusted.iter().for_each(|it| assert!(!world.trusts(it), "{recorded}: {it}"));
    }
}

#[test]
fn the_record_is_looked_for_where_the_environment_says_and_nowhere_without_a_home() {
    let world = TrustRecords::new();
    world.record("repo", true.into());
    let repo = world.home.join("repo");
    let empty = Environment::empty();
    assert!(!empty.recorded_trust(&repo).unwrap());
    assert!(empty.clone().home(&world.home).recorded_trust(&repo).unwrap());
    let elsewhere = empty.home(&world.home).with("CLAUDE_CONFIG_DIR", world.home.join("other"));
    assert!(!elsewhere.recorded_trust(&repo).unwrap(), "no record there");
    fs::create_dir(world.home.join("other")).unwrap();
    fs::rename(world.state(), world.home.join("other/.claude.json")).unwrap();
    assert!(elsewhere.recorded_trust(&repo).unwrap());
}

#[test]
fn only_a_plain_yes_is_trust() {
    let world = TrustRecords::new();
    for value in [json!(false), json!("true"), json!(1), json!(null), json!({})] {
        world.record("repo", value.clone());
        assert!(!world.trusts("repo"), "{value}");
    }
}

#[test]
fn record_that_cannot_be_read_is_an_error_and_one_in_the_workspace_counts_for_nothing() {
    let world = TrustRecords::new();
    fs::write(world.state(), "{").unwrap();
    let error = recorded_trust(&world.state(), &world.home.join("repo"), &world.home).unwrap_err();
    assert!(matches!(error, RecordError::NotARecord { .. }), "{error}");
    fs::remove_file(world.state()).unwrap();
    fs::create_dir(world.state()).unwrap();
    let error = recorded_trust(&world.state(), &world.home.join("repo"), &world.home).unwrap_err();
    assert!(matches!(error, RecordError::Unreadable { .. }), "{error}");
    fs::remove_dir(world.state()).unwrap();
    world.record("repo", true.into());
    let inside = world.home.join("repo/.claude.json");
    fs::rename(world.state(), &inside).unwrap();
    assert!(!recorded_trust(&inside, &world.home.join("repo"), &world.home).unwrap());
}

#[test]
fn what_waits_for_trust_is_listed_in_harmless_lines() {
    let world = TrustRecords::new();
    let repo = world.home.join("repo");
    fs::create_dir(repo.join(".claude")).unwrap();
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings =
        json!({"hooks": {"Stop": hook("a\u{1b}[2J\nb"), "PreToolUse": 1}, "env": {"A": ""}});
    fs::write(repo.join(".claude/settings.json"), settings.to_string()).unwrap();
    let local = json!({"hooks": {"PreToolUse": hook("c")}});
    fs::write(repo.join(".claude/settings.local.json"), local.to_string()).unwrap();
    let servers = json!({"mcpServers": {"s": {"command": "x"}}});
    fs::write(repo.join(".mcp.json"), servers.to_string()).unwrap();
    let all = [
        "MCP server `s` of .mcp.json",
        "Stop hook `a b` of .claude/settings.json",
        "PreToolUse hook `c` of .claude/settings.local.json",
        "variables A of .claude/settings.json",
    ];
    assert_eq!(waiting_for_trust(&repo, SettingSources::default()), all);
    let local = SettingSources { local: true, ..SettingSources::NONE };
    assert_eq!(waiting_for_trust(&repo, local), all[2..3]);
    assert_eq!(waiting_for_trust(&repo, SettingSources::NONE), [""; 0]);
    assert_eq!(waiting_for_trust(&repo.join("none"), SettingSources::default()), [""; 0]);
    let settings = json!({"env": {"A": "1", "CI": "1", "LANG": "/x", "NO_COLOR": 1}});
    fs::write(repo.join(".claude/settings.json"), settings.to_string()).unwrap();
    let unset = unset_until_trusted(&repo, SettingSources::default());
    assert_eq!(unset, ["variables A, LANG, NO_COLOR of .claude/settings.json"]);
    assert_eq!(unset_until_trusted(&repo, local), [""; 0]);
    let many: serde_json::Map<String, Value> =
        (0..50).map(|i| (format!("V{i}"), "1".into())).collect();
    let hooks = json!({"Stop": vec![hook("x")[0].clone(); 50]});
    let settings = json!({"env": many, "hooks": hooks});
    fs::write(repo.join(".claude/settings.json"), settings.to_string()).unwrap();
    let found = waiting_for_trust(&repo, SettingSources { project: true, ..SettingSources::NONE });
    assert_eq!(found[0], "MCP server `s` of .mcp.json", "nothing hides it");
    assert_eq!((found.len(), found[MAX_NAMED + 1].as_str()), (MAX_NAMED + 3, "30 more hooks"));
    assert!(found[MAX_NAMED + 2].contains("V26, 30 more of"), "{found:?}");
}
