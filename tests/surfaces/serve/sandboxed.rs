//! What commands of sessions reach that are confined: what a program does unseen is held by the kernel.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{client::ask, process::ServeDirs};
use crate::support::until::until;

/// Reads what is the tenant's own and what is not, and tries to change the tokens.
const LOOK: &str = "cat own.txt ../sibling/own.txt
cat ../../globex/s/plan.txt ../../../state/transcripts/globex/t.jsonl ../../../state/tokens.json
echo '{}' > ../../../state/tokens.json
ls ../.. ../../../state
echo looked
";

// REQ: SUR-5, TOL-10
#[tokio::test]
#[expect(clippy::print_stdout, reason = "what is skipped is worth knowing")]
async fn confined_script_reaches_neither_the_tokens_nor_another_tenant() {
    let place = ServeDirs::new();
    let doctor = place.command(&["doctor", "--sandbox", "--output-format", "json"]).output();
    let doctor: Value = serde_json::from_slice(&doctor.unwrap().stdout).unwrap();
    if !doctor["lacks"].is_null() {
        println!("1 skipped: commands cannot be confined here: {}", doctor["lacks"]);
        return;
    }
    let token = place.token("ci");
    let tmp = place.path("../tmp");
    fs::create_dir(&tmp).unwrap();
    for (path, text) in [
        (
            "../../home/.claude/settings.json",
            &*json!({ "sandbox": { "enabled": true, "tmpdir": tmp } }).to_string(),
        ),
        ("work/globex/s/plan.txt", "launch code 0451"),
        ("state/transcripts/globex/t.jsonl", "launch code 0451"),
        ("work/acme/s/own.txt", "notes of our own"),
        ("work/acme/s/look.sh", LOOK),
        ("work/acme/sibling/own.txt", "notes of a sibling"),
    ] {
        let path = place.path("ennead-server").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tokens = fs::read(place.path("ennead-server/state/tokens.json")).unwrap();
    let server = place.serve();
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", &*bearer)];
    let body = json!({ "directory": "s" });
    let made = ask(&server.address, "POST /v1/sessions", &headers, Some(&body)).await.ok(201);
    let runs = format!("/v1/sessions/{}/runs", made["id"].as_str().unwrap());
    let body = json!({ "prompt": "look" });
    let run = ask(&server.address, &format!("POST {runs}"), &headers, Some(&body)).await.ok(202);
    let line = format!("GET {runs}/{}", run["id"].as_str().unwrap());
    let mut run = json!(null);
    until("the run ends", async || {
        // The bearer allows whatever is asked.
        let open = ask(&server.address, "GET /v1/approvals", &headers, None).await.json();
        for it in open["approvals"].as_array().into_iter().flatten() {
            let yes = json!({ "allow": true, "digest": it["digest"], "epoch": it["epoch"] });
            let line = format!("POST /v1/approvals/{}", it["id"].as_str().unwrap());
            ask(&server.address, &line, &headers, Some(&yes)).await;
        }
        run = ask(&server.address, &line, &headers, None).await.json();
        run["state"] == "finished"
    })
    .await;
    let text = run["outcome"]["text"].as_str().unwrap();
    for own in ["notes of our own", "notes of a sibling", "looked"] {
        assert!(text.contains(own), "{text}");
    }
    assert!(!text.contains("0451") && !text.contains("hash"), "{text}");
    let after = fs::read(place.path("ennead-server/state/tokens.json")).unwrap();
    assert_eq!(after, tokens, "nothing writes them");
    server.send(Signal::TERM);
    assert_eq!(server.end().await, Some(0));
}
