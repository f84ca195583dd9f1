//! `conformance`: passes and misses per file and class, and the results as lines.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use ennead_command::{
    conformance::{self, CaseResult, Verdict},
    exit::{Exit, Failure},
};

use crate::show;

#[derive(Default)]
struct Count {
    passed: u32,
    missed: u32,
    not_run: u32,
}

pub(crate) fn run(dir: &Path, out: Option<&Path>) -> Result<Exit, Failure> {
    let results = conformance::run(dir).map_err(|error| Failure::of(Exit::BadInput, &error))?;
    if let Some(out) = out {
        write(&results, out)?;
    }
    let mut files: BTreeMap<&str, (Count, BTreeMap<&str, Count>)> = BTreeMap::new();
    for result in &results {
        let (file, classes) = files.entry(&result.file).or_default();
        for count in [file, classes.entry(&result.class).or_default()] {
            match result.verdict {
                Verdict::Pass => count.passed += 1,
                Verdict::Miss { .. } => count.missed += 1,
                Verdict::NotRun => count.not_run += 1,
            }
        }
    }
    for (file, (count, classes)) in &files {
        if count.passed + count.missed == 0 {
            show::result(&format!("{file}: {} cases not run", count.not_run))?;
            continue;
        }
        show::result(&format!("{file}: {} passed, {} missed", count.passed, count.missed))?;
        for (class, count) in classes {
            show::result(&format!("  {class}: {} passed, {} missed", count.passed, count.missed))?;
        }
    }
    let mut n_missed = 0;
    for result in &results {
        if let Verdict::Miss { why } = &result.verdict {
            n_missed += 1;
            show::result(&format!("missed {} {}: {}", result.file, result.id, short(why)))?;
        }
    }
    match n_missed {
        0 => Ok(Exit::Success),
        n => Err(Failure::new(Exit::NotVerified, format!("{n} cases were missed"))),
    }
}

fn write(results: &[CaseResult], path: &Path) -> Result<(), Failure> {
    let bad = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::BadInput, format!("cannot write {}: {error}", path.display()))
    };
    let mut out = BufWriter::new(File::create(path).map_err(|error| bad(&error))?);
    for result in results {
        serde_json::to_writer(&mut out, &result.line()).map_err(|error| bad(&error))?;
        out.write_all(b"\n").map_err(|error| bad(&error))?;
    }
    out.flush().map_err(|error| bad(&error))
}

fn short(why: &str) -> String {
    match why.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &why[..at]),
        None => why.to_owned(),
    }
}
