//! Runs case files through the product's own code and compares what comes out.
//!
//! The layout is that of `tests/cases`; any directory of that layout will do. A file that is
//! not supported is listed as not run. What a case expects is looked at only to compare.

mod commands;
mod compare;
mod paths;
mod streams;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    step4_context_shapers, step9_stop_check,
    transcript::load::{LoadAs, conformance::outcome},
};
use serde::Serialize;
use serde_json::Value;

/// One case and what came of it.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The file of the case, or the folder when each case has a file of its own.
    pub file: String,
    /// Its name within the file.
    pub id: String,
    /// What kind of construction it is about.
    pub class: String,
    /// What came out; null when it cannot be run.
    pub got: Value,
    /// How the result compares with the expectation.
    pub verdict: Verdict,
}

/// How what came out compares with what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is that, or something that is accepted as well.
    Pass,
    /// It is something else.
    Miss {
        /// What differs, in words.
        why: String,
    },
    /// The case cannot be run.
    NotRun,
}

/// One line of a result file (cases README, section H).
#[derive(Debug, Serialize)]
pub struct ResultLine<'a> {
    file: &'a str,
    id: &'a str,
    got: &'a Value,
}

impl CaseResult {
    /// Returns the line for a result file.
    pub fn line(&self) -> ResultLine<'_> {
        ResultLine { file: &self.file, id: &self.id, got: &self.got }
    }
}

/// Why a directory of cases cannot be run. One line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConformanceError {
    /// Something in it cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Path of the file or directory.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A file holds something that is not a case.
    #[error("{}{}: {why}", path.display(), line.map(|it| format!(", line {it}")).unwrap_or_default())]
    BadCase {
        /// Path of the case.
        path: PathBuf,
        /// Which line, from 1.
        line: Option<usize>,
        /// What is wrong with it.
        why: String,
    },
    /// There is nothing of the layout in it.
    #[error("{} holds no case files (*.jsonl, sse_streams/, transcripts/)", path.display())]
    NoCases {
        /// Directory that holds no case.
        path: PathBuf,
    },
}

/// The folders in which each case has files of its own.
const STREAMS: &str = "sse_streams";
const TRANSCRIPTS: &str = "transcripts";

/// Runs every case below `dir`, files in the order of their names.
///
/// # Errors
///
/// [`ConformanceError`] when the directory cannot be read as cases. A case that gives something
/// else than expected is not an error.
pub fn run(dir: &Path) -> Result<Vec<CaseResult>, ConformanceError> {
    let mut results = Vec::new();
    for path in sorted(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == STREAMS {
            results.extend(cases_of_folder(&path, "sse", streams::run)?);
        } else if name == TRANSCRIPTS {
            results.extend(cases_of_folder(&path, "jsonl", transcript)?);
        } else if path.extension().is_some_and(|it| it == "jsonl") {
            results.extend(cases_of_file(&path, &name)?);
        }
    }
    if results.is_empty() {
        return Err(ConformanceError::NoCases { path: dir.to_owned() });
    }
    Ok(results)
}

/// What came out of a case, and what is wrong with it.
type Outcome = (Value, Result<(), String>);

fn cases_of_file(path: &Path, name: &str) -> Result<Vec<CaseResult>, ConformanceError> {
    let text = read_text(path)?;
    let mut results = Vec::new();
    for (i, line) in text.split('\n').enumerate().filter(|(_, it)| !it.trim().is_empty()) {
        let bad = |why: String| ConformanceError::BadCase {
            path: path.to_owned(),
            line: Some(i + 1),
            why,
        };
        let case: Value = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        let ran = match name {
            "stop_check.jsonl" => Some(stop_check(&case)),
            "shapers.jsonl" => Some(shapers(&case)),
            "path_permissions.jsonl" => Some(paths::run(&case)),
            "bash_permissions.jsonl" => Some(commands::decide(&case)),
            "bash_classify.jsonl" => Some(commands::classify(&case)),
            _ => None,
        };
        results.push(result(name, field(&case, "id"), field(&case, "class"), ran));
    }
    Ok(results)
}

fn cases_of_folder(
    folder: &Path,
    extension: &str,
    run: fn(&[u8], &Value) -> Outcome,
) -> Result<Vec<CaseResult>, ConformanceError> {
    let file = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut results = Vec::new();
    for path in sorted(folder)? {
        if path.extension().is_none_or(|it| it != extension) {
            continue;
        }
        let bytes = fs::read(&path).map_err(|cause| unreadable(&path, cause))?;
        let beside = path.with_extension("expected.json");
        let expected: Value = serde_json::from_str(&read_text(&beside)?).map_err(|error| {
            ConformanceError::BadCase { path: beside, line: None, why: error.to_string() }
        })?;
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        results.push(result(&file, id, field(&expected, "class"), Some(run(&bytes, &expected))));
    }
    Ok(results)
}

fn result(file: &str, id: String, class: String, ran: Option<Outcome>) -> CaseResult {
    let (got, verdict) = match ran {
        Some((got, Ok(()))) => (got, Verdict::Pass),
        Some((got, Err(why))) => (got, Verdict::Miss { why }),
        None => (Value::Null, Verdict::NotRun),
    };
    CaseResult { file: file.to_owned(), id, class, got, verdict }
}

fn stop_check(case: &Value) -> Outcome {
    match step9_stop_check::conformance::run_case(case) {
        Ok(got) => compare::accepted(case, got),
        Err(bad) => (Value::Null, Err(bad.to_string())),
    }
}

fn shapers(case: &Value) -> Outcome {
    match step4_context_shapers::conformance::run_case(case) {
        Ok(got) => {
            let compared = compare::shaping(case, &got);
            (got, compared)
        }
        Err(bad) => (Value::Null, Err(bad.to_string())),
    }
}

/// `load_as` is next to what is expected but says how to load.
fn transcript(bytes: &[u8], expected: &Value) -> Outcome {
    let load_as = match expected["load_as"].as_str() {
        Some("sidechain") => LoadAs::Sidechain,
        _ => LoadAs::Session,
    };
    let got = serde_json::to_value(outcome(bytes, load_as)).unwrap_or_default();
    let compared = compare::loading(expected, &got);
    (got, compared)
}

fn field(case: &Value, name: &str) -> String {
    case[name].as_str().unwrap_or_default().to_owned()
}

fn sorted(dir: &Path) -> Result<Vec<PathBuf>, ConformanceError> {
    let entries = fs::read_dir(dir).map_err(|cause| unreadable(dir, cause))?;
    let mut paths = entries
        .map(|it| it.map(|it| it.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|cause| unreadable(dir, cause))?;
    paths.sort();
    Ok(paths)
}

fn read_text(path: &Path) -> Result<String, ConformanceError> {
    fs::read_to_string(path).map_err(|cause| unreadable(path, cause))
}

fn unreadable(path: &Path, cause: io::Error) -> ConformanceError {
    ConformanceError::Unreadable { path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests;
