//! What sessions reach on the disk of the server: the directories of their own tenant.
//!
//! The user of a tenant says yes to every question here, as one would who wants to know what is not hers.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::rig::Rig;
use crate::support::scripted::{Reply, Scripted, call, says};

/// Runs a prompt of the tenant `acme` to its end, and says yes to every question.
async fn run_with_yes(rig: &Rig, session: &str) {
    let headers = [("Accept", "text/event-stream")];
    let body = json!({ "prompt": "look" });
    let mut events = rig.stream(&format!("POST {session}/runs"), &headers, Some(body)).await;
    while let Some(event) = events.next().await {
        match event["type"].as_str() {
            Some("permission_asked") => {
                let open = rig.ask("GET /v1/approvals", None).await.ok(200);
                for it in open["approvals"].as_array().unwrap() {
                    let line = format!("POST /v1/approvals/{}", it["id"].as_str().unwrap());
                    let (digest, epoch) = (&it["digest"], &it["epoch"]);
                    let yes = json!({ "allow": true, "digest": digest, "epoch": epoch });
                    rig.ask(&line, Some(yes)).await;
                }
            }
            Some("outcome") => return,
            _ => {}
        }
    }
}

/// The results of the calls that the model made in the last run, one text.
fn results(model: &Scripted) -> Vec<(String, String, bool)> {
    model.asked().last().unwrap().results()
}

fn bash(id: &str, command: &str) -> Reply {
    call(id, "Bash", json!({ "command": command }))
}

fn on(id: &str, tool: &str, path: &Path, more: Value) -> Reply {
    let mut input = json!({ "file_path": path });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(id, tool, input)
}

/// Makes the files of another tenant, as its sessions leave them.
fn leave_files(directory: &Path) {
    for (name, text) in [
        ("state/transcripts/globex/0b1e0059-09c8-7a62-bc9c-5dda331a550f.jsonl", "launch code 0451"),
        ("work/globex/s/plan.txt", "launch code 0451"),
        ("work/acme/shared/own.txt", "notes of our own"),
    ] {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

// REQ: SUR-5, PRM-8
#[tokio::test]
async fn user_who_allows_her_own_questions_reaches_nothing_of_the_server_or_of_another_tenant() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let root = directory.path().canonicalize().unwrap();
    leave_files(&root);
    let (state, work) = (root.join("state"), root.join("work"));
    let tokens = state.join("tokens.json");
    let edit = json!({ "old_string": "\"user\"", "new_string": "\"admin\"", "replace_all": true });
    let answers = vec![
        bash("transcripts", &format!("cat {}/transcripts/globex/*.jsonl", state.display())),
        bash("upwards", "cat ../../globex/s/plan.txt ../../../state/tokens.json"),
        bash("sed", &format!("sed -i s/user/admin/ {}", tokens.display())),
        on("read", "Read", &tokens, json!({})),
        on("edit", "Edit", &tokens, edit),
        on("write", "Write", &tokens, json!({ "content": "{}" })),
        on("plan", "Read", &work.join("globex/s/plan.txt"), json!({})),
        call(
            "grep",
            "Grep",
            json!({ "pattern": "launch", "path": &root, "output_mode": "content" }),
        ),
        call("glob", "Glob", json!({ "pattern": "**/*.txt", "path": &work })),
        call(
            "link",
            "Bash",
            json!({ "command": "ln -s ../../globex/s/plan.txt here && cat here" }),
        ),
    ];
    let n = answers.len();
    let rig = Rig::start_in(directory, says(answers), |it| it).await;
    let before = fs::read(&tokens).unwrap();
    let session = rig.session(json!({ "directory": "s" })).await;
    run_with_yes(&rig, &session).await;
    let found = results(&rig.model);
    assert_eq!(found.len(), n);
    for (id, text, is_error) in &found {
        assert!(!text.contains("0451") && !text.contains("hash"), "{id}: {text}");
        let finds_nothing = ["grep", "glob"].contains(&id.as_str());
        assert!(*is_error || finds_nothing, "{id}: {text}");
    }
    assert_eq!(fs::read(&tokens).unwrap(), before, "nobody's role has changed");
    assert_eq!(rig.ask("GET /metrics", None).await.code(), "forbidden");
}

// REQ: SUR-5
#[tokio::test]
async fn session_works_with_the_files_of_its_own_tenant_and_with_its_own_results() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let root = directory.path().canonicalize().unwrap();
    leave_files(&root);
    let own = root.join("work/acme/shared/own.txt");
    let answers = vec![
        on("read", "Read", &own, json!({})),
        bash("cat", "cat own.txt"),
        bash("search", "grep -rn notes ."),
        call("grep", "Grep", json!({ "pattern": "notes", "output_mode": "content" })),
        on("write", "Write", &root.join("work/acme/shared/new.txt"), json!({ "content": "new" })),
    ];
    let rig = Rig::start_in(directory, says(answers), |it| it).await;
    let session = rig.session(json!({ "directory": "shared" })).await;
    run_with_yes(&rig, &session).await;
    let found = results(&rig.model);
    for (id, text, is_error) in &found {
        assert!(!is_error, "{id}: {text}");
        assert!(id == "write" || text.contains("notes of our own"), "{id}: {text}");
    }
    assert_eq!(fs::read_to_string(root.join("work/acme/shared/new.txt")).unwrap(), "new");
}
