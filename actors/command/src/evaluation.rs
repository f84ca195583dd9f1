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
    evaluation::{LoggedTotals, Recording, Request, WalkTotals, place_of, walk},
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
    /// What the lines of the sessions say that the stages did when they ran.
    pub logged: LoggedTotals,
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
        logged: LoggedTotals::default(),
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
        found.logged = std::mem::take(&mut found.logged).plus(recording.logged());
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
    text.push_str(
        "\n| Stage | fired | in | took off | saved in requests | logged: fired | took off | saved |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let (all, logged) = (&found.all, &found.logged);
    for stage in Stage::ALL.into_iter().chain([Stage::OverflowReduction]) {
        let (of_stage, then) = (all.stages[place_of(stage)], logged.stages[place_of(stage)]);
        let cells = [
            of_stage.fired.to_string(),
            percent(of_stage.fired, all.requests),
            thousands(of_stage.saved_once),
            thousands(of_stage.saved),
            then.fired.to_string(),
            thousands(then.saved_once),
            thousands(then.saved),
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
    push_logged(&mut text, logged);
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

/// Compares what the stages logged when the sessions ran with what the requests on record were smaller by.
fn push_logged(text: &mut String, logged: &LoggedTotals) {
    let [said, saved, sent] = [logged.conversation, logged.saved(), logged.sent].map(thousands);
    push_fmt(
        text,
        format_args!("logged when they ran: said {said} - saved {saved}, sent {sent}, "),
    );
    match logged.gap() {
        0 => text.push_str("no gap\n"),
        gap => {
            let sign = if gap < 0 { "-" } else { "" };
            let tokens = Tokens(u64::try_from(gap.unsigned_abs()).unwrap_or(u64::MAX));
            let share = percent(tokens.0, logged.conversation.0);
            push_fmt(text, format_args!("a gap of {sign}{} ({share})\n", thousands(tokens)));
        }
    }
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
