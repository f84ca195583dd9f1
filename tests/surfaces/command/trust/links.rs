//! Files of a repository that lead elsewhere.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::{super::CommandDirs, server::Bytes};
use crate::support::processes::fifo;

/// In the environment of the command, and in files outside of the workspace.
const SECRET: &str = "marker-5d1f0c";

/// A workspace, with secrets next to it.
fn place() -> CommandDirs {
    let place = CommandDirs::new();
    for name in ["CLAUDE.md", "secret.md", "sub/deep.md", "HEAD"] {
        place.file(&format!("../outside/{name}"), SECRET);
    }
    place
}

fn link(place: &CommandDirs, name: &str, target: impl AsRef<Path>) {
    let path = place.work().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// Nothing of what lies outside comes to the model server, though the rest of the prompt does.
#[track_caller]
fn check(place: &CommandDirs, case: &str) {
    let server = Bytes::done();
    let mut command = server.command(place, &["--setting-sources", "user,project,local"]);
    let ended: super::super::Ended = command.env("TEST_MARKER", SECRET).output().unwrap().into();
    let requests = server.requests().join("\n");
    assert_eq!(ended.code, Some(0), "{case}: {ended:?}");
    assert!(requests.contains("hello"), "{case}");
    assert!(!requests.contains(SECRET), "{case}: {requests}");
    assert!(!ended.stderr.contains(SECRET) && !ended.stdout.contains(SECRET), "{case}");
}

// REQ: CTX-2
#[test]
fn no_instruction_file_that_is_a_link_brings_a_byte_from_elsewhere() {
    for name in
        ["CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/a.md"]
    {
        for target in ["/proc/self/environ", "../outside/secret.md", "../../outside/secret.md"] {
            let place = place();
            link(&place, name, target);
            check(&place, &format!("{name} -> {target}"));
        }
    }
    let cases: [(&str, &[(&str, &str)]); 7] = [
        ("chain", &[("CLAUDE.md", "a"), ("a", "b"), ("b", "../outside/secret.md")]),
        ("directory", &[("d", "../outside"), ("CLAUDE.md", "d/secret.md")]),
        ("configuration", &[(".claude", "../outside")]),
        ("rules", &[(".claude/rules", "../../outside")]),
        ("directory of rules", &[(".claude/rules/x", "../../../outside/sub")]),
        ("root", &[("r", "/"), ("CLAUDE.md", "r/proc/self/environ")]),
        ("head", &[(".git/HEAD", "../../outside/HEAD")]),
    ];
    for (case, links) in cases {
        let place = place();
        links.iter().for_each(|(name, target)| link(&place, name, target));
        check(&place, case);
    }
    let place = place();
    place.file("CLAUDE.md", "@escape @../outside/secret.md @/proc/self/environ @d/secret.md");
    link(&place, "escape", "../outside/secret.md");
    link(&place, "d", "../outside");
    check(&place, "imports");
}

// REQ: CTX-2
#[test]
fn pipes_devices_and_huge_files_are_passed_over_at_once() {
    let place = place();
    fifo(&place.work().join("CLAUDE.md"));
    check(&place, "pipe");
    fs::remove_file(place.work().join("CLAUDE.md")).unwrap();
    link(&place, "CLAUDE.md", "/dev/zero");
    check(&place, "device");
    fs::remove_file(place.work().join("CLAUDE.md")).unwrap();
    let huge = fs::File::create(place.work().join("CLAUDE.md")).unwrap();
    huge.set_len(1 << 40).unwrap();
    check(&place, "huge");
}

// REQ: CTX-2, PRM-8
#[test]
fn link_that_stays_in_the_workspace_is_followed_and_a_deny_rule_hides_what_it_leads_to() {
    let hidden = ["--settings", r#"{"permissions": {"deny": ["Read(.env)", "Read(keys/**)"]}}"#];
    for (flags, shown) in [(&[][..], true), (&hidden[..], false)] {
        let place = CommandDirs::new();
        place.file(".env", "A-env");
        place.file("keys/b", "B-key");
        place.file("docs/c.md", "C-docs");
        place.file("docs/agents.md", "D-linked @c.md");
        place.file("CLAUDE.md", "top @.env @to-key @docs/agents.md");
        link(&place, "to-key", "keys/b");
        link(&place, "CLAUDE.local.md", "keys/b");
        let server = Bytes::done();
        let ended = server.run(&place, flags);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let request = server.requests().concat();
        for (text, expected) in
            [("A-env", shown), ("B-key", shown), ("C-docs", true), ("D-linked", true)]
        {
            assert_eq!(request.contains(text), expected, "{text} {flags:?}: {request}");
        }
    }
}

// REQ: TRN-4
#[test]
fn settings_and_servers_that_lead_elsewhere_are_refused_with_a_word() {
    let place = place();
    let hook = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}}"#;
    place.file("../outside/settings.json", hook);
    link(&place, ".claude", "../outside");
    let server = Bytes::done();
    let ended = server.run(&place, &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(".json: it is a link that leads out of"), "{ended:?}");
    assert!(server.requests().is_empty() && !place.work().join("ran").exists());
    fs::remove_file(place.work().join(".claude")).unwrap();
    place.file(
        "../outside/servers",
        r#"{"mcpServers": {"s": {"command": "touch", "args": ["ran"]}}}"#,
    );
    link(&place, ".mcp.json", "../outside/servers");
    let ended = server.run(&place, &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains(".mcp.json is not used: it is a link that leads out"),
        "{ended:?}"
    );
    assert!(!place.work().join("ran").exists());
}

#[test]
fn transcripts_are_not_written_through_a_link_nor_where_others_may_write() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    link(&place, ".transcripts", "../outside");
    let before = fs::read_dir(place.work().join("../outside")).unwrap().count();
    let server = Bytes::done();
    let ended = server.run(&place, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains(".transcripts is a link"), "{ended:?}");
    assert_eq!(fs::read_dir(place.work().join("../outside")).unwrap().count(), before);
    fs::remove_file(place.work().join(".transcripts")).unwrap();
    fs::create_dir(place.work().join(".transcripts")).unwrap();
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.work().join(".transcripts"), open).unwrap();
    let ended = server.run(&place, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("may be written by others"), "{ended:?}");
    assert!(server.requests().is_empty());
    fs::remove_dir_all(place.work().join(".transcripts")).unwrap();
    assert_eq!(server.run(&place, &[]).code, Some(0));
    let ignore = fs::read_to_string(place.work().join(".transcripts/.gitignore"));
    assert_eq!(ignore.unwrap(), "*\n");
}
