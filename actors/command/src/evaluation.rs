//! `ennead eval`: recorded sessions walked again with one shaper left out, as tables and as a chart.
//!
//! The counting is [`ennead_runtime::evaluation`]; here transcripts are found and figures are laid out.

mod chart;

use std::{
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    evaluation::{Recording, Request, WalkTotals, place_of, walk},
    step4_context_shapers::Stage,
    tokens::Tokens,
};
use serde::Serialize;

pub use chart::chart;

/// What was found about the sessions of a directory.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// Sessions that were walked.
    pub sessions: u64,
    /// Files that hold no recorded session, and why.
    pub skipped: Vec<(PathBuf, String)>,
    /// What the walk with all five stages came to.
    pub all: WalkTotals,
    /// Without each of the stages that were asked about.
    pub without: Vec<(Stage, WalkTotals)>,
    /// The requests of the session that sent most, with all stages.
    pub longest: Vec<Request>,
}

/// Walks the sessions of a directory, or of one transcript: once with all stages, and once without each
/// of those in `ablated`. Reads one file at a time.
///
/// # Errors
///
/// The directory cannot be listed. A file that cannot be read is among the skipped ones.
pub fn evaluate(place: &Path, ablated: &[Stage]) -> io::Result<Evaluation> {
    let mut found = Evaluation {
        sessions: 0,
        skipped: Vec::new(),
        all: WalkTotals { cost: Some(Default::default()), ..WalkTotals::default() },
        without: Vec::new(),
        longest: Vec::new(),
    };
    let nothing = found.all.clone();
    found.without = ablated.iter().map(|stage| (*stage, nothing.clone())).collect();
    let mut most = Tokens(0);
    for file in transcripts(place)? {
        let recording = match read(&file) {
            Ok(recording) => recording,
            Err(why) => {
                found.skipped.push((file, why));
                continue;
            }
        };
        found.sessions += 1;
        let (totals, requests) = walk(&recording, None);
        if most <= totals.sent {
            (most, found.longest) = (totals.sent, requests);
        }
        found.all = found.all.plus(&totals);
        for (stage, sum) in &mut found.without {
            *sum = std::mem::take(sum).plus(&walk(&recording, Some(*stage)).0);
        }
    }
    Ok(found)
}

/// The transcripts of sessions, by name; those of their sub-agents lie deeper and are not among them.
fn transcripts(place: &Path) -> io::Result<Vec<PathBuf>> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = fs::read_dir(place)?.map(|it| it.map(|it| it.path()));
    let mut files = entries.collect::<io::Result<Vec<_>>>()?;
    files.retain(|it| it.extension().is_some_and(|it| it == "jsonl") && it.is_file());
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<Recording, String> {
    let bytes = fs::read(file).map_err(|error| error.to_string())?;
    let stored = file.with_extension("").join("stored");
    let text = |digest| fs::read_to_string(stored.join(format!("{digest}.txt"))).ok();
    Recording::read(&bytes, &text).map_err(|error| error.to_string())
}

/// Lays the figures out as tables in Markdown. Tokens are in thousands.
pub fn tables(found: &Evaluation) -> String {
    let mut text = format!("{} sessions, {} requests\n", found.sessions, found.all.requests);
    for (file, why) in &found.skipped {
        push_fmt(&mut text, format_args!("{} is left out: {why}\n", file.display()));
    }
    push_fmt(&mut text, format_args!("\n| Stage | fired | in | took off | saved in requests |\n"));
    push_fmt(&mut text, format_args!("|---|---|---|---|---|\n"));
    let all = &found.all;
    for stage in Stage::ALL.into_iter().chain([Stage::OverflowReduction]) {
        let of_stage = all.stages[place_of(stage)];
        let cells = [
            of_stage.fired.to_string(),
            percent(of_stage.fired, all.requests),
            thousands(of_stage.saved_once),
            thousands(of_stage.saved),
        ];
        push_fmt(&mut text, format_args!("| {} | {} |\n", stage.name(), cells.join(" | ")));
    }
    let saved = Tokens(all.stages.iter().map(|it| it.saved.0).sum());
    let (conversation, sent) = (thousands(all.conversation), thousands(all.sent));
    push_fmt(
        &mut text,
        format_args!("\nsaid {conversation} - saved {} = sent {sent}", thousands(saved)),
    );
    text.push_str(if all.adds_up() { "\n" } else { ", which does not add up\n" });
    push_fmt(
        &mut text,
        format_args!("\n| Walk | sent | from cache | summaries | too large | cost |\n"),
    );
    push_fmt(&mut text, format_args!("|---|---|---|---|---|---|\n"));
    let mut row = |name: String, it: &WalkTotals| {
        let cost = it.cost.map_or("not known".into(), |it| format!("${:.4}", it.usd()));
        let cells = [
            thousands(it.sent),
            percent(it.cached.0, it.sent.0),
            it.summaries.to_string(),
            it.overflows.to_string(),
            cost,
        ];
        push_fmt(&mut text, format_args!("| {name} | {} |\n", cells.join(" | ")));
    };
    row("all stages".into(), all);
    for (stage, totals) in &found.without {
        row(format!("without {}", stage.name()), totals);
    }
    text
}

fn push_fmt(text: &mut String, part: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _infallible = text.write_fmt(part);
}

fn thousands(tokens: Tokens) -> String {
    format!("{}.{}", tokens.0 / 1_000, tokens.0 % 1_000 / 100)
}

fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1_000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}
