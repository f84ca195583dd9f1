//! A session of 400 turns with large results: whether it fits its window, how often it is summed up,
//! and what became of the facts in it.
//!
//! The tables are those of `docs/evaluation.md`; `ENNEAD_WRITE_EVALUATION=1 cargo test -p ennead-runtime
//! --lib four_hundred_turns` writes them. Built under `#[cfg(test)]` only.

mod facts;

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::{
    play::Play,
    script::{calls, text},
    world::{ContextWindow, World},
};
use crate::{
    digest::Digest,
    permission::Scope,
    run::{
        RunEnd,
        facts::{CLEARS_UNCAPPED, REVISION},
    },
    step3_context_assembly::InstructionFile,
    tool::{FileSeen, ToolNote, ToolOutcome},
    transcript::entry::RecordKind,
    turn::effect::Purpose,
};
use facts::{N_FACTS, PlantedFacts};

/// Prompts, each of which takes so many turns.
const N_RUNS: usize = 40;
const N_TURNS: usize = 10;

/// The marks between which the page on evaluation has the tables.
const BEGIN: &str = "<!-- long sessions, written by the test that holds them -->\n\n";
const END: &str = "\n<!-- end of the long sessions -->";

/// One window with the settings of its session.
struct Setting {
    name: &'static str,
    window: u64,
    output: u64,
    shapers: Value,
    /// Characters on each side of the facts in prompts and answers.
    around: usize,
}

fn settings() -> [Setting; 4] {
    let gates = json!({ "historySnip": true, "contextCollapse": true });
    [
        Setting {
            name: "200,000 tokens",
            window: 200_000,
            output: 8_000,
            shapers: json!({}),
            around: 0,
        },
        Setting {
            name: "200,000 tokens, prompts and answers of 6,000 characters, `contextCollapse` on, `maxMessages` 2,000",
            window: 200_000,
            output: 8_000,
            shapers: json!({ "contextCollapse": true, "maxMessages": 2_000 }),
            around: 3_000,
        },
        Setting {
            name: "32,000 tokens, `historySnip` and `contextCollapse` on",
            window: 32_000,
            output: 2_000,
            shapers: gates,
            around: 0,
        },
        Setting {
            name: "32,000 tokens, both off as they are by default",
            window: 32_000,
            output: 2_000,
            shapers: json!({}),
            around: 0,
        },
    ]
}

/// Characters of the result of a turn: mostly a file, every fifth time a listing, every 25th time
/// more than a result may have.
fn size(turn: usize) -> usize {
    match turn {
        _ if turn % 25 == 24 => 80_000,
        _ if turn % 5 == 4 => 20_000,
        _ => 4_000 + turn % 7 * 600,
    }
}

/// What came of a session.
struct LongSessionEnd {
    play: Play,
    facts: PlantedFacts,
    /// Requests for an answer that had summaries made before them.
    summed_up: usize,
    /// Tokens of the largest request and its output, as its provider counts.
    largest: u64,
    /// By stage: how often it fired, and the tokens that it took off.
    stages: BTreeMap<String, (usize, u64)>,
}

fn session(setting: &Setting, revision: u32) -> LongSessionEnd {
    let limits = json!({ "window": setting.window, "max_output": setting.output, "default_output": setting.output });
    let mut world = World::with(
        json!({ "model": "m", "ennead": {
            "catalogue": { "models": { "m": limits } },
            "maxTurns": 50,
            "shapers": setting.shapers,
        } }),
        Vec::new(),
    );
    Arc::make_mut(&mut world.facts).revision = revision;
    world.window = Some(ContextWindow { tokens: setting.window, bytes_per_token: 4 });
    let facts = PlantedFacts::with(setting.around);
    world.sources.instructions = vec![InstructionFile {
        scope: Scope::Project,
        path: "/w/CLAUDE.md".into(),
        text: facts.instructions(),
    }];
    // The worst case: a summary that says nothing of what was asked for.
    let summary = "The work goes on as before. ".repeat(40);
    world.summaries = (0..2_000).map(|_| text(&summary)).collect();
    let mut found = LongSessionEnd {
        play: Play::new(world),
        facts,
        summed_up: 0,
        largest: 0,
        stages: BTreeMap::new(),
    };
    for run in 0..N_RUNS {
        found.run(run, setting);
    }
    found
}

impl LongSessionEnd {
    fn run(&mut self, run: usize, setting: &Setting) {
        let n_lines = self.play.lines.len();
        for turn in run * N_TURNS..(run + 1) * N_TURNS - 1 {
            let id = format!("t{turn}");
            let path = format!("/w/src/file{}.rs", turn % 12);
            let call = match (self.facts.todos(turn), size(turn)) {
                (Some(todos), _) => {
                    let tasks: Vec<&str> = todos.iter().map(|it| it.content.as_str()).collect();
                    format!("{id}:Note:{}", tasks.join("; "))
                }
                (None, 20_000..) => format!("{id}:Bash:list {turn}"),
                (None, _) => format!("{id}:Read:{path}"),
            };
            self.play.world.answers.push_back(calls(&[&call]));
            self.play.world.outcomes.insert(id, self.outcome(turn, &path));
        }
        self.play.world.answers.push_back(text(&self.facts.in_answer(run)));
        self.play.run(&self.facts.in_prompt(run));
        assert_eq!(
            self.play.ends[run].0,
            RunEnd::NoPendingTools,
            "run {run}: {:?}",
            self.play.ends[run]
        );
        let fired: Vec<(String, u64)> = self.play.lines[n_lines..]
            .iter()
            .filter_map(|it| match &it.record()?.what {
                RecordKind::Shaper { stage, fired: true, tokens_before, tokens_after, .. } => {
                    Some((stage.clone(), tokens_before.saturating_sub(*tokens_after).0))
                }
                _ => None,
            })
            .collect();
        for (stage, saved) in &fired {
            let of_stage = self.stages.entry(stage.clone()).or_default();
            *of_stage = (of_stage.0 + 1, of_stage.1 + saved);
        }
        let mut was_summed_up = false;
        for order in std::mem::take(&mut self.play.requests) {
            if order.purpose == Purpose::Compaction {
                was_summed_up = true;
                continue;
            }
            self.summed_up += usize::from(std::mem::take(&mut was_summed_up));
            let body = String::from_utf8(order.request.body.to_bytes().to_vec()).unwrap();
            self.largest = self.largest.max(body.len() as u64 / 4 + setting.output);
            let stages: Vec<&str> = fired.iter().map(|it| it.0.as_str()).collect();
            self.facts.look(&body, &self.play.stored, &stages);
        }
        self.play.worst.clear();
    }

    fn outcome(&self, turn: usize, path: &str) -> ToolOutcome {
        let seen = FileSeen {
            mtime_ns: 0,
            size: 0,
            digest: Digest::default(),
            partial: false,
            cells: None,
        };
        let n_chars = size(turn);
        let filler = format!("{turn:03} plain text of a line\n").repeat(n_chars / 28);
        let mut notes = Vec::new();
        if n_chars < 20_000 {
            notes.push(ToolNote::FileSeen { path: path.into(), seen });
        }
        notes.extend(self.facts.todos(turn).map(ToolNote::Todos));
        // In the middle, which a cut leaves out.
        let half = filler.len() / 2;
        let all_answers =
            format!("{}{}\n{}", &filler[..half], self.facts.in_result(turn), &filler[half..]);
        ToolOutcome { notes, ..ToolOutcome::ok(all_answers) }
    }

    fn table(&self, setting: &Setting) -> String {
        let n_requests = N_RUNS * N_TURNS;
        let share = self.summed_up as f64 * 100.0 / n_requests as f64;
        let mut table = format!(
            "Window of {}: {n_requests} turns, the largest request with its output {} tokens, summed up before \
             {} turns ({share:.1} %)\n\n| Stage | fired | took off (thousands) |\n|---|---|---|\n",
            setting.name, self.largest, self.summed_up
        );
        for stage in [
            "budget_reduction",
            "snip",
            "microcompact",
            "context_collapse",
            "auto_compact",
            "overflow_reduction",
        ] {
            let (fired, saved) = self.stages.get(stage).copied().unwrap_or_default();
            table.push_str(&format!(
                "| {stage} | {fired} | {}.{} |\n",
                saved / 1_000,
                saved % 1_000 / 100
            ));
        }
        table.push('\n');
        table.push_str(&self.facts.table());
        table
    }
}

// REQ: SHP-2, SHP-7, SHP-9, SHP-13
#[test]
fn four_hundred_turns_never_overflow_and_each_fact_that_no_stage_dropped_is_reachable() {
    let mut tables = Vec::new();
    for setting in settings() {
        let found = session(&setting, REVISION);
        assert!(found.largest <= setting.window, "{}: {}", setting.name, found.largest);
        let refused = found
            .play
            .records()
            .filter(|it| matches!(&it.what, RecordKind::ModelAttempt { cause: Some(_), .. }));
        assert_eq!(refused.count(), 0, "{}: the provider refused a request", setting.name);
        let (n, all) = (found.summed_up, N_RUNS * N_TURNS);
        assert!(n * 10 < all, "{}: {n} of {all} turns", setting.name);
        found.facts.check(setting.name);
        if setting.around != 0 {
            assert!(found.facts.has_referenced_and_collapsed(), "{}", found.facts.table());
        }
        tables.push(found.table(&setting));
    }
    tables.push(before_results_of_read_were_cleared());
    let tables = tables.join("\n");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/evaluation.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (held, after) = rest.split_once(END).unwrap();
    if std::env::var("ENNEAD_WRITE_EVALUATION").is_ok() {
        return fs::write(&page, format!("{before}{BEGIN}{tables}{END}{after}")).unwrap();
    }
    assert_eq!(held, tables, "ENNEAD_WRITE_EVALUATION=1 writes them");
    assert_eq!(N_FACTS, 40);
}

/// Says how often the last session was summed up by the rules before, which left results of Read whole.
fn before_results_of_read_were_cleared() -> String {
    let setting = settings().into_iter().next_back().unwrap();
    let [before, now] = [CLEARS_UNCAPPED - 1, REVISION].map(|it| session(&setting, it).summed_up);
    assert!(now * 4 < before, "{before} turns before that, {now} now");
    let share = before as f64 * 100.0 / (N_RUNS * N_TURNS) as f64;
    format!(
        "By the rules before, which left results of Read whole, the last of these sessions was summed up before {before} \
         turns ({share:.1} %).\n"
    )
}
