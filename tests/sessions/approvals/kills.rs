//! A process is killed while somebody is asked: the question is there again in the next one.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use ennead::{Endpoint, Ennead, Options, Placement, RunRequest, SessionOptions};

use super::*;
use crate::support::{
    scripted::{SESSION, calls},
    settings::SettingsJson as _,
};

/// Names the directory to the process that is killed.
const PLACE: &str = "ENNEAD_TEST_PLACE";

/// Has it change files.
const CHANGES: &str = "ENNEAD_TEST_CHANGES";

fn scripted() -> Arc<Scripted> {
    model(|asked: &Asked| match asked.results().len() {
        0 => bash("t", "echo ran >> made"),
        _ => text("done"),
    })
}

/// Changes one file more than pass without a question.
fn changing() -> Arc<Scripted> {
    model(|asked: &Asked| match asked.results().len() {
        0 => {
            let ids: Vec<String> = (0..6).map(|it| format!("w{it}")).collect();
            let input = |id: &String| json!({"file_path": id, "content": "x"});
            let all: Vec<_> = ids.iter().map(|it| (it.as_str(), "Write", input(it))).collect();
            calls(&all)
        }
        _ => text("done"),
    })
}

fn confirming(root: &std::path::Path) -> SessionOptions {
    options(root)
        .mode(PermissionMode::AcceptEdits)
        .own_setting("codeEdit", json!({"confirm": true}))
}

fn options(root: &std::path::Path) -> SessionOptions {
    let endpoint = Endpoint::messages("http://model.test", None);
    SessionOptions::new(root.join("workspace"), endpoint)
        .home(root.join("home"))
        .transcripts(root.join("transcripts"))
        .id(SESSION)
        .append_system_prompt("Be brief.")
        .answers_by_handle(true)
}

async fn start(model: &Arc<Scripted>) -> Ennead {
    let options = Options::default().placement(Placement::Ambient).transport(model.clone());
    Ennead::start(options).await.unwrap()
}

/// The process that is killed: it asks, names the question on standard output, and waits.
#[tokio::test]
#[ignore = "is run as a process of its own by the other tests here"]
async fn process_that_asks() {
    let Some(root) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let (model, options) = match std::env::var_os(CHANGES) {
        Some(_) => (changing(), confirming(&root)),
        None => (scripted(), options(&root)),
    };
    let ennead = start(&model).await;
    let session = ennead.open(options).await.unwrap();
    let of_run = session.clone();
    // Where a run is resumed this waits for its outcome.
    let request = RunRequest::new("go").run("r-1").system("Answer in one word.");
    let run = tokio::spawn(async move { of_run.run(request).await });
    let question = listed(&session).await;
    let mut out = std::io::stdout();
    writeln!(out, "\nquestion {}", question.id).unwrap();
    out.flush().unwrap();
    run.await.unwrap().unwrap();
}

/// Runs it until it has asked, and kills it. Returns the name of the question.
fn killed_while_asking(place: &TestDirs) -> String {
    killed(place, &[])
}

/// The same, with these variables.
fn killed(place: &TestDirs, variables: &[(&str, &str)]) -> String {
    let mut child: Child = Command::new(std::env::current_exe().unwrap())
        .envs(variables.iter().copied())
        .args([
            "sessions::approvals::kills::process_that_asks",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(PLACE, place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let named = out.lines().map_while(Result::ok);
    let id = named.into_iter().find_map(|it| it.strip_prefix("question ").map(str::to_owned));
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    id.expect("the process asks before it ends")
}

async fn listed(session: &SessionHandle) -> Question {
    let asked = async {
        loop {
            match session.approvals().pop() {
                Some(question) => return question,
                None => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(LIMIT, asked).await.expect("the question is there again")
}

// REQ: PRM-9, SES-4
#[tokio::test]
async fn question_survives_a_kill_and_its_call_runs_once_when_it_is_answered() {
    let place = TestDirs::new();
    let id = killed_while_asking(&place);
    // The second process goes on with the run, and is killed in its turn.
    assert_eq!(killed_while_asking(&place), id);
    let model = scripted();
    let ennead = start(&model).await;
    let session = ennead.open(options(&place.path(""))).await.unwrap();
    let question = listed(&session).await;
    assert_eq!(question.id.as_str(), id);
    assert!(!place.has("workspace/made"), "nothing runs before the answer");
    assert!(model.asked().is_empty(), "the model is not asked again");
    session.answer(&question.key(), "page", PermissionAnswer::allow()).await.unwrap();
    // Its outcome is there under the name of its run.
    let request = RunRequest::new("go").run("r-1");
    let outcome = tokio::time::timeout(LIMIT, session.run(request)).await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "done"));
    assert_eq!(place.read("workspace/made"), "ran\n");
    assert_eq!(model.asked().len(), 1);
    assert!(model.last().system().contains("Answer in one word."), "{}", model.last().system());
    let late = session.answer(&question.key(), "page", PermissionAnswer::allow()).await;
    assert_eq!(late.unwrap_err().code(), "answered");
    finish(ennead, session).await;
    check_transcript(&place);
    let bytes = std::fs::read(place.path(&transcript())).unwrap();
    let stored = |digest| {
        let file = format!("transcripts/{SESSION}/stored/{digest}.txt");
        std::fs::read_to_string(place.path(&file)).ok()
    };
    ennead_runtime::transcript::replay::replay(&bytes, &stored).unwrap();
}

// REQ: TOL-12, SES-4
#[tokio::test]
async fn changes_that_passed_before_a_kill_are_counted_after_it() {
    let place = TestDirs::new();
    let id = killed(&place, &[(CHANGES, "1")]);
    let model = changing();
    let ennead = start(&model).await;
    let session = ennead.open(confirming(&place.path(""))).await.unwrap();
    let question = listed(&session).await;
    assert_eq!((question.id.as_str(), question.call.id.as_str()), (&*id, "w5"));
    assert!(question.reason.contains("(5, `ennead.codeEdit`)"), "{}", question.reason);
    session.answer(&question.key(), "page", PermissionAnswer::deny("enough")).await.unwrap();
    let request = RunRequest::new("go").run("r-1");
    tokio::time::timeout(LIMIT, session.run(request)).await.unwrap().unwrap();
    // It was asked in each process, and nothing else was.
    assert!(records(&place, "question").iter().all(|it| it["id"] == *id));
    finish(ennead, session).await;
    let made = ["w0", "w4", "w5"].map(|it| place.has(&format!("workspace/{it}")));
    assert_eq!(made, [true, true, false]);
    check_transcript(&place);
}

// REQ: PRM-5, SES-4
#[tokio::test]
async fn without_a_surface_the_question_is_denied_and_the_model_reads_why() {
    let place = TestDirs::new();
    killed_while_asking(&place);
    let model = scripted();
    let ennead = start(&model).await;
    let session = ennead.open(options(&place.path("")).answers_by_handle(false)).await.unwrap();
    assert!(session.approvals().is_empty());
    session.prompt("go on").await.unwrap();
    finish(ennead, session).await;
    let shown = model.last().result("t");
    assert!(shown.contains("nobody is there to answer now; the call did not run"), "{shown}");
    assert!(!place.has("workspace/made"));
    assert!(records(&place, "approval").iter().any(|it| it["by"] == "nobody"));
    check_transcript(&place);
}
