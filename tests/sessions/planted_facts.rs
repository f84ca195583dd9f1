//! Forty facts in a session whose context was cleared and collapsed, asked for afterwards through the real Read tool.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
};

use ennead::{
    Ennead, RunEnd, SessionHandle,
    tool::{Access, CustomTool, ToolOutcome},
};
use serde_json::{Value, json};

use crate::support::scripted::{
    Asked, Reply, SESSION, Scripted, TestDirs, call, finish, model, text,
};
use crate::support::settings::SettingsJson as _;

/// Facts in a session, eight of each kind.
const N_FACTS: usize = 40;

/// Runs in which facts are planted, one of each kind.
const N_RUNS: usize = 8;

/// Lines of a file that are read at once.
const PAGE: usize = 40;

/// Where facts are planted, in the order of their numbers.
const KINDS: [&str; 5] = ["prompts", "answers", "long lines", "files", "instructions"];

fn fact(number: usize) -> String {
    format!("[fact {number:02} is as planted]")
}

/// A text with a fact in its middle.
fn amid(number: usize) -> String {
    let filler = "plain words ".repeat(150);
    format!("{filler}{}{filler}", fact(number))
}

/// A result of 22 KB on one line.
fn json_line(number: usize) -> String {
    let item = |it: usize| json!({ "item": it, "is": "plain", "of": number }).to_string();
    let mut items: Vec<String> = (0..600).map(item).collect();
    items.insert(300, json!({ "item": fact(number) }).to_string());
    format!("[{}]", items.join(","))
}

fn file(number: usize) -> String {
    let lines = format!("plain line of file {number}\n").repeat(100);
    format!("{lines}{}\n{lines}", fact(number))
}

/// What a model is asked, and what it says in turn.
struct Talk {
    model: Arc<Scripted>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    ennead: Ennead,
    session: SessionHandle,
}

impl Talk {
    /// Prompts the session; the model makes these calls, one by one, and then says this.
    async fn run(&self, prompt: &str, calls: Vec<Reply>, answer: &str) -> Asked {
        self.replies.lock().unwrap().extend(calls.into_iter().map(Reply::measured));
        self.replies.lock().unwrap().push_back(text(answer).measured());
        let outcome = self.session.prompt(prompt).await.unwrap();
        assert_eq!(outcome.end, RunEnd::NoPendingTools, "{prompt}: {outcome:?}");
        self.model.last()
    }

    /// What Read shows of a file in all its pages.
    async fn read(&self, number: usize, path: &str) -> String {
        let (mut all, mut offset) = (String::new(), 1);
        loop {
            let id = format!("read-{number}-{offset}");
            let input = json!({ "file_path": path, "offset": offset, "limit": PAGE });
            let asked = self.run("what was it?", vec![call(&id, "Read", input)], "that").await;
            let shown = asked.result(&id);
            assert!(!shown.starts_with("Permission denied"), "{shown}");
            let lines = shown.lines().filter_map(|it| it.split_once('\t')).map(|it| it.1);
            let lines: Vec<&str> = lines.collect();
            // Pieces of a line come one after the other, so that what lies across two of them is found.
            lines.iter().for_each(|it| all.push_str(it));
            if lines.len() < PAGE {
                return all;
            }
            offset += PAGE;
        }
    }
}

async fn talk(place: &TestDirs) -> Talk {
    for number in 24..32 {
        place.write(&format!("workspace/f{number}.txt"), &file(number));
    }
    let instructions: String = (32..40).map(fact).collect();
    place.write("workspace/CLAUDE.md", &instructions);
    let replies = Arc::new(Mutex::new(VecDeque::new()));
    let queue: Arc<Mutex<VecDeque<Reply>>> = Arc::clone(&replies);
    let model = model(move |asked| {
        if asked.user().contains("is about to be replaced by a summary") {
            return text("nothing of use").measured();
        }
        queue.lock().unwrap().pop_front().expect("it is asked as often as it answers")
    });
    let tool = CustomTool::raw("query", "", r#"{"type":"object"}"#, move |input, _| {
        let input: Value = serde_json::from_str(&input).unwrap();
        let number = input["number"].as_u64().unwrap();
        async move { ToolOutcome::ok(json_line(number as usize)) }
    });
    let tool = tool.access(Access::Free).read_only().output_cap(Some(1_000_000)).build().unwrap();
    let options = place.session().tool(Arc::new(tool)).setting(
        "ennead",
        json!({ "contextWindow": 80_000, "shapers": { "contextCollapse": true, "maxMessages": 100_000 } }),
    );
    let options = options.setting("permissions", json!({ "allow": ["Edit"] }));
    let ennead = place.start(&model).await;
    let session = ennead.open(options).await.unwrap();
    Talk { model, replies, ennead, session }
}

/// The kept files that a text names.
fn named(text: &str, place: &TestDirs) -> BTreeSet<String> {
    let directory = place.text(&format!("transcripts/{SESSION}/tool-results/"));
    let names = text.split(&directory).skip(1).filter_map(|it| it.split(']').next());
    names.map(|it| format!("{directory}{it}")).collect()
}

// REQ: SHP-3, SHP-5, SHP-6, SHP-11, TOL-7
#[tokio::test]
async fn each_fact_of_a_cleared_or_collapsed_text_is_shown_by_read_where_the_request_says() {
    let place = TestDirs::new();
    let talk = talk(&place).await;
    for run in 0..N_RUNS {
        let (line, path) = (16 + run, format!("f{}.txt", 24 + run));
        let calls = vec![
            call(&format!("q{run}"), "query", json!({ "number": line })),
            call(
                &format!("f{run}"),
                "Read",
                json!({ "file_path": place.text(&format!("workspace/{path}")) }),
            ),
        ];
        talk.run(&amid(run), calls, &amid(8 + run)).await;
    }
    let asked = talk.run("go on", Vec::new(), "on it").await.text;
    let is_summary = |it: &Asked| it.user().contains("is about to be replaced by a summary");
    assert!(!talk.model.asked().iter().any(is_summary), "no stage has dropped a message so far");
    // The file was changed by nobody, and its result is cleared: what Edit goes by is still known.
    let first = place.text("workspace/f24.txt");
    let shown: Vec<usize> = (0..N_FACTS).filter(|it| asked.contains(&fact(*it))).collect();
    assert!(!shown.contains(&24), "the result of the first file is cleared: {shown:?}");
    let input = json!({ "file_path": first, "old_string": fact(24), "new_string": "changed" });
    let edited = talk.run("change it", vec![call("e", "Edit", input)], "changed").await;
    assert!(!edited.results().iter().any(|it| it.0 == "e" && it.2), "{}", edited.result("e"));
    // Each file that the request names is read, and so is each that one of these names.
    let mut left: Vec<String> = named(&asked, &place).into_iter().collect();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    while let Some(path) = left.pop() {
        if !texts.contains_key(&path) {
            let text = talk.read(texts.len(), &path).await;
            left.extend(named(&text, &place));
            texts.insert(path, text);
        }
    }
    let mut found: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for number in 0..N_FACTS {
        let kind = KINDS[number / 8];
        let is_shown = shown.contains(&number);
        let is_read = texts.values().any(|it| it.contains(&fact(number)));
        assert!(is_shown || is_read, "{kind} {number} is neither shown nor in {:?}", texts.keys());
        found.entry(kind).or_default()[usize::from(!is_shown)] += 1;
    }
    // Cleared results, and collapsed texts, are among what was found by their references.
    for kind in &KINDS[..4] {
        assert_ne!(found[kind][1], 0, "{kind}: {found:?}");
    }
    assert_eq!(found["instructions"], [8, 0]);
    finish(talk.ennead, talk.session).await;
}
