//! `bench` prints every figure. How large they are is not a matter of a test.

use serde_json::Value;

use super::CommandDirs;

/// As little as can be measured.
const LITTLE: [&str; 7] = ["bench", "--turns", "3", "--sessions", "2", "--interrupts", "1"];

#[track_caller]
fn bench(more: &[&str]) -> String {
    measured(&[&LITTLE[..], more].concat())
}

/// Standard output of a command that ended well and left nothing behind.
#[track_caller]
fn measured(arguments: &[&str]) -> String {
    let place = CommandDirs::new();
    let temporary = place.work().join("../temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = place.command(arguments);
    let ended: super::Ended = command.env("TMPDIR", &temporary).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for dir in [place.work(), temporary] {
        let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    ended.stdout
}

// REQ: RUN-3, SUR-7
#[test]
fn each_figure_has_its_row() {
    let table = bench(&[]);
    for (row, n_figures) in [
        ("an answer, one session ", 4),
        ("a call and an answer, one session ", 4),
        ("an answer, 2 at once ", 4),
        ("a call and an answer, 2 at once ", 4),
        ("1 settings_resolution ", 2),
        ("2 state_initialization ", 2),
        ("3 context_assembly ", 2),
        ("4 context_shaping ", 2),
        ("5 model_call ", 2),
        ("6 tool_dispatch ", 2),
        ("7 permission_gate ", 2),
        ("8 tool_execution ", 2),
        ("9 stop_check ", 2),
        ("open and idle ", 1),
        ("idle after one turn ", 1),
        ("a tool waits: status served ", 2),
        ("a tool waits: interrupt served ", 2),
        ("a tool waits: run ended ", 2),
        ("a stream waits: status served ", 2),
        ("a stream waits: interrupt served ", 2),
        ("a stream waits: run ended ", 2),
        ("a hook waits: status served ", 2),
        ("a hook waits: interrupt served ", 2),
        ("a hook waits: run ended ", 2),
    ] {
        let line = table.lines().find(|it| it.starts_with(row)).expect(row);
        let words: Vec<&str> = line[row.len()..].split_whitespace().collect();
        let figures = words[..n_figures].iter().filter(|it| it.parse::<f64>().is_ok());
        assert_eq!(figures.count(), n_figures, "{line}");
        let verdict = words[n_figures..].join(" ");
        let verdicts: &[&str] = if row.contains("waits") { &["OK", "over 10 ms"] } else { &[""] };
        assert!(verdicts.contains(&verdict.as_str()), "{line}");
    }
}

// REQ: RUN-3, SUR-7
#[test]
fn the_same_figures_are_there_as_json() {
    let figures: Value = serde_json::from_str(&bench(&["--json"])).unwrap();
    let list = |of: &str| figures[of].as_array().unwrap().clone();
    let turns = list("turns");
    let counts: Vec<_> =
        turns.iter().map(|it| (it["n_sessions"].as_u64(), it["n_turns"].as_u64())).collect();
    // Whole runs, and as many for each session.
    let expected = [(1, 3), (1, 4), (2, 4), (2, 4)];
    assert_eq!(counts, expected.map(|(sessions, turns)| (Some(sessions), Some(turns))));
    for turn in &turns {
        for of in ["wall_us", "cpu_us", "model_cpu_us"] {
            assert!(0.0 < turn[of].as_f64().unwrap(), "{turn}");
        }
    }
    let steps = list("steps");
    assert_eq!(steps.len(), 9);
    for step in &steps {
        assert!(step["with_call_us"].is_f64() && step["answer_us"].is_f64(), "{step}");
        assert_eq!(step["n_turns"], 2, "{step}");
    }
    assert_eq!(figures["memory"]["n_sessions"], 2);
    assert!(0 < figures["memory"]["before_kib"].as_u64().unwrap());
    let interrupts = list("interrupts");
    let waiting: Vec<&str> = interrupts.iter().map(|it| it["waiting"].as_str().unwrap()).collect();
    assert_eq!(waiting, ["tool", "stream", "hook"]);
    for it in &interrupts {
        for of in ["status", "interrupt", "ended"] {
            assert!(it[of]["median_us"].as_f64() <= it[of]["max_us"].as_f64(), "{it}");
        }
        assert_eq!(it["n"], 1);
    }
}

// REQ: RUN-4, RUN-7
#[test]
fn tenants_that_behave_are_all_answered_while_others_hang_flood_panic_and_spawn() {
    // Of 40 tenants four misbehave, each in a way of its own.
    let load = ["bench", "--tenants", "40", "--sessions", "200", "--turns", "120", "--json"];
    let figures: Value = serde_json::from_str(&measured(&load)).unwrap();
    assert_eq!((&figures["n_tenants"], &figures["n_sessions"]), (&40.into(), &200.into()));
    for of in ["quiet", "loud"] {
        let times = &figures[of];
        let became = ["n_runs", "n_refused", "n_failed"].map(|it| times[it].as_u64().unwrap());
        assert_eq!(became, [60, 0, 0], "{of}: {times}");
        assert!(0.0 < times["median_us"].as_f64().unwrap());
        assert!(times["median_us"].as_f64() <= times["p99_us"].as_f64());
        assert!(times["p99_us"].as_f64() <= times["max_us"].as_f64());
    }
    let misbehaved = figures["misbehaved"].as_array().unwrap();
    let ways: Vec<&str> = misbehaved.iter().map(|it| it["how"].as_str().unwrap()).collect();
    assert_eq!(ways, ["hang", "flood", "panic", "spawn"]);
    for it in misbehaved {
        assert_eq!(it["n_tenants"], 1);
        // Each of its five sessions was busy in each of the three loud times.
        assert!(15 <= it["n_runs"].as_u64().unwrap(), "{it}");
    }
}

// REQ: SES-5, SUR-7
#[test]
fn sessions_that_are_not_actors_are_made_and_counted_in_two_processes() {
    let known: Value =
        serde_json::from_str(&measured(&["bench", "--passive", "30", "--json"])).unwrap();
    assert_eq!(known["n_sessions"], 30);
    assert!(known["before_kib"].as_u64().unwrap() <= known["known_kib"].as_u64().unwrap());
    let table = measured(&["bench", "--passive", "2"]);
    assert!(table.starts_with("2 sessions of a server, none of them an actor\n"), "{table}");
}

// REQ: SES-5, SUR-7
#[test]
fn session_with_a_long_transcript_is_opened_without_an_index_and_then_with_one() {
    let resumed: Value =
        serde_json::from_str(&measured(&["bench", "--transcript", "1", "--json"])).unwrap();
    let resumed = resumed.as_array().unwrap();
    let indexed: Vec<_> = resumed.iter().map(|it| it["is_indexed"].as_bool().unwrap()).collect();
    assert_eq!(indexed, [false, true, true]);
    for it in resumed {
        assert!(1_000_000 <= it["n_bytes"].as_u64().unwrap(), "{it}");
    }
}

// REQ: CTX-8, SUR-7
#[test]
fn turns_after_short_and_long_conversations_are_measured() {
    let measure = ["bench", "--turns", "2", "--history", "1,40"];
    let costs: Value =
        serde_json::from_str(&measured(&[&measure[..], &["--json"]].concat())).unwrap();
    let [short, long] = &costs.as_array().unwrap()[..] else { panic!("{costs}") };
    for (it, bytes) in [(short, 1_000..8_000), (long, 40_000..48_000)] {
        assert!(bytes.contains(&it["n_bytes"].as_u64().unwrap()), "{it}");
        // Five sessions with a run of two turns each; their first runs are not counted.
        assert_eq!(it["n_turns"], 10, "{it}");
        assert!(0.0 < it["cpu_us"].as_f64().unwrap() && 0.0 < it["first_us"].as_f64().unwrap());
    }
    assert!(short["n_messages"].as_u64() < long["n_messages"].as_u64());
    let table = measured(&measure);
    let rows = table.lines().skip(1).take_while(|it| !it.is_empty());
    assert_eq!(rows.filter(|it| it.split_whitespace().count() == 6).count(), 2, "{table}");
}
