//! `ennead eval`: figures about the shapers, over sessions that were recorded on the simulated model.

use std::{fs, path::Path, sync::Arc};

use ennead::{
    Endpoint, Ennead, Options, Placement, SessionOptions,
    internal::{SimulatedTransport, Simulator},
    testing::{ManualClock, Playbook},
};
use serde_json::{Value, json};

use super::{CommandDirs, text};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");

/// The marks between which the page on evaluation has the tables.
const BEGIN: &str = "<!-- tables, written by the test that holds them -->\n\n";
const END: &str = "\n<!-- end of the tables -->";

/// Where the sessions of the corpus are recorded; their paths lead there.
const WORKSPACE: &str = "/tmp/ennead-corpus";

const PLAYBOOK: &str = r#"
[[rule]]
name = "sums up"
when.prompt.regex = "replaced by a summary"
reply = [{ text = "Asked for: a look at every part, one prompt each. Parts so far hold numbered lines of plain text; nothing in them was changed. Decided: go on part by part, and say for each what its first line is. Open: the parts that were not looked at yet." }]

[[rule]]
name = "looks at a part, in three turns"
when.prompt.regex = '^look at part \d+'
when.answers = { max = 2 }
let.part = "prompt|number"
reply = [
  { text = "I look at the next piece of part {{ part }}." },
  { tool = "Read", input = { file_path = "part-{{ part }}-{{ answers }}.txt" } },
]

[[rule]]
name = "prints a part, in three turns"
when.prompt.regex = '^print part \d+'
when.answers = { max = 2 }
let.part = "prompt|number"
reply = [{ tool = "Bash", input = { command = "cat part-{{ part }}-{{ answers }}.txt" } }]

[[rule]]
name = "searches, with long results"
when.prompt.regex = '^search \d+'
when.answers = { max = 1 }
let.part = "prompt|number"
reply = [{ tool = "Grep", input = { pattern = "line", glob = "part-{{ part }}-*.txt", output_mode = "content" } }]

[[rule]]
name = "is done"
reply = [{ text = "It is as expected; the first line says which part it is." }]
"#;

/// Records a session with these settings of the shapers; after each prompt so many minutes pass.
async fn record(id: &str, prompts: &[String], minutes: u64, shapers: Value) {
    let clock = Arc::new(ManualClock::at(1_790_000_000_000));
    let playbook = Playbook::parse(PLAYBOOK, "corpus").unwrap();
    let options = Options::default()
        .placement(Placement::Ambient)
        .seed(7)
        .clock(clock.clone())
        .transport(Arc::new(SimulatedTransport::new(Simulator::new(playbook))));
    let ennead = Ennead::start(options).await.unwrap();
    let limits = json!({"window": 30_000, "max_output": 3_000, "default_output": 3_000});
    let mut session = SessionOptions::new(WORKSPACE, Endpoint::messages("http://model.test", None))
        .isolated()
        .home(Path::new(WORKSPACE).join("home"))
        .settings_json(json!({
            "model": "claude-sonnet-4-5",
            "permissions": {"defaultMode": "bypassPermissions"},
            "ennead": {
                "shapers": shapers,
                "catalogue": {"models": {"claude-sonnet-4-5": limits}},
            },
        }))
        .unwrap();
    session.transcripts = Some(Path::new(WORKSPACE).join("transcripts"));
    session.id = Some(id.into());
    let session = ennead.open(session).await.unwrap();
    for prompt in prompts {
        let outcome = session.prompt(prompt).await.unwrap();
        assert!(outcome.end.is_success(), "{prompt}: {outcome:?}");
        clock.advance(std::time::Duration::from_secs(60 * minutes));
    }
    session.close().await;
    ennead.shutdown().await;
}

#[tokio::test]
#[ignore = "it records the corpus anew"]
async fn corpus_is_recorded() {
    for old in [WORKSPACE, CORPUS] {
        let _absent = fs::remove_dir_all(old);
        fs::create_dir_all(old).unwrap();
    }
    for part in 0..10 {
        for piece in 0..3 {
            let line = |n| format!("part {part}, piece {piece}, line {n}: plain text to be read\n");
            let lines: String = (0..110).map(line).collect();
            fs::write(Path::new(WORKSPACE).join(format!("part-{part}-{piece}.txt")), lines)
                .unwrap();
        }
    }
    let prompts = |text: &str, n: u32| (1..=n).map(|it| format!("{text} {it}")).collect::<Vec<_>>();
    let id = |letter: &str| format!("0e000000-0000-4000-8000-00000000000{letter}");
    record(&id("a"), &prompts("look at part", 9), 1, json!({})).await;
    record(&id("b"), &prompts("print part", 5), 90, json!({})).await;
    let small = json!({"perResultCapChars": 8_000});
    record(&id("c"), &prompts("search", 6), 1, small).await;
    let gates = json!({"historySnip": true, "contextCollapse": true});
    record(&id("d"), &prompts("print part", 9), 1, gates).await;
    // What only a running session needs is not kept.
    let (transcripts, corpus) = (Path::new(WORKSPACE).join("transcripts"), Path::new(CORPUS));
    for entry in fs::read_dir(&transcripts).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if path.extension().is_some_and(|it| it == "jsonl") {
            fs::copy(&path, corpus.join(name)).unwrap();
        }
        let stored = fs::read_dir(path.join("stored")).into_iter().flatten();
        for text in stored.map(|it| it.unwrap().path()) {
            let target = corpus.join(name).join("stored");
            fs::create_dir_all(&target).unwrap();
            fs::copy(&text, target.join(text.file_name().unwrap())).unwrap();
        }
    }
    fs::remove_dir_all(WORKSPACE).unwrap();
}

// REQ: SHP-11
#[test]
fn tables_in_the_docs_are_those_of_the_corpus_and_the_chart_is_that_of_its_longest_session() {
    let place = CommandDirs::new();
    let ended = place.run(&["eval", CORPUS, "--chart", "chart.svg"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("4 sessions, "), "{}", ended.stdout);
    let drawn = fs::read_to_string(place.work().join("chart.svg")).unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("evaluation.md")).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (tables, after) = rest.split_once(END).unwrap();
    if std::env::var("ENNEAD_WRITE_EVALUATION").is_ok() {
        let page = format!("{before}{BEGIN}{}{END}{after}", ended.stdout);
        fs::write(docs.join("evaluation.md"), page).unwrap();
        fs::write(docs.join("evaluation.svg"), drawn).unwrap();
        return;
    }
    assert_eq!(tables, ended.stdout, "ENNEAD_WRITE_EVALUATION=1 writes them");
    assert_eq!(fs::read_to_string(docs.join("evaluation.svg")).unwrap(), drawn);
}

// REQ: SHP-11, TRN-3
#[test]
fn corpus_is_in_order() {
    let files = fs::read_dir(CORPUS).unwrap().map(|it| it.unwrap().path());
    let files: Vec<_> = files.filter(|it| it.is_file()).collect();
    let args: Vec<&str> = ["verify"].into_iter().chain(files.iter().map(|it| text(it))).collect();
    let ended = CommandDirs::new().run(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches(": in order, ").count(), 4, "{ended:?}");
}

// REQ: SHP-11
#[test]
fn one_stage_is_left_out_by_its_name_and_json_has_every_figure() {
    let place = CommandDirs::new();
    let args =
        ["eval", CORPUS, "--ablate", "microcompact", "--output-format", "json", "--chart", "c.svg"];
    let ended = place.run(&args);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["without"].as_array().unwrap().len(), 1);
    assert_eq!(found["without"][0][0], "microcompact");
    let fired = |totals: &Value| totals["stages"][2]["fired"].as_u64().unwrap();
    assert_eq!(fired(&found["without"][0][1]), 0);
    assert_ne!(fired(&found["all"]), 0);
    let fired = found["longest"].as_array().unwrap().iter();
    let fired: usize = fired.map(|it| it["fired"].as_array().unwrap().len()).sum();
    let drawn = fs::read_to_string(place.work().join("c.svg")).unwrap();
    // One mark for each firing, and one for each stage in the legend.
    assert_eq!(drawn.matches("<circle").count(), fired + 6);
}

// REQ: SHP-11
#[test]
fn what_holds_no_session_is_left_out_with_its_reason_and_a_wrong_stage_is_refused() {
    let place = CommandDirs::new();
    let ended = place.run(&["eval", CORPUS, "--ablate", "snap"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("there is no stage `snap`; take one of budget_reduction"));
    assert_eq!(place.run(&["eval", "nowhere"]).code, Some(2));
    place.file("sessions/torn.jsonl", "{\"type\":\n\u{fffd}\n");
    let ended = place.run(&["eval", text(&place.work().join("sessions"))]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stdout.contains("torn.jsonl is left out: it holds no run"), "{ended:?}");
    assert!(ended.stderr.contains("holds no recorded session"), "{ended:?}");
}

// REQ: SHP-11
#[test]
fn gap_between_what_was_logged_and_what_is_missing_is_printed() {
    let place = CommandDirs::new();
    let name = "0e000000-0000-4000-8000-00000000000b";
    let lines = fs::read_to_string(Path::new(CORPUS).join(format!("{name}.jsonl"))).unwrap();
    for entry in fs::read_dir(Path::new(CORPUS).join(name).join("stored")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        place.file(
            &format!("sessions/{name}/stored/{}", path.file_name().unwrap().display()),
            &text,
        );
    }
    let logged = |lines: &str| {
        place.file(&format!("sessions/{name}.jsonl"), lines);
        let sessions = place.work().join("sessions");
        let ended = place.run(&["eval", text(&sessions), "--output-format", "json"]);
        let found: Value = serde_json::from_str(&ended.stdout).unwrap();
        let ended = place.run(&["eval", text(&sessions)]);
        let line = ended.stdout.lines().find(|it| it.starts_with("logged when they ran: "));
        (found["logged"]["stages"][2].clone(), line.unwrap().to_owned())
    };
    let (stage, line) = logged(&lines);
    assert_ne!(stage["fired"], 0, "{stage}");
    // The first clearing claims 5,000 tokens more.
    let (before, rest) = lines.split_once(r#""fired":true,"tokens_before":"#).unwrap();
    let (number, rest) = rest.split_once(',').unwrap();
    let more = number.parse::<u64>().unwrap() + 5_000;
    let altered = format!(r#"{before}"fired":true,"tokens_before":{more},{rest}"#);
    let (claimed, other) = logged(&altered);
    assert_eq!(
        claimed["saved_once"].as_u64().unwrap(),
        stage["saved_once"].as_u64().unwrap() + 5_000
    );
    assert_ne!(line, other);
    assert!(other.contains(", a gap of -"), "{other}");
}
