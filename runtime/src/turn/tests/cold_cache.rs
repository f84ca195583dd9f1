//! What is cleared while the provider's cache holds nothing, in whole sessions, and what goes on working then.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::{
    appending::read_of,
    play::Play,
    script::{allowing, calls, text},
    world::World,
};
use crate::{
    run::facts::{ASKS_CACHE, REVISION, SessionFacts},
    step5_model_call::wire_format::WireFormat,
    transcript::entry::RecordKind,
};

const MINUTE: u64 = 60_000;

/// How a session goes on after a file was read twice in its first run.
struct Pause {
    settings: Value,
    /// The settings of the second run.
    later: Value,
    minutes: u64,
    revision: u32,
    format: WireFormat,
    reopens: bool,
}

impl Default for Pause {
    fn default() -> Self {
        let settings = json!({ "model": "m" });
        Self {
            later: settings.clone(),
            settings,
            minutes: 0,
            revision: REVISION,
            format: WireFormat::default(),
            reopens: false,
        }
    }
}

/// Two runs; in the first a file is read as often as the newest results have room, and once before that.
fn session(pause: &Pause) -> Play {
    let mut world = World::with(pause.settings.clone(), Vec::new());
    let mut facts = SessionFacts::clone(&world.facts);
    facts.revision = pause.revision;
    facts.layers.clear();
    facts.providers[0].format = pause.format;
    world.facts = facts.into();
    let mut play = Play::new(world);
    read(&mut play, "a", 4);
    play.now += pause.minutes * MINUTE;
    if pause.reopens {
        play.reopen();
    }
    play.world.layers = [vec![allowing(pause.later.clone())]].into();
    read(&mut play, "b", 1);
    play.check_replay();
    play
}

fn read(play: &mut Play, run: &str, n_times: usize) {
    for i in 0..n_times {
        let id = format!("{run}{i}");
        play.world.answers.push_back(calls(&[&format!("{id}:Read:/w/src/a.rs")]));
        let said = format!("reading {id} {}", "word ".repeat(400));
        play.world.outcomes.insert(id, read_of("/w/src/a.rs", said));
    }
    play.world.answers.push_back(text("done"));
    play.run(run);
}

/// Why results were cleared, each reason once.
fn reasons(play: &Play) -> Vec<String> {
    let whys = play.records().filter_map(|it| match &it.what {
        RecordKind::Shaper { stage, fired: true, why, .. } if stage == "microcompact" => {
            why.split_once(": ").map(|it| it.1.to_owned())
        }
        _ => None,
    });
    let mut whys: Vec<String> = whys.collect();
    whys.dedup();
    whys
}

#[track_caller]
fn check(pause: Pause, expected: &[&str]) {
    let play = session(&pause);
    assert_eq!(reasons(&play), expected, "{}", play.log());
}

const OVER: &str = "the provider's cache is over";
const OTHER: &str = "another model is asked, which has nothing cached";
const OFF: &str = "the provider caches nothing";

fn caching(how: &str) -> Value {
    json!({ "model": "m", "ennead": { "promptCaching": how } })
}

// REQ: SHP-5, SES-3
#[test]
fn superseded_results_go_once_the_cache_is_over_and_not_before() {
    check(Pause { minutes: 4, ..Pause::default() }, &[]);
    check(Pause { minutes: 6, ..Pause::default() }, &[OVER]);
    check(Pause { minutes: 6, reopens: true, ..Pause::default() }, &[OVER]);
    check(Pause { minutes: 6, revision: ASKS_CACHE - 1, ..Pause::default() }, &[]);
    let hour = || Pause { settings: caching("1h"), later: caching("1h"), ..Pause::default() };
    check(Pause { minutes: 6, ..hour() }, &[]);
    // An idle time of an hour clears all that is old, and names no other reason.
    let mut longer = hour();
    for settings in [&mut longer.settings, &mut longer.later] {
        settings["ennead"]["shapers"] = json!({ "idleMinutesThreshold": 600 });
    }
    check(Pause { minutes: 61, ..longer }, &[OVER]);
}

// REQ: SHP-5, SES-3
#[test]
fn superseded_results_go_when_another_model_is_asked() {
    let other = || json!({ "model": "m2" });
    check(Pause { later: other(), ..Pause::default() }, &[OTHER]);
    check(Pause { later: other(), reopens: true, ..Pause::default() }, &[OTHER]);
    check(Pause { later: other(), revision: ASKS_CACHE - 1, ..Pause::default() }, &[]);
}

// REQ: SHP-5, SES-3
#[test]
fn superseded_results_go_at_once_where_nothing_is_cached() {
    let off = || Pause { settings: caching("off"), later: caching("off"), ..Pause::default() };
    check(off(), &[OFF]);
    check(Pause { revision: ASKS_CACHE - 1, ..off() }, &[]);
    // These servers cache without being asked.
    check(Pause { format: WireFormat::OpenAiChat, ..off() }, &[]);
    check(Pause { format: WireFormat::OpenAiChat, minutes: 6, ..off() }, &[OVER]);
}

// REQ: SHP-5, TOL-6
#[test]
fn cleared_result_of_read_is_kept_in_a_file_and_leaves_what_the_tools_know() {
    let play = session(&Pause { minutes: 6, ..Pause::default() });
    let last = play.requests.last().unwrap().request.body.to_bytes();
    let last = String::from_utf8(last.to_vec()).unwrap();
    assert!(!last.contains("reading a0 ") && !last.contains("reading a1 "), "{last}");
    assert!(last.contains("reading a3 ") && last.contains("reading b0 "), "the newest stay");
    // The call names the file as it is now, and the mark the text as it was read then.
    assert!(last.contains(r#""file_path":"/w/src/a.rs""#));
    for earlier in ["reading a0 ", "reading a1 "] {
        let (digest, _) = play.stored.iter().find(|it| it.1.starts_with(earlier)).unwrap();
        assert!(last.contains(&format!("/t/s/tool-results/{digest}.txt")), "{last}");
    }
    // What Edit goes by is what the tool noted, not what the model still sees.
    assert!(play.conversation.memory.tools.files.contains_key("/w/src/a.rs"));
}
