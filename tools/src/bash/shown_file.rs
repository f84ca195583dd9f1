//! A file that a simple command printed counts as read.

use std::path::Path;

use ennead_runtime::{
    step7_permission_gate::shell::{Outlined, outline},
    tool::ToolNote,
};

use crate::{files::Loaded, paths};

/// Returns the file that a command showed, for a command that did nothing else and whose whole output the model sees.
pub(super) fn shown_file(command: &str, cwd: &Path, output: &str) -> Option<ToolNote> {
    let [simple] = <[Outlined; 1]>::try_from(outline(command)?).ok()?;
    if !simple.is_plain {
        return None;
    }
    let (program, rest) = simple.words.split_first()?;
    let (options, others): (Vec<&str>, Vec<&str>) =
        rest.iter().map(String::as_str).partition(|word| word.starts_with('-') && *word != "-");
    let (file, whole) = match (program.as_str(), others.as_slice()) {
        ("cat" | "nl" | "bat" | "batcat", [file]) => (*file, true),
        ("head" | "tail", [file] | [_, file]) => (*file, false),
        ("sed", [range, file]) if options == ["-n"] && is_line_range(range) => (*file, false),
        ("grep" | "egrep" | "fgrep" | "rg", [_, file]) => (*file, false),
        _ => return None,
    };
    let real = cwd.join(file).canonicalize().ok()?;
    let loaded = Loaded::from(&paths::open_file(&real).ok()?).ok()?;
    // Plain `cat` can be checked; other options may have left something out.
    let whole = whole
        && match (program.as_str(), options.as_slice()) {
            ("cat", []) => output.as_bytes() == loaded.bytes,
            ("nl", []) | ("cat", ["-n"]) => true,
            _ => false,
        };
    let path = real.to_str()?.to_owned();
    Some(ToolNote::FileSeen { path, seen: loaded.as_seen(!whole) })
}

/// Whether the text is a range of lines for `sed`: `3p`, `3,9p`, `3,$p`.
fn is_line_range(text: &str) -> bool {
    let Some(range) = text.strip_suffix('p') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match range.split_once(',') {
        None => is_number(range),
        Some((from, to)) => is_number(from) && (is_number(to) || to == "$"),
    }
}
