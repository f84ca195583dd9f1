//! Sub-agents that work in a git worktree of their own.

use std::num::NonZeroU32;

use std::{path::Path, process::Command, sync::Arc};

use ennead::{SessionOptions, permission::PermissionMode, transcript};
use serde_json::{Value, json};

use super::{model, one_agent};
use crate::support::scripted::{Asked, Reply, SESSION, Scripted, TestDirs, call, text};

/// A workspace that is a repository of one commit.
fn repository() -> TestDirs {
    let place = TestDirs::new();
    place.write("workspace/a.txt", "old");
    place.write("workspace/CLAUDE.md", "house rules");
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["-c", "user.name=n", "-c", "user.email=n@test", "commit", "--quiet", "-m", "first"],
    ] {
        git(&place, arguments);
    }
    place
}

fn git(place: &TestDirs, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(place.path("workspace")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The directory that the agent is told to work in.
fn directory(asked: &Asked) -> String {
    let all = format!("{}\n{}", asked.system(), asked.user());
    let line = all.lines().find(|it| it.contains("Working directory")).unwrap().to_owned();
    line[line.find('/').unwrap()..].trim_end_matches(|it: char| !it.is_alphanumeric()).to_owned()
}

/// The agent makes one call and reports what came of it.
fn working(tool: &'static str, input: fn(&str) -> Value) -> Arc<Scripted> {
    let order = json!({"description": "d", "prompt": "work", "isolation": "worktree"});
    one_agent(order, move |asked: &Asked| -> Reply {
        match asked.n_answers() {
            0 => call("t", tool, input(&directory(asked))),
            _ => text(&format!("I was told: {}", asked.result("t"))),
        }
    })
}

async fn run(place: &TestDirs, model: &Arc<Scripted>, options: SessionOptions) -> String {
    place.run(model, options).await;
    let file = place.path(&format!("transcripts/{SESSION}.jsonl"));
    transcript::verify(&file).unwrap_or_else(|it| panic!("{it}"));
    model.last_of_top().result("a")
}

fn worktrees(place: &TestDirs) -> usize {
    git(place, &["worktree", "list"]).lines().count() - 1
}

/// What the tool said of its result for programs.
fn structured(place: &TestDirs) -> Value {
    let lines = place.lines();
    lines.iter().find(|it| it.get("toolUseResult").is_some()).unwrap()["toolUseResult"].clone()
}

fn write(name: &str, directory: &str) -> Value {
    json!({"file_path": format!("{directory}/{name}"), "content": "new"})
}

// REQ: AGT-1
#[tokio::test]
async fn what_an_agent_writes_stays_in_its_worktree() {
    let place = repository();
    let model = working("Write", |it| write("b.txt", it));
    let shown = run(&place, &model, place.session().mode(PermissionMode::AcceptEdits)).await;
    let result = structured(&place);
    let (path, branch) = (&result["worktreePath"], &result["worktreeBranch"]);
    let path = path.as_str().unwrap_or_else(|| panic!("{result}"));
    assert_eq!(std::fs::read_to_string(Path::new(path).join("b.txt")).unwrap(), "new");
    assert!(!place.has("workspace/b.txt"));
    assert!(shown.contains(path) && shown.contains(branch.as_str().unwrap()), "{shown}");
    assert_eq!((worktrees(&place), git(&place, &["status", "--porcelain"]).as_str()), (1, ""));
    // It is told the rules of its parent's place, once.
    let asked = &model.asked_by_agents()[0];
    assert_eq!(asked.user().matches("house rules").count(), 1);
}

// REQ: AGT-1
#[tokio::test]
async fn worktree_in_which_nothing_was_changed_is_removed() {
    let place = repository();
    let model = working("Read", |it| json!({"file_path": format!("{it}/a.txt")}));
    let shown = run(&place, &model, place.session()).await;
    assert!(shown.contains("old") && !shown.contains("worktree"), "{shown}");
    let result = structured(&place);
    assert!(result.get("worktreePath").is_none(), "{result}");
    assert_eq!(worktrees(&place), 0);
}

// REQ: AGT-1
#[tokio::test]
async fn worktree_of_an_agent_that_was_cut_off_goes_once_nobody_works_there() {
    let place = repository();
    let order = json!({"description": "d", "prompt": "work", "isolation": "worktree"});
    let model = model(move |asked: &Asked| -> Reply {
        let look = json!({"file_path": format!("{}/a.txt", directory(asked))});
        match (asked.is_agent(), asked.n_answers()) {
            // Longer than it may.
            (true, n) => call(&format!("t{n}"), "Read", look),
            (false, n) if n % 2 == 0 => call(&format!("a{n}"), "Agent", order.clone()),
            (false, _) => text("done"),
        }
    });
    let mut left = Vec::new();
    for call in ["a0", "a2", "a4"] {
        place.run(&model, place.session().max_turns(NonZeroU32::new(2).unwrap())).await;
        let shown = model.last_of_top().result(call);
        assert!(shown.contains("reached a limit") && shown.contains("in the worktree"), "{shown}");
        left.push(git(&place, &["worktree", "list", "--porcelain"]));
        assert_eq!(worktrees(&place), 1, "{left:?}");
    }
    left.dedup();
    assert_eq!(left.len(), 3, "{left:?}");
    // What is handed over is not locked; this one still is, as nobody was there to see to it.
    assert!(left[2].contains("\nlocked ennead: "), "{left:?}");
}

// REQ: CTX-2, AGT-1
#[tokio::test]
async fn rule_for_files_is_shown_to_an_agent_that_reads_such_a_file_in_its_worktree() {
    for (paths, is_shown) in [("*.txt", true), ("other/*.txt", false)] {
        let place = repository();
        place
            .write("workspace/.claude/rules/txt.md", &format!("---\npaths: \"{paths}\"\n---\nTXT"));
        let model = working("Read", |it| json!({"file_path": format!("{it}/a.txt")}));
        run(&place, &model, place.session()).await;
        let asked = model.asked_by_agents();
        assert!(!asked[0].user().contains("TXT"));
        assert_eq!(asked.last().unwrap().user().contains("TXT"), is_shown, "{paths}");
    }
}

// REQ: AGT-9, AGT-1
#[tokio::test]
async fn no_right_is_won_by_working_in_a_worktree() {
    type Case = (&'static str, fn(&str) -> Value);
    let own: Case = ("Write", |it| write("secret.txt", it));
    // `<workspace>/.claude/worktrees/<name>`
    let main: Case = ("Write", |it| write("../../../secret.txt", it));
    for (tool, input) in [own, main] {
        for rule in ["Edit(secret.txt)", "Edit(./secret.txt)", "Edit"] {
            let place = repository();
            let model = working(tool, input);
            let options =
                place.session().mode(PermissionMode::BypassPermissions).deny(rule).unwrap();
            let shown = run(&place, &model, options).await;
            let is_refused = shown.contains("Permission denied") || shown.contains("no tool");
            assert!(is_refused, "{rule}: {shown}");
            assert!(!place.has("workspace/secret.txt"), "{rule}");
        }
    }
}

// REQ: AGT-9, AGT-1
#[tokio::test]
async fn what_is_hidden_from_the_parent_is_hidden_from_an_agent_in_a_worktree() {
    type Case = (&'static str, fn(&str) -> Value);
    let shell: Case = ("Bash", |_| json!({"command": "cat ../../../secret.txt"}));
    let search: Case = (
        "Grep",
        |it| json!({"pattern": "hush", "path": format!("{it}/../../.."), "output_mode": "content"}),
    );
    for (tool, input) in [shell, search] {
        for is_denied in [false, true] {
            let place = repository();
            place.write("workspace/secret.txt", "hush, hush");
            let model = working(tool, input);
            let options = place.session().mode(PermissionMode::BypassPermissions);
            let options =
                if is_denied { options.deny("Read(./secret.txt)").unwrap() } else { options };
            let shown = run(&place, &model, options).await;
            assert_eq!(shown.contains("hush, hush"), !is_denied, "{tool}: {shown}");
        }
    }
}

// REQ: AGT-9, AGT-1
#[tokio::test]
async fn checkout_is_left_alone_in_every_mode() {
    type Case = (&'static str, fn(&str) -> Value);
    let cases: [Case; 4] = [
        ("Write", |it| write("../../../b.txt", it)),
        ("Bash", |_| json!({"command": "git -C ../../.. status > b.txt"})),
        ("Bash", |_| json!({"command": "cd ../../.. && echo x > b.txt"})),
        ("Bash", |_| json!({"command": "GIT_DIR=../../../.git git status"})),
    ];
    for (tool, input) in cases {
        let place = repository();
        let model = working(tool, input);
        let options = place.session().mode(PermissionMode::BypassPermissions);
        let shown = run(&place, &model, options).await;
        assert!(shown.contains("Permission denied"), "{shown}");
        assert_eq!(git(&place, &["status", "--porcelain"]), "");
    }
}

// REQ: TOL-8, AGT-1
#[tokio::test]
async fn no_command_of_an_agent_moves_the_next_one() {
    let place = repository();
    let order = json!({"description": "d", "prompt": "work", "isolation": "worktree"});
    let model = model(move |asked: &Asked| -> Reply {
        let ran = |id| call(id, "Bash", json!({"command": "mkdir -p sub && cd sub && pwd -P"}));
        let looked = |id| call(id, "Bash", json!({"command": "pwd -P"}));
        match (asked.is_agent(), asked.n_answers()) {
            (false, 0) => call("a", "Agent", order.clone()),
            (true, 0) => ran("t"),
            (true, 1) => looked("u"),
            (true, _) => text(&format!("{} {}", asked.result("t"), asked.result("u"))),
            (false, 1) => looked("own"),
            (false, _) => text("done"),
        }
    });
    let shown = run(&place, &model, place.session().mode(PermissionMode::BypassPermissions)).await;
    let (moved, next) = shown.split_once(' ').unwrap();
    assert_eq!(moved.trim_end().strip_suffix("/sub"), next.lines().next(), "{shown}");
    let workspace = place.path("workspace").canonicalize().unwrap();
    assert_eq!(model.last_of_top().result("own").trim_end(), workspace.to_str().unwrap());
}

// REQ: AGT-9, AGT-1
#[tokio::test]
async fn place_of_the_parent_is_not_the_workspace_of_the_agent() {
    let place = repository();
    let model = working("Write", |it| write("../../../b.txt", it));
    let shown = run(&place, &model, place.session().mode(PermissionMode::AcceptEdits)).await;
    assert!(shown.contains("Permission denied"), "{shown}");
    assert!(!place.has("workspace/b.txt"));
}

// REQ: AGT-1
#[tokio::test]
async fn without_a_repository_the_call_says_so_and_nobody_is_started() {
    let place = TestDirs::new();
    let model = working("Read", |it| json!({"file_path": it}));
    let shown = run(&place, &model, place.session()).await;
    assert!(shown.contains("not started") && shown.contains("not a git repository"), "{shown}");
    assert!(place.sidechains().is_empty());
}

// REQ: AGT-1
#[tokio::test]
async fn agent_in_a_worktree_gets_no_other_one_below_it() {
    let place = repository();
    let order = |_: &str| json!({"description": "d", "prompt": "more", "isolation": "worktree"});
    let model = working("Agent", order);
    let shown = run(&place, &model, place.session()).await;
    assert!(shown.contains("works in a worktree already; leave out isolation"), "{shown}");
    assert_eq!((place.sidechains().len(), worktrees(&place)), (1, 0));
}
