//! What becomes due while a session lives, in the bytes of its requests.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::json;

use super::{
    caching::{bodies, content},
    play::Play,
    provider_cache::ProviderCache,
    script::{allowing, calls, text},
    world::World,
};
use crate::{
    digest::Digest,
    permission::Scope,
    run::facts::APPENDS,
    step3_context_assembly::{InstructionFile, PathRule},
    step5_model_call::cache_watch::DropReason,
    tool::{FileSeen, Todo, TodoStatus, ToolErrorKind, ToolNote, ToolOutcome, ToolSpec},
    transcript::entry::RecordKind,
    turn::effect::Purpose,
};

const DAY: u64 = 24 * 60 * 60 * 1_000;

fn file(path: &str, text: &str) -> InstructionFile {
    InstructionFile { scope: Scope::Project, path: path.into(), text: text.into() }
}

pub(super) fn read_of(path: &str, file_content: String) -> ToolOutcome {
    let seen =
        FileSeen { mtime_ns: 0, size: 0, digest: Digest::default(), partial: false, cells: None };
    let notes = vec![ToolNote::FileSeen { path: path.into(), seen }];
    ToolOutcome { notes, ..ToolOutcome::ok(file_content) }
}

/// A session with a rule for Rust files, and instructions at the top and in `src`.
fn world(settings: serde_json::Value) -> World {
    let mut world = World::with(settings, Vec::new());
    world.sources.instructions = vec![file("/w/CLAUDE.md", "FROM THE START")];
    world.sources.path_rules = vec![PathRule {
        path: "/w/.claude/rules/rust.md".into(),
        base: "/w".into(),
        paths: vec!["**/*.rs".into()],
        text: "RULE FOR RUST".into(),
    }];
    world.nested = vec![("src".into(), file("/w/src/CLAUDE.md", "NESTED WORDS"))];
    world
}

/// Adds a run of this many turns, each but the last with a call that says this much. `#` in
/// the path is the number of the turn.
fn go(play: &mut Play, run: &str, n_turns: usize, tool: &str, path: &str, n_chars: usize) {
    for i in 1..n_turns {
        let id = format!("{run}{i}");
        let path = path.replace('#', &i.to_string());
        play.world.answers.push_back(calls(&[&format!("{id}:{tool}:{path}")]));
        let file_content = format!("{i} {}", "word ".repeat(n_chars / 5));
        play.world.outcomes.insert(id, read_of(&path, file_content));
    }
    play.world.answers.push_back(text("done"));
    play.run(run);
}

/// Requests of turns: their bodies, with how often a summary was asked for before them.
fn turns(play: &Play) -> Vec<(String, usize)> {
    let all = bodies(play);
    let mut n_summaries = 0;
    let mut turns = Vec::new();
    for (request, body) in play.requests.iter().zip(all) {
        match request.purpose {
            Purpose::Compaction => n_summaries += 1,
            _ => turns.push((body, n_summaries)),
        }
    }
    turns
}

fn drops(play: &Play) -> Vec<DropReason> {
    let drops = play.records().filter_map(|it| match &it.what {
        RecordKind::ModelAttempt { cache_drop, purpose, .. } if purpose == "turn" => {
            Some(cache_drop.as_ref()?.reason)
        }
        _ => None,
    });
    drops.collect()
}

// REQ: CTX-7, CTX-2, SHP-7
#[test]
fn prefix_of_sixty_turns_stays_but_where_a_summary_or_a_model_takes_its_place() {
    let shapers = json!({ "ennead": { "maxTurns": 40, "shapers": {
            "autoCompactMaxTokens": 24_000, "exemptTools": ["Read"],
        } } });
    let mut world = world(shapers.clone());
    world.cache = Some(ProviderCache::default());
    let mut play = Play::new(world);
    // Ten minutes to midnight; an hour without a request would clear old results.
    play.now += 9 * 3_600_000 + 36 * 60_000;
    go(&mut play, "a", 20, "Read", "/w/src/a#.rs", 800);
    play.now += 20 * 60_000;
    play.world.sources.instructions = vec![file("/w/CLAUDE.md", "CHANGED SINCE")];
    go(&mut play, "b", 20, "Read", "/w/src/deep/b#.rs", 8_000);
    let mut other = shapers;
    other["model"] = "m2".into();
    play.world.facts = {
        let mut facts = crate::run::facts::SessionFacts::clone(&play.world.facts);
        facts.layers.clear();
        facts.into()
    };
    play.world.layers = [vec![allowing(other)]].into();
    play.conversation.facts = play.world.facts.clone();
    go(&mut play, "c", 20, "Note", "x", 200);
    let turns = turns(&play);
    assert_eq!(turns.len(), 60);
    let (mut n_switches, mut n_summaries) = (0, 0);
    for ((earlier, before), (later, after)) in turns.iter().zip(&turns[1..]) {
        let switched = later.contains(r#""model":"m2""#) && !earlier.contains(r#""model":"m2""#);
        n_switches += usize::from(switched);
        n_summaries += after - before;
        let goes_on = content(later).starts_with(&content(earlier));
        assert_eq!(goes_on, !switched && before == after, "{before} {after}\n{earlier}\n{later}");
        // What is in front of the conversation is never written again.
        let context = |it: &str| {
            let begin = it.find("FROM THE START").unwrap();
            it[it.find(r#""messages":["#).unwrap()..begin].to_owned()
        };
        assert_eq!(context(earlier), context(later));
        assert!(!later[..later.find("FROM THE START").unwrap()].contains("CHANGED SINCE"));
    }
    assert_eq!(n_switches, 1);
    assert!(1 <= n_summaries, "{}", play.log());
    let drops = drops(&play);
    assert_eq!(drops.len(), n_switches + n_summaries, "{drops:?}");
    let n_of = |reason| drops.iter().filter(|it| **it == reason).count();
    assert_eq!((n_of(DropReason::ModelSwitched), n_of(DropReason::Compaction)), (1, n_summaries));
    let last = &turns[59].0;
    assert!(last.contains("continues this conversation is m2"), "{last}");
    assert!(last.contains("CHANGED SINCE"));
    assert!(turns[20].0.contains("A new day has begun"));
}

// REQ: CTX-2, CTX-7
#[test]
fn rules_and_nested_files_are_appended_once_after_the_result_that_made_them_due() {
    let mut play = Play::new(world(json!({})));
    go(&mut play, "a", 4, "Read", "/w/src/a.rs", 100);
    let bodies = bodies(&play);
    assert!(!bodies[0].contains("RULE FOR RUST") && !bodies[0].contains("NESTED WORDS"));
    for body in &bodies[1..] {
        for part in ["RULE FOR RUST", "NESTED WORDS", "FROM THE START"] {
            assert_eq!(body.matches(part).count(), 1, "{part} in {body}");
        }
        assert!(body.find(r#""tool_use_id":"a1""#).unwrap() < body.find("RULE FOR RUST").unwrap());
    }
    play.check_replay();
    // Another process reads the sources anew and knows what was appended.
    play.reopen();
    go(&mut play, "b", 2, "Read", "/w/src/a.rs", 100);
    let last = self::bodies(&play).pop().unwrap();
    for part in ["RULE FOR RUST", "NESTED WORDS", "FROM THE START"] {
        assert_eq!(last.matches(part).count(), 1, "{part} in {last}");
    }
    play.check_replay();
}

// REQ: CTX-2
#[test]
fn new_day_and_changed_files_are_told_with_their_date_and_never_written_over() {
    let mut play = Play::new(world(json!({})));
    go(&mut play, "a", 2, "Note", "x", 10);
    play.now += DAY;
    play.world.sources.instructions[0].text = "CHANGED SINCE".into();
    go(&mut play, "b", 2, "Note", "x", 10);
    play.world.sources.instructions.clear();
    go(&mut play, "c", 2, "Note", "x", 10);
    let all = bodies(&play);
    assert!(all[0].contains("Date: 2026-09-21 (UTC)"), "{}", all[0]);
    assert!(!all[0].contains("A new day has begun"));
    assert!(all[2].contains("Today's date is 2026-09-22 (UTC)"), "{}", all[2]);
    assert!(all[2].contains("since 2026-09-22") && all[2].contains("CHANGED SINCE"));
    assert!(all[4].contains("/w/CLAUDE.md is gone as of 2026-09-22"), "{}", all[4]);
    let last = all.last().unwrap();
    for part in ["FROM THE START", "CHANGED SINCE", "A new day has begun", "is gone as of"] {
        assert_eq!(last.matches(part).count(), 1, "{part}");
    }
    play.check_replay();
}

// REQ: SHP-7
#[test]
fn work_under_way_is_there_after_a_compaction_whatever_the_summary_says() {
    let mut world = world(json!({ "ennead": { "shapers": { "autoCompactMaxTokens": 4_000 } } }));
    world.summaries = vec![text("NOTHING OF USE")].into();
    let mut play = Play::new(world);
    let todo = Todo {
        content: "MEND THE BRIDGE".into(),
        status: TodoStatus::InProgress,
        active_form: "mending".into(),
    };
    play.world.answers.push_back(calls(&["t:Note:x"]));
    let outcome = ToolOutcome { notes: vec![ToolNote::Todos(vec![todo])], ..ToolOutcome::ok("ok") };
    play.world.outcomes.insert("t".into(), outcome);
    play.world.answers.push_back(calls(&["e:Edit:/w/src/edited.rs"]));
    play.world.outcomes.insert("e".into(), read_of("/w/src/edited.rs", "changed".into()));
    play.world.sources.instructions[0].text = "FROM THE START".into();
    go(&mut play, "a", 8, "Note", "x", 4_000);
    let turns = turns(&play);
    let at = turns.iter().position(|it| it.1 == 1).expect("no summary was asked for");
    let after = &turns[at].0;
    for part in [
        "NOTHING OF USE",
        "under way: MEND THE BRIDGE",
        "now in /w/src/edited.rs",
        "FROM THE START",
    ] {
        assert!(after.contains(part), "{part} in {after}");
    }
    assert!(!after.contains("RULE FOR RUST"), "it is due again when the model reads there again");
    play.check_replay();
}

fn offer(world: &mut World, tool: &str) {
    let facts = Arc::make_mut(&mut world.facts);
    let note = facts.tools.iter().find(|it| it.name.as_str() == "Note").unwrap();
    let spec = ToolSpec { name: tool.into(), ..ToolSpec::clone(note) };
    facts.tools.push(Arc::new(spec));
}

/// A call that writes one task.
fn writes_task(play: &mut Play, content: &str) {
    let todo = Todo {
        content: content.into(),
        status: TodoStatus::InProgress,
        active_form: "mending".into(),
    };
    let input = json!({ "todos": [&todo] }).to_string();
    play.world.answers.push_back(calls(&[&format!("t:TodoWrite:{input}")]));
    let outcome = ToolOutcome { notes: vec![ToolNote::Todos(vec![todo])], ..ToolOutcome::ok("ok") };
    play.world.outcomes.insert("t".into(), outcome);
}

// REQ: SHP-7, SHP-4
#[test]
fn list_of_tasks_is_shown_again_when_its_turn_is_snipped_and_only_then() {
    let limits = json!({ "window": 32_000, "max_output": 2_000, "default_output": 2_000 });
    let settings = json!({ "model": "m", "ennead": {
        "catalogue": { "models": { "m": limits } }, "shapers": { "historySnip": true },
    } });
    let mut world = world(settings);
    offer(&mut world, "TodoWrite");
    let mut play = Play::new(world);
    writes_task(&mut play, "MEND THE BRIDGE");
    go(&mut play, "a", 2, "Note", "x", 100);
    for run in ["b", "c", "d", "e", "f", "g"] {
        go(&mut play, run, 10, "Note", "x", 6_000);
    }
    let n_snips = play.records().filter(|it| match &it.what {
        RecordKind::Shaper { stage, fired, .. } => stage == "snip" && *fired,
        _ => false,
    });
    assert_ne!(n_snips.count(), 0, "the test is about snips");
    let shown = "Your list of tasks, as of";
    let (mut first, mut again) = (0, 0);
    for (body, _) in turns(&play).into_iter().skip(1) {
        let (called, shown_count) =
            (body.matches("MEND THE BRIDGE").count(), body.matches(shown).count());
        assert!(called <= 1, "it is shown once: {body}");
        first += called - shown_count;
        again += shown_count;
    }
    assert!(0 < first && 0 < again, "{first} {again}");
    let last = turns(&play).pop().unwrap().0;
    assert!(last.contains("under way: MEND THE BRIDGE"), "{last}");
    play.check_replay();
}

// REQ: SES-3, SHP-7
#[test]
fn list_of_tasks_outlives_its_process() {
    let mut world = world(json!({ "ennead": { "shapers": { "autoCompactMaxTokens": 4_000 } } }));
    world.summaries = vec![text("NOTHING OF USE")].into();
    offer(&mut world, "TodoWrite");
    let mut play = Play::new(world);
    writes_task(&mut play, "MEND THE BRIDGE");
    go(&mut play, "a", 2, "Note", "x", 100);
    play.reopen();
    go(&mut play, "b", 8, "Note", "x", 4_000);
    let turns = turns(&play);
    let at = turns.iter().position(|it| it.1 == 1).expect("no summary was asked for");
    assert!(turns[at].0.contains("under way: MEND THE BRIDGE"), "{}", turns[at].0);
    play.check_replay();
}

/// A call that loads a skill with this text.
fn loads_skill(play: &mut Play, skill: &str, shown_count: &str) {
    play.world.answers.push_back(calls(&[&format!("s{skill}:Skill:{skill}")]));
    play.world.outcomes.insert(format!("s{skill}"), ToolOutcome::ok(shown_count));
}

// REQ: SHP-7, SES-3
#[test]
fn skill_that_was_loaded_is_shown_again_after_a_compaction_and_only_then() {
    for reopens in [false, true] {
        let shapers = json!({ "autoCompactMaxTokens": 4_000 });
        let mut world = world(json!({ "ennead": { "shapers": shapers } }));
        world.summaries = vec![text("NOTHING OF USE"); 2].into();
        offer(&mut world, "Skill");
        let mut play = Play::new(world);
        loads_skill(&mut play, "pot", "TAKE CLAY");
        loads_skill(&mut play, "gone", "NOT LOADED");
        let failed = ToolOutcome::failed(ToolErrorKind::Failed, "NOT LOADED");
        play.world.outcomes.insert("sgone".into(), failed);
        go(&mut play, "a", 2, "Note", "x", 100);
        if reopens {
            play.reopen();
        }
        go(&mut play, "b", 16, "Note", "x", 4_000);
        let turns = turns(&play);
        let n_told = |(body, _): &(String, usize)| body.matches("TAKE CLAY").count();
        let first = turns.iter().find(|it| 0 < n_told(it)).unwrap();
        assert!(!first.0.contains("The skill pot, which you loaded"), "the call shows it");
        assert!(turns.iter().all(|it| n_told(it) <= 1), "it is shown once");
        let (last, n_summaries) = turns.last().unwrap();
        assert_ne!(*n_summaries, 0, "the test is about compactions");
        assert!(last.contains("The skill pot, which you loaded"), "{last}");
        assert!(!last.contains("The skill gone"), "{last}");
        play.check_replay();
    }
}

// REQ: SES-3
#[test]
fn session_of_the_revision_before_is_walked_again_as_it_was_recorded() {
    let mut world = world(json!({}));
    let mut facts = crate::run::facts::SessionFacts::clone(&world.facts);
    facts.revision = APPENDS - 1;
    world.facts = facts.into();
    let mut play = Play::new(world);
    go(&mut play, "a", 4, "Read", "/w/src/a.rs", 100);
    let bodies = bodies(&play);
    let place = |body: &String, part| body.find(part);
    assert!(place(&bodies[1], "RULE FOR RUST") < place(&bodies[1], r#""tool_use_id":"a1""#));
    assert!(!bodies[3].contains("Date:") && !bodies[3].contains("NESTED WORDS"));
    play.check_replay();
}
