//! Sessions whose model is shown secrets, and the vault that keeps these for the holder of a key.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead::{
    Ennead, SessionOptions,
    data::{Checked, StoreAccess, TranscriptError},
    internal::new_vault_key,
    permission::PermissionMode,
    testing::FaultyStore,
    tool::{Access, CustomTool, ToolOutcome},
    transcript::{FileStore, TranscriptStore, verify},
};
use serde_json::{Map, json};

use super::redaction::{check_files, check_outside, planted, run_with, secrets};
use crate::support::{
    scripted::{SESSION, Scripted, TestDirs, call, calls, finish, model, text},
    settings::SettingsJson as _,
};

/// What a tool prints that was shown a placeholder elsewhere.
const LITERAL: &str = "[secret:github-token:1] [secret:github-token:2]";

fn transcript(place: &TestDirs) -> PathBuf {
    place.path(&format!("transcripts/{SESSION}.jsonl"))
}

fn vault(place: &TestDirs) -> PathBuf {
    place.path(&format!("transcripts/{SESSION}/vault"))
}

fn with_key(file: &Path, key: &str) -> Result<Vec<Checked>, TranscriptError> {
    let store: &dyn TranscriptStore = &FileStore::default();
    store.verify_with_vault(file, &[key.to_owned()])
}

/// Fails unless every line of all transcripts of a session is the same byte for byte, secrets included.
#[track_caller]
fn check_exact(file: &Path, key: &str, n_files: usize) {
    let all = with_key(file, key).unwrap();
    assert_eq!(all.len(), n_files);
    for checked in &all {
        assert_eq!(checked.up_to_redaction, 0, "{checked:?}");
        assert!(0 < checked.restored && checked.vault_gaps.is_empty(), "{checked:?}");
    }
    assert!(verify(file).unwrap().iter().any(|it| 0 < it.up_to_redaction && it.restored == 0));
}

/// Fails unless the session is replayed up to redaction, and this is named as a gap of its vault.
#[track_caller]
fn check_gap(file: &Path, key: &str, gap: &str) {
    let all = with_key(file, key).unwrap();
    assert!(0 < all[0].up_to_redaction, "{all:?}");
    let gaps = all[0].vault_gaps.join("; ");
    assert!(gaps.contains(gap), "{gaps} has not: {gap}");
    assert!(secrets().iter().all(|it| !gaps.contains(&it.1)), "{gaps}");
}

/// A tool that gives each secret, and what looks like a placeholder of one.
fn leaking() -> Arc<CustomTool> {
    let tool = CustomTool::raw("leak", "", r#"{"type":"object"}"#, |_, _| async {
        ToolOutcome::ok(format!("{LITERAL}\n{}{LITERAL}", planted()))
    });
    Arc::new(tool.access(Access::Free).build().unwrap())
}

fn options(place: &TestDirs, vault: &str) -> SessionOptions {
    let values = secrets().into_iter().rev().zip(["SHARED", "HIDDEN"]);
    let variables: Map<_, _> = values.map(|(it, name)| (name.to_owned(), it.0.into())).collect();
    let names: Vec<&String> = variables.keys().collect();
    let redact = json!({"redact": {"model": false, "vault": vault, "variables": names}});
    let options = place.session().mode(PermissionMode::BypassPermissions).tool(leaking());
    options.setting("ennead", redact).setting("env", variables.into())
}

/// A model that has the tool called once in each run, and repeats what it read.
fn leaked() -> Arc<Scripted> {
    model(|asked| {
        let n = asked.n_answers() / 2;
        let [first, second] = ["a", "b"].map(|it| format!("{it}{n}"));
        if asked.n_answers().is_multiple_of(2) {
            calls(&[(&first, "leak", json!({})), (&second, "leak", json!({}))])
        } else {
            text(&format!("I saw {} and {LITERAL}", asked.result(&second)))
        }
    })
}

// REQ: SES-8
#[tokio::test]
async fn holder_of_the_key_replays_exactly_what_nobody_else_can() {
    let (secret, public) = new_vault_key();
    let redact = json!({"variables": ["SHARED"], "model": false, "vault": public});
    let left = run_with(redact).await;
    // Secrets are in no file, the vaults included.
    check_outside(&left);
    let file = transcript(&left.place);
    let sidechains = left.place.sidechains();
    assert_eq!(sidechains.len(), 1);
    assert!(vault(&left.place).exists() && sidechains[0].with_extension("vault").exists());
    check_exact(&file, &secret, 2);
    check_exact(&sidechains[0], &secret, 1);
    // Another secret key, a text that is not a key, and the public key open nothing.
    let wrong = with_key(&file, &new_vault_key().0).unwrap_err();
    assert!(
        matches!(&wrong, TranscriptError::WrongVaultKey { vault: it } if *it == vault(&left.place))
    );
    // A sub-agent whose vault is somebody else's takes nothing from the others.
    let foreign = r#"{"v":1,"key":"0","sealed":""}"#;
    fs::write(sidechains[0].with_extension("vault"), format!("{foreign}\n")).unwrap();
    let all = with_key(&file, &secret).unwrap();
    assert!(all[0].up_to_redaction == 0 && all[0].vault_gaps.is_empty(), "{all:?}");
    assert_eq!(all[1].vault_gaps, ["1 entry is sealed to another key"], "{all:?}");
    for none in ["", "a key", &public] {
        let error = with_key(&file, none).unwrap_err();
        assert!(matches!(error, TranscriptError::NoVaultKey { .. }), "{none}: {error}");
    }
}

// REQ: SES-8
#[tokio::test]
async fn session_that_is_opened_again_is_replayed_with_what_it_read_then() {
    let (secret, public) = new_vault_key();
    let place = TestDirs::new();
    for n in 1..=3 {
        place.run(&leaked(), options(&place, &public)).await;
        check_files(&place.path("transcripts"));
        check_exact(&transcript(&place), &secret, 1);
        let vault = fs::read_to_string(vault(&place)).unwrap();
        assert!(n <= vault.lines().count());
    }
}

// REQ: SES-8
#[tokio::test]
async fn vault_with_gaps_leaves_a_replay_up_to_redaction_and_is_named() {
    let (secret, public) = new_vault_key();
    let place = TestDirs::new();
    place.run(&leaked(), options(&place, &public)).await;
    let (file, vault) = (transcript(&place), vault(&place));
    let whole = fs::read_to_string(&vault).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let with = |text: &str| fs::write(&vault, text).unwrap();
    assert!(2 < lines.len(), "{whole}");
    // As after a crash, and of each entry but for the last what is left of the others.
    with(&whole[..whole.len() - 20]);
    check_gap(&file, &secret, "the last entry is not whole");
    for n in 0..lines.len() {
        let mut damaged = lines.clone();
        damaged[n] = "{}\n";
        with(&damaged.concat());
        check_gap(&file, &secret, "1 entry is damaged");
        damaged.remove(n);
        with(&damaged.concat());
        assert!(0 < with_key(&file, &secret).unwrap()[0].up_to_redaction, "{n}");
    }
    with(&whole);
    check_exact(&file, &secret, 1);
    fs::remove_file(&vault).unwrap();
    check_gap(&file, &secret, "it is missing");
    assert_eq!(verify(&file).unwrap()[0].vault_gaps, Vec::<String>::new());
}

// REQ: SES-8
#[tokio::test]
async fn vault_that_cannot_be_written_holds_up_no_run() {
    let (secret, public) = new_vault_key();
    let place = TestDirs::new();
    let vault = vault(&place);
    fs::create_dir_all(&vault).unwrap();
    let outcome = place.run(&leaked(), options(&place, &public)).await;
    assert!(outcome.text.contains("I saw"), "{}", outcome.text);
    check_files(&place.path("transcripts"));
    fs::remove_dir(&vault).unwrap();
    check_gap(&transcript(&place), &secret, "it is missing");
}

// REQ: SES-8
#[tokio::test]
async fn there_is_no_vault_where_the_model_reads_placeholders_or_there_is_no_secret() {
    let (_, public) = new_vault_key();
    let place = TestDirs::new();
    let redact = json!({"redact": {"model": true, "vault": public}});
    place.run(&leaked(), options(&place, &public).setting("ennead", redact)).await;
    let quiet = TestDirs::new();
    let script = model(|asked| match asked.n_answers() {
        0 => call("a", "Bash", json!({"command": "echo hello"})),
        _ => text("done"),
    });
    let plain = quiet.session().mode(PermissionMode::BypassPermissions);
    let redact = json!({"redact": {"model": false, "vault": public}});
    quiet.run(&script, plain.setting("ennead", redact)).await;
    for place in [place, quiet] {
        assert!(transcript(&place).exists());
        assert!(!vault(&place).exists());
    }
}

// REQ: SES-8, SES-2
#[tokio::test]
async fn crash_of_the_writer_between_vault_and_transcript_loses_nothing_of_either() {
    let (secret, public) = new_vault_key();
    let mut n_appends = 1;
    let mut nth = 0;
    while nth < n_appends {
        for n_bytes in [0, 100, usize::MAX] {
            let place = TestDirs::new();
            let store = FaultyStore::new(Arc::new(FileStore::default()));
            store.crash_append(nth, n_bytes);
            let model = leaked();
            let started = place.options(&model).transcript_store(Arc::new(store.clone()));
            let ennead = Ennead::start(started).await.unwrap();
            let session = ennead.open(options(&place, &public)).await.unwrap();
            let outcome = session.prompt("go").await.unwrap();
            assert!(outcome.text.contains("I saw"), "{nth}, {n_bytes}: {}", outcome.text);
            finish(ennead, session).await;
            check_files(&place.path("transcripts"));
            let all = with_key(&transcript(&place), &secret).unwrap();
            assert_eq!(all[0].up_to_redaction, 0, "{nth}, {n_bytes}: {all:?}");
            assert!(0 < all[0].restored);
            n_appends = store.n_begun(StoreAccess::Append);
        }
        nth += 1;
    }
    assert!(8 < n_appends, "{n_appends}");
}
