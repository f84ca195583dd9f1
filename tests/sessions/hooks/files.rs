//! Hooks that are fired when watched files have changed.

use std::{fs, path::Path, sync::Arc, time::Duration};

use ennead::{Ennead, SessionOptions, permission::Trust};
use ennead_runtime::transcript::entry::RecordKind;
use serde_json::{Value, json};

use super::{command, hooks};
use crate::support::{
    barrier::Barrier,
    held_timer::HeldTimer,
    record,
    scripted::{Scripted, TestDirs, alerts, finish, says, until_end},
    settings::SettingsJson as _,
    until::until,
};

/// Looks at files when the barrier lets it; limits of hooks are never reached.
async fn start(place: &TestDirs, model: &Arc<Scripted>, look: &Barrier) -> Ennead {
    let timer = HeldTimer::at(look).up_to(Duration::from_secs(10));
    Ennead::start(place.options(model).timer(Arc::new(timer))).await.unwrap()
}

/// Handlers of FileChanged for these names, and of other events.
fn watching(names: &str, handler: &Value, others: &[(&str, Value)]) -> Value {
    let mut table = json!({"FileChanged": [{"matcher": names, "hooks": [handler]}]});
    for (event, handler) in others {
        table[event] = json!([{"hooks": [handler]}]);
    }
    table
}

/// A command that keeps its input, and answers with this.
fn logs(log: &str, answer: &Value) -> Value {
    // One line is one write, also where two are at work.
    command(&format!("printf '%s\\n' \"$(cat)\" >> {log}; echo '{answer}'"))
}

fn watches(event: &str, paths: &[&str]) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "watchPaths": paths}})
}

/// What the handlers were given: the name of the file, and what has become of it.
fn seen(log: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let change = |line: &str| {
        let input: Value = serde_json::from_str(line).expect(line);
        let path = input["file_path"].as_str().unwrap();
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        assert_eq!(
            (&input["hook_event_name"], path.starts_with('/')),
            (&json!("FileChanged"), true)
        );
        (name.to_owned(), input["event"].as_str().unwrap().to_owned())
    };
    text.lines().map(change).collect()
}

fn change(name: &str, event: &str) -> (String, String) {
    (name.into(), event.into())
}

/// Ends of handlers of FileChanged on record: the file, how it ended, what came of it.
fn on_record(transcript: &Path) -> Vec<(String, String, String)> {
    let end = |what: RecordKind| match what {
        RecordKind::Hook { file: Some(file), ended, effect, .. } => {
            let name = Path::new(&file).file_name().unwrap().to_str().unwrap();
            Some((name.to_owned(), ended, effect))
        }
        _ => None,
    };
    record::records(transcript).into_iter().filter_map(|it| end(it.what)).collect()
}

async fn has_seen(log: &str, n: usize) {
    until("the hook has run", async || seen(log).len() == n).await;
}

// REQ: HKS-1, HKS-2, HKS-5
#[tokio::test]
async fn hooks_are_fired_when_watched_files_change_while_the_session_is_at_rest() {
    let place = TestDirs::new();
    let (log, named) = (place.text("log"), place.text("outside/named"));
    place.write("workspace/.envrc", "one");
    place.write("workspace/other", "one");
    place.write("outside/named", "one");
    let next = place.text("outside/next");
    let handler = logs(&log, &watches("FileChanged", &[&next]));
    let (look, model) = (Barrier::default(), says(vec![]));
    look.close();
    let ennead = start(&place, &model, &look).await;
    let first = command(&format!("echo '{}'", watches("SessionStart", &[&named])));
    // Of this one it is known by the first hook's answer alone which file it is for.
    let all = json!({"matcher": "*", "hooks": [handler]});
    let mut table = watching(".envrc|new", &command("true"), &[("SessionStart", first)]);
    table["FileChanged"].as_array_mut().unwrap().push(all);
    let options = place.session().setting("hooks", table);
    let session = ennead.open(options).await.unwrap();
    session.prompt("go").await.unwrap();
    look.arrived().await;
    // What nobody watches, and what hooks named.
    place.write("workspace/other", "another");
    place.write("outside/named", "another");
    look.open();
    has_seen(&log, 1).await;
    assert_eq!(seen(&log), [change("named", "change")]);
    let transcript = session.transcript().to_owned();
    until("its end is on record", async || on_record(&transcript).len() == 1).await;
    // Its answer has another file watched in place of that one.
    place.write("outside/named", "and another one");
    place.write("workspace/new", "one");
    has_seen(&log, 2).await;
    look.close();
    look.arrived().await;
    place.write("outside/next", "one");
    look.open();
    has_seen(&log, 3).await;
    fs::remove_file(place.path("workspace/.envrc")).unwrap();
    has_seen(&log, 4).await;
    let expected = [
        change("named", "change"),
        change("new", "add"),
        change("next", "add"),
        change(".envrc", "unlink"),
    ];
    assert_eq!(seen(&log), expected);
    // Two handlers are for the names of the matcher.
    until("all are on record", async || on_record(&transcript).len() == 6).await;
    assert!(on_record(&transcript).iter().all(|it| (&*it.1, &*it.2) == ("exited", "none")));
    assert_eq!(model.asked().len(), 1, "the model is not asked");
    session.prompt("more").await.unwrap();
    finish(ennead, session).await;
    // The files are not needed for that.
    fs::remove_dir_all(place.path("workspace")).unwrap();
    record::replayed(&transcript, 2);
}

/// What repositories may do with a change of `file` in the workspace, and with other files.
async fn of_repository(trust: Trust, answer: &Value) -> (Vec<(String, String)>, Vec<String>) {
    let place = TestDirs::new();
    let log = place.text("log");
    place.write("workspace/file", "one");
    place.write("outside/secret", "one");
    let answer = answer.to_string().replace("OUTSIDE", &place.text("outside"));
    let first = command(&format!("echo '{answer}'"));
    let own = watching("file", &logs(&log, &json!({})), &[("SessionStart", first)]);
    let mut own = json!({ "hooks": own });
    let groups = own["hooks"]["FileChanged"].as_array_mut().unwrap();
    groups.push(json!({"matcher": "../outside/secret", "hooks": [command("true")]}));
    groups.push(json!({"hooks": [logs(&log, &json!({}))]}));
    place.write("workspace/.claude/settings.json", &own.to_string());
    // The user watches the file outside, which is no matter of the repository.
    let (users, secret) = (place.text("users"), place.text("outside/secret"));
    let first = command(&format!("echo '{}'", watches("SessionStart", &[&secret])));
    let user = watching("*", &logs(&users, &json!({})), &[("SessionStart", first)]);
    let (look, model) = (Barrier::default(), says(vec![]));
    look.close();
    let ennead = start(&place, &model, &look).await;
    let options: SessionOptions = place.session().trust(trust).reads_settings(true);
    let session = ennead.open(options.setting("hooks", user)).await.unwrap();
    let mut events = session.events();
    session.prompt("go").await.unwrap();
    let alerts = alerts(&until_end(&mut events).await);
    look.arrived().await;
    place.write("workspace/file", "another");
    place.write("outside/secret", "another");
    look.open();
    // In one look all that has changed is seen.
    has_seen(&users, if trust == Trust::Untrusted { 1 } else { 2 }).await;
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    record::replayed(&transcript, 1);
    assert!(seen(&users).contains(&change("secret", "change")));
    (seen(&log), alerts)
}

// REQ: HKS-1, PRM-2
#[tokio::test]
async fn repository_watches_nothing_outside_of_the_workspace_and_nothing_without_trust() {
    let answer = watches("SessionStart", &["OUTSIDE/secret", "relative", "OUTSIDE/../etc/passwd"]);
    let (seen, alerts) = of_repository(Trust::Untrusted, &answer).await;
    assert_eq!(seen, []);
    assert!(!alerts.join("\n").contains("is not watched"), "{alerts:?}");
    let (seen, alerts) = of_repository(Trust::Trusted, &answer).await;
    assert!(seen.iter().all(|it| *it == change("file", "change")), "{seen:?}");
    let text = alerts.join("\n");
    for why in ["is not a name of a file", "files of the workspace alone", "not an absolute path"] {
        assert!(text.contains(why), "{why}: {text}");
    }
}

// REQ: HKS-1
#[tokio::test]
async fn files_are_watched_up_to_a_number() {
    let place = TestDirs::new();
    let paths: Vec<String> = (0..70).map(|it| format!("/no/such/{it}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let first = command(&format!("echo '{}'", watches("SessionStart", &paths)));
    let table = watching("file", &command("true"), &[("SessionStart", first)]);
    let (look, model) = (Barrier::default(), says(vec![]));
    let ennead = start(&place, &model, &look).await;
    let session = ennead.open(place.session().setting("hooks", table)).await.unwrap();
    let mut events = session.events();
    session.prompt("go").await.unwrap();
    let alerts = alerts(&until_end(&mut events).await);
    let expected =
        "`/no/such/63`, and what follows it, is not watched: 64 files are watched for hooks";
    assert_eq!(alerts, [expected]);
    finish(ennead, session).await;
}

// REQ: HKS-1
#[tokio::test]
async fn session_without_such_hooks_looks_at_no_file() {
    let place = TestDirs::new();
    let first = command(&format!("echo '{}'", watches("SessionStart", &["/no/such"])));
    let (look, model) = (Barrier::default(), says(vec![]));
    let timer = HeldTimer::at(&look).up_to(Duration::from_secs(10));
    let ennead = Ennead::start(place.options(&model).timer(Arc::new(timer.clone()))).await.unwrap();
    let options = place.session().setting("hooks", hooks("SessionStart", &[first]));
    let session = ennead.open(options).await.unwrap();
    session.prompt("go").await.unwrap();
    assert_eq!(timer.seconds(), [0; 0]);
    finish(ennead, session).await;
}
