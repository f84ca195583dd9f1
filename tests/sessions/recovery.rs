//! Recovery through whole sessions over a real socket: every sequence of outcomes up to length five.
//!
//! The sequence is in the prompt, and the server plays it. What must come of it is computed
//! here a second time, in as few words as possible, and not by the table that decides.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use ennead::{Event, RunEnd, SessionHandle, data::MessageKind, transcript};
use ennead_runtime::transcript::entry::RecordKind;
use futures::StreamExt;
use serde_json::json;

use crate::support::{
    clocked::ClockedSessions,
    model_server::{ModelServer, Reply, letting_through},
    record,
    scripted::{Asked, until_end},
    settings::SettingsJson as _,
};

/// ok, max_tokens, too long, 529, cut, stall.
const OUTCOMES: &str = "omlucs";

/// Sequences that one session plays, one prompt each.
const PER_SESSION: usize = 6;

/// Prompts in front of a sequence with one that is too long, so that there is something to
/// summarise after the newest messages, which always stay.
const WARM_UPS: usize = 1;

/// All sequences of these outcomes up to a length, the shortest first.
fn sequences(length: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut last = vec![String::new()];
    for _ in 0..length {
        last = last
            .iter()
            .flat_map(|it| OUTCOMES.chars().map(move |outcome| format!("{it}{outcome}")))
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// What a run must come to.
#[derive(Debug, PartialEq, Eq)]
struct ExpectedEnd {
    end: RunEnd,
    text: String,
    attempts: usize,
    model: &'static str,
}

/// What must come of a sequence; after its end everything is fine.
fn expected(name: &str, sequence: &str, has_second: bool) -> ExpectedEnd {
    let (mut raised, mut too_long, mut overloads, mut silences) = (0, 0, 0, 0);
    let (mut attempts, mut model) = (0, "first");
    for outcome in sequence.chars().chain(['o']) {
        attempts += 1;
        overloads = if outcome == 'u' { overloads + 1 } else { 0 };
        silences += usize::from(outcome == 's');
        // A model that was silent three times is not asked again.
        let is_given_up = outcome == 's' && 3 <= silences;
        let can_switch = has_second && model == "first";
        let end = match outcome {
            'o' => Some((RunEnd::NoPendingTools, format!("answer {name} {attempts}"))),
            'm' if raised == 3 => Some((RunEnd::Error, format!("half {name} {attempts}"))),
            'l' if too_long == 1 => Some((RunEnd::PromptTooLong, String::new())),
            _ if is_given_up && !can_switch => Some((RunEnd::Error, String::new())),
            _ => None,
        };
        if let Some((end, text)) = end {
            return ExpectedEnd { end, text, attempts, model };
        }
        raised += usize::from(outcome == 'm');
        too_long += usize::from(outcome == 'l');
        if can_switch && (overloads == 3 || is_given_up) {
            (overloads, silences, model) = (0, 0, "second");
        }
    }
    unreachable!("after the end everything is fine")
}

/// Plays the sequence that the last prompt names, and counts.
#[derive(Clone, Default)]
struct Player {
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Player {
    fn answer(&self, ask: &Asked) -> Reply {
        if ask.text.contains("is about to be replaced by a summary") {
            return Reply::text("A summary.");
        }
        let prompt = ask.text.rsplit("play ").next().unwrap_or_default();
        let mut words = prompt.split(' ');
        let (name, sequence) = (words.next().unwrap(), words.next().unwrap());
        let n = {
            let mut asked = self.asked.lock().unwrap();
            let n = asked.entry(name.to_owned()).or_default();
            *n += 1;
            *n
        };
        let text = |what: &str| json!({"type": "text", "text": format!("{what} {name} {n}")});
        // A call that is not finished must not run, whatever cuts the answer.
        let call =
            json!({"type": "tool_use", "id": format!("t{n}"), "name": "Touch", "input": "{\"a\":"});
        let half = || vec![text("half"), call.clone()];
        match sequence.chars().nth(n - 1).unwrap_or('o') {
            'm' => Reply::message(half(), "max_tokens"),
            'l' => Reply::error(
                400,
                "invalid_request_error",
                "prompt is too long: 300000 tokens > 200000 maximum",
            ),
            'u' => Reply::error(529, "overloaded_error", "Overloaded"),
            'c' => Reply::message(half(), "tool_use").cut(),
            's' => Reply::message(half(), "tool_use").stall(),
            _ => Reply::message(vec![text("answer")], "end_turn"),
        }
    }
}

struct Players {
    player: Player,
    server: ModelServer,
    sessions: ClockedSessions,
    has_second: bool,
}

impl Players {
    async fn start(has_second: bool) -> Self {
        let player = Player::default();
        let script = player.clone();
        let server = ModelServer::start(move |ask| script.answer(ask)).await;
        // The tool must never run.
        let sessions = ClockedSessions::start_with(|it| it.governor(letting_through())).await;
        Self { player, server, sessions, has_second }
    }

    /// With a key of its own, so that no session waits for what another one asks.
    async fn open(&self, number: usize) -> SessionHandle {
        let key = ("x-api-key".to_owned(), number.to_string());
        let mut endpoint = self.server.endpoint("here");
        endpoint.headers = endpoint.headers.iter().cloned().chain([key]).collect();
        let mut options = self.sessions.options(endpoint);
        options = options.own_setting("maxOutputTokens", 4_000.into());
        options.system_prompt = Some("Answer.".into());
        if self.has_second {
            options = options.setting("fallbackModel", json!(["second"]));
        }
        self.sessions.ennead.open(options).await.unwrap()
    }

    /// Plays sequences in one session, one after the other, and checks each and the transcript.
    async fn play(&self, number: usize, sequences: &[String]) {
        let session = self.open(number).await;
        self.check(&session, &format!("{number}-first"), "o").await;
        for (i, sequence) in sequences.iter().enumerate() {
            // A prompt that is too long is mended only where there is something to summarise.
            for n in 0..if sequence.contains('l') { WARM_UPS } else { 0 } {
                self.check(&session, &format!("{number}-{i}-{n}"), "o").await;
            }
            self.check(&session, &format!("{number}-{i}"), sequence).await;
        }
        session.close().await;
        let transcript = session.transcript().to_owned();
        let checked = tokio::task::spawn_blocking(move || transcript::verify(&transcript)).await;
        assert_eq!(checked.unwrap().unwrap_or_else(|it| panic!("{sequences:?}: {it}")).len(), 1);
    }

    async fn check(&self, session: &SessionHandle, name: &str, sequence: &str) {
        let expected = expected(name, sequence, self.has_second);
        let mut events = session.events();
        let padding = "word ".repeat(165);
        let prompt = format!("play {name} {sequence} {padding}");
        let outcome = session.prompt(prompt).await.unwrap();
        let seen = until_end(&mut events).await;
        let about = format!("{sequence} as {name}: {:?} {:?}", outcome.end, outcome.error);
        let asked = self.player.asked.lock().unwrap().get(name).copied();
        let fallback = outcome.fallback.as_ref().map_or("first", |it| &*it.model);
        assert_eq!(
            (outcome.end, &outcome.text, asked, fallback),
            (expected.end, &expected.text, Some(expected.attempts), expected.model),
            "{about}"
        );
        let n_answers = outcome.messages.iter().filter(|it| it.kind == MessageKind::Answer).count();
        assert_eq!(n_answers, usize::from(!expected.text.is_empty()), "{about}");
        assert_eq!(shown(&seen), expected.text, "{about}");
    }
}

/// What a listener shows at the end, who takes back what is withdrawn. Nothing is shown twice, and
/// nothing is withdrawn twice.
fn shown(seen: &[Event]) -> String {
    let mut shown: BTreeMap<u32, String> = BTreeMap::new();
    let mut withdrawn = Vec::new();
    for event in seen {
        match event {
            Event::TextDelta { attempt, text } => {
                assert!(!withdrawn.contains(attempt), "shown after its withdrawal: {seen:?}");
                // Only one attempt is open at a time.
                assert!(shown.keys().all(|it| it == attempt), "two at once: {seen:?}");
                shown.entry(*attempt).or_default().push_str(text);
            }
            Event::Withdrawn { attempt } => {
                assert!(!withdrawn.contains(attempt), "withdrawn twice: {seen:?}");
                withdrawn.push(*attempt);
                shown.remove(attempt);
            }
            _ => {}
        }
    }
    shown.into_values().collect()
}

/// Plays all sequences up to a length in sessions that run side by side.
async fn check_all(length: usize, n: usize, has_second: bool) {
    let all = sequences(length);
    assert_eq!(all.len(), n);
    let world = Players::start(has_second).await;
    let playing = all.chunks(PER_SESSION).enumerate().map(|(i, it)| world.play(i, it));
    futures::stream::iter(playing).buffer_unordered(24).for_each(async |()| {}).await;
    assert_eq!(*world.sessions.touched.lock().unwrap(), 0, "a call of an unfinished message ran");
    check_caps(&world);
    world.sessions.ennead.shutdown().await;
}

/// The counts of every turn, as the transcripts have them.
fn check_caps(world: &Players) {
    let transcripts =
        std::fs::read_dir(world.sessions.directory.path().join(".transcripts")).unwrap();
    let files = transcripts.map(|it| it.unwrap().path());
    let mut n_turns = 0;
    for file in files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")) {
        let mut turns: BTreeMap<_, Vec<RecordKind>> = BTreeMap::new();
        for record in record::records(&file) {
            if let (Some(run), RecordKind::ModelAttempt { .. }) = (&record.run, &record.what) {
                turns.entry((run.to_string(), record.turn)).or_default().push(record.what);
            }
        }
        n_turns += turns.len();
        for (turn, attempts) in turns {
            let of = |wanted: &str| {
                let is = |it: &&RecordKind| matches!(it, RecordKind::ModelAttempt { purpose, .. } if purpose == wanted);
                attempts.iter().filter(is).count()
            };
            let because = |wanted: &str| {
                let is = |it: &&RecordKind| matches!(it, RecordKind::ModelAttempt { cause: Some(cause), .. } if cause == wanted);
                attempts.iter().filter(is).count()
            };
            assert!(of("compaction") <= 1, "{turn:?}");
            assert!(of("turn") <= 6, "{turn:?}");
            assert!(because("max_output") <= 3, "{turn:?}");
            assert!(because("context_overflow") <= 1, "{turn:?}");
        }
    }
    assert!(0 < n_turns);
}

// REQ: MDL-4, MDL-5, MDL-6, MDL-7, MDL-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sequence_of_five_outcomes_ends_with_the_right_message() {
    check_all(5, 9_330, false).await;
}

// REQ: MDL-8, MDL-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sequence_of_four_outcomes_ends_right_with_a_model_to_turn_to() {
    check_all(4, 1_554, true).await;
}
