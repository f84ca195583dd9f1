//! `bench`: what the harness itself costs, as a table or as JSON.

mod passive;

use std::{fmt::Write, time::Duration};

use ennead_command::{
    bench::{
        BenchError, BenchPlan, Figures, HistoryCost, Isolated, Isolation, Latency, RunTimes,
        SERVED_WITHIN, Waiting,
    },
    exit::{Exit, Failure},
    signals::Signals,
};
use serde::Serialize;

use crate::{args, demo, print as prompt, show};
use ennead_runtime::saturating::Saturating as _;

pub(crate) async fn run(args: args::BenchArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::take().await?;
    demo::raise_open_files();
    if env!("ENNEAD_OPT_LEVEL") != "3" {
        show::note(
            "This build is not optimised; its figures say little. Measure with --profile dist.",
        );
    }
    if let Some(n_tenants) = args.tenants {
        let isolation = Isolation { n_tenants, n_sessions: args.sessions, n_turns: args.turns };
        let isolated = tokio::select! {
            isolated = isolation.run() => isolated.map_err(|error| failure(&error))?,
            exit = signals.next() => return Ok(exit),
        };
        return print(args.json, &isolated, isolation_table);
    }
    if args.passive.is_some() || args.transcript.is_some() {
        return tokio::select! {
            printed = passive::run(&args) => printed,
            exit = signals.next() => Ok(exit),
        };
    }
    if !args.history.is_empty() {
        let costs = tokio::select! {
            costs = HistoryCost::measure(&args.history, args.turns) => costs.map_err(|error| failure(&error))?,
            exit = signals.next() => return Ok(exit),
        };
        return print(args.json, &costs, history_table);
    }
    let bench =
        BenchPlan { n_turns: args.turns, n_sessions: args.sessions, n_interrupts: args.interrupts };
    let figures = tokio::select! {
        figures = bench.run() => figures.map_err(|error| failure(&error))?,
        exit = signals.next() => return Ok(exit),
    };
    print(args.json, &figures, table)
}

/// Prints what was measured as JSON or as a table.
fn print<T: Serialize>(json: bool, figures: &T, table: fn(&T) -> String) -> Result<Exit, Failure> {
    let text = if json {
        let json = serde_json::to_string_pretty(figures);
        json.map_err(|error| Failure::of(Exit::RunFailed, &error))?
    } else {
        table(figures)
    };
    show::result(&text)?;
    Ok(Exit::Success)
}

fn failure(error: &BenchError) -> Failure {
    let exit = match error {
        BenchError::Open(error) => prompt::exit_of(error),
        _ => Exit::RunFailed,
    };
    Failure::of(exit, error)
}

fn table(figures: &Figures) -> String {
    let mut text = String::new();
    let parts = [turns(figures), steps(figures), memory(figures), interrupts(figures)];
    for (at, part) in parts.iter().enumerate() {
        if 0 < at {
            text.push('\n');
        }
        text.push_str(part);
    }
    text.push_str(
        "\nThe simulated model runs in this process; its own time is taken off the times of turns\n\
         and steps. Sessions read no settings and no instruction files. Lines are written and,\n\
         except where interrupts are measured, not forced to disk. Turns run on one scheduler\n\
         thread; at once, the time of all is divided by the turns of all. Step 9 ends where the\n\
         next turn begins, and after an answer when a listener receives that the turn is finished.\n\
         The 10 ms are for serving; a run has ended when all that it started is gone and its\n\
         end is on the disk.\n",
    );
    text
}

fn history_table(costs: &Vec<HistoryCost>) -> String {
    let mut text = format!(
        "{:>10}{:>10}{:>8}{:>16}{:>10}{:>18}\n",
        "KB before", "messages", "turns", "CPU us a turn", "to first", "first answer, ms"
    );
    let least = costs.first().map_or(0, |it| it.cpu.as_nanos()).max(1);
    for it in costs {
        let hundredths = it.cpu.as_nanos() * 100 / least;
        let ratio = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let (kilobytes, cpu, first) = (it.n_bytes / 1000, us(it.cpu), ms(it.first));
        line(
            &mut text,
            format_args!(
                "{kilobytes:>10}{:>10}{:>8}{cpu:>16}{ratio:>10}{first:>18}",
                it.n_messages, it.n_turns
            ),
        );
    }
    text.push_str(
        "\nThe time of the simulated model, which reads all of each request, is taken off. No shaper\n\
         runs. The first answer needs all that was said before to be read, checked and encoded.\n",
    );
    text
}

fn isolation_table(it: &Isolated) -> String {
    let mut text = format!(
        "{:<34}{:>8}{:>9}{:>8}{:>11}{:>11}{:>11}{:>8}\n",
        "runs of two turns, ms", "answered", "refused", "failed", "median", "p99", "max", "CPU %"
    );
    for (what, RunTimes { n_runs, n_refused, n_failed, median, p99, max, cpu_per_mille }) in
        [("the others rest", &it.quiet), ("the others misbehave", &it.loud)]
    {
        let (median, p99, max) = (ms(*median), ms(*p99), ms(*max));
        let cpu = tenths(*cpu_per_mille);
        line(
            &mut text,
            format_args!(
                "{what:<34}{n_runs:>8}{n_refused:>9}{n_failed:>8}{median:>11}{p99:>11}{max:>11}{cpu:>8}"
            ),
        );
    }
    let percent = it.percent_p99();
    line(&mut text, format_args!("\np99, loud to quiet: {}.{:02}", percent / 100, percent % 100));
    for more in &it.misbehaved {
        let (how, n_tenants, n_runs) = (more.how.name(), more.n_tenants, more.n_runs);
        line(&mut text, format_args!("{how}: {n_tenants} tenants, {n_runs} runs"));
    }
    let (open, end) = (it.open_kib / 1024, it.end_kib / 1024);
    line(
        &mut text,
        format_args!(
            "{} sessions of {} tenants, all of them actors: {open} MiB, at the end {end} MiB.\n\
             The model answers after {} ms, which is part of the times.",
            it.n_sessions, it.n_tenants, it.model_ms
        ),
    );
    text
}

fn turns(figures: &Figures) -> String {
    let mut text = format!(
        "{:<34}{:>8}{:>12}{:>12}{:>12}\n",
        "turns, us per turn", "turns", "time", "CPU", "model CPU"
    );
    for it in &figures.turns {
        let what = match it.n_sessions {
            1 => format!("{}, one session", it.what),
            n => format!("{}, {n} at once", it.what),
        };
        let (wall, cpu, model) = (us(it.wall), us(it.cpu), us(it.model_cpu));
        line(&mut text, format_args!("{what:<34}{:>8}{wall:>12}{cpu:>12}{model:>12}", it.n_turns));
    }
    text
}

fn steps(figures: &Figures) -> String {
    let n = figures.steps.first().map_or(0, |it| it.n_turns);
    let title = format!("steps, median us of {n} turns each");
    let mut text = format!("{title:<42}{:>12}{:>12}\n", "with a call", "answer");
    for it in &figures.steps {
        let step = format!("{} {}", it.step.number(), it.step.name());
        let (with_call, answer) = (us(it.with_call), us(it.answer));
        line(&mut text, format_args!("{step:<42}{with_call:>12}{answer:>12}"));
    }
    text
}

fn memory(figures: &Figures) -> String {
    let it = &figures.memory;
    let title = format!("memory, KiB for each of {} sessions", it.n_sessions);
    let mut text = format!("{title}\n");
    for (what, bytes) in
        [("open and idle", it.bytes_open()), ("idle after one turn", it.bytes_answered())]
    {
        line(&mut text, format_args!("{what:<42}{:>12}", tenths(bytes * 10 / 1024)));
    }
    text
}

fn interrupts(figures: &Figures) -> String {
    let title = format!("interrupts, ms ({} ms allowed)", SERVED_WITHIN.as_millis());
    let mut text = format!("{title:<42}{:>12}{:>12}\n", "median", "max");
    for it in &figures.interrupts {
        let waits = match it.waiting {
            Waiting::Tool => "a tool",
            Waiting::Stream => "a stream",
            Waiting::Hook => "a hook",
        };
        for (what, latency) in [
            ("status served", it.status),
            ("interrupt served", it.interrupt),
            ("run ended", it.ended),
        ] {
            let (median, max) = (ms(latency.median), ms(latency.max));
            let what = format!("{waits} waits: {what}");
            line(
                &mut text,
                format_args!("{what:<42}{median:>12}{max:>12}  {}", in_words(&latency)),
            );
        }
    }
    text
}

fn in_words(latency: &Latency) -> &'static str {
    if latency.is_in_time() { "OK" } else { "over 10 ms" }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _written = writeln!(text, "{line}");
}

/// Microseconds with one decimal.
fn us(duration: Duration) -> String {
    tenths(u64::saturating(duration.as_nanos() / 100))
}

/// Milliseconds with two decimals.
fn ms(duration: Duration) -> String {
    let hundredths = duration.as_micros() / 10;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn tenths(tenths: u64) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}
