//! Read: a text file, a page at a time, with line numbers; a notebook by cells; a picture or a PDF file as a whole.
//!
//! What counts as having seen a file is decided here, since Write and Edit rely on it: the whole
//! file shown, and it may be overwritten; a range that was asked for, and it may be edited; the
//! first page of a file that did not fit, and neither.
//!
//! Long lines are cut, but in the results that the session keeps, which nothing else shows: there they go on in pieces
//! that count as lines, so that `offset` reaches all of them.

mod cells;
mod kept;
mod media;

use std::{num::NonZeroU64, path::Path, sync::Arc};

use ennead_runtime::{
    ports::ToolContext,
    saturating::Saturating as _,
    tool::{ToolNote, ToolOutcome, ToolSpec, Truncation},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    built_in::{AtPath, BuiltIn, BuiltInCall, at_path, reading_spec},
    files::{Loaded, normal},
    output::{MAX_LINE_CHARS, cut_line, push_numbered},
    paths,
};
use kept::LongLines;

/// Lines shown when no limit is asked for.
const DEFAULT_LIMIT: usize = 2000;

/// Characters of one page: about 25 000 tokens.
const MAX_PAGE_CHARS: usize = 100_000;

pub(crate) struct Read;

/// A file, or a range of its lines.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadInput {
    /// The absolute path of the file.
    file_path: String,
    /// The first line or cell to show, counted from 1.
    offset: Option<NonZeroU64>,
    /// How many lines or cells to show.
    limit: Option<NonZeroU64>,
}

impl BuiltIn for Read {
    type Input = ReadInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        let description = "Reads a text file, a picture (PNG, JPEG, GIF, WebP) or a PDF file. Lines come with their number and a tab in front, \
                which are not part of the file. Shows up to 2000 lines; for the rest of a longer \
                file give `offset` and `limit`. A notebook (`.ipynb`) is shown by cells, with what they have put out; \
                there `offset` and `limit` count cells. Lines over 2000 characters are cut, except in kept results \
                of this session, where they go on as further lines. Does not read \
                directories and other binary files. Read a file before you change it.";
        // It limits itself, and what it says about that must not be cut.
        reading_spec("Read", description, input_schema, "file_path").with_output_cap(None)
    }

    async fn call(call: BuiltInCall<ReadInput>, context: ToolContext) -> ToolOutcome {
        at_path(call, context, read).await
    }
}

fn read(call: AtPath<'_, ReadInput>) -> Result<ToolOutcome, String> {
    let real = &call.path.real;
    let file = paths::open_file(Path::new(real)).map_err(|error| error.to_string())?;
    let loaded = Loaded::from(&file).map_err(|error| error.to_string())?;
    let before = call.context.memory.files.get(real);
    let shown = media::show(&call.input.file_path, &loaded);
    let shown = shown.or_else(|| cells::show(call.input, &loaded, before));
    let long_lines = LongLines::in_file(Path::new(real), &call.context.spill_directory);
    let mut outcome = shown.unwrap_or_else(|| show(call.input, &loaded, long_lines))?;
    // A part that is shown again does not take away that the whole was seen.
    for note in &mut outcome.notes {
        if let ToolNote::FileSeen { path, seen } = note {
            path.clone_from(real);
            if before.is_some_and(|before| !before.partial && before.digest == seen.digest) {
                (seen.partial, seen.cells) = (false, None);
            }
        }
    }
    Ok(outcome)
}

/// One page of a file.
fn show(input: &ReadInput, loaded: &Loaded, long_lines: LongLines) -> Result<ToolOutcome, String> {
    if loaded.is_binary() {
        return Err(format!(
            "This is a binary file ({} bytes); Read shows text, pictures and PDF files.",
            loaded.bytes.len()
        ));
    }
    let text = normal(&String::from_utf8_lossy(&loaded.bytes));
    let lines = long_lines.split(&text);
    let index = |n: NonZeroU64| usize::saturating(n.get());
    let first = input.offset.map_or(1, index);
    let asked = input.limit.map_or(DEFAULT_LIMIT, index);
    let n_lines = lines.len();

    if n_lines == 0 {
        let text = "The file exists but is empty.".to_owned();
        return Ok(outcome(
            input,
            loaded,
            text,
            LinePage { first: 1, shown: &[], n_lines, cut: None },
        ));
    }
    if first > n_lines {
        let text = format!("The file has {n_lines} lines; nothing starts at line {first}.");
        let mut outcome = ToolOutcome::ok(text);
        outcome.structured =
            Some(structured(input, &LinePage { first, shown: &[], n_lines, cut: None }));
        return Ok(outcome);
    }

    let wanted = &lines[first - 1..n_lines.min((first - 1).saturating_add(asked))];
    let mut out = String::new();
    let (mut n_shown, mut n_chars, mut cut_lines) = (0, 0, false);
    for (i, line) in wanted.iter().enumerate() {
        let line = cut_line(line, MAX_LINE_CHARS);
        n_chars += line.chars().count() + 7;
        if n_chars > MAX_PAGE_CHARS {
            break;
        }
        cut_lines |= matches!(line, std::borrow::Cow::Owned(_));
        push_numbered(&mut out, first + i, &line);
        n_shown = i + 1;
    }
    let over_cap = n_shown < wanted.len();
    if over_cap && (input.offset.is_some() || input.limit.is_some()) {
        return Err(format!(
            "These {} lines have more than {MAX_PAGE_CHARS} characters. Ask for a smaller limit \
             ({n_shown} lines fit), or search with Grep.",
            wanted.len()
        ));
    }
    let last = first + n_shown - 1;
    let asked_for_range = input.offset.is_some() || input.limit.is_some();
    let cut = if last < n_lines && !asked_for_range {
        out.push_str(&format!(
            "\n[PARTIAL view: lines {first} to {last} of {n_lines}. Continue with offset={}.]\n",
            last + 1
        ));
        Some(Cut::Page)
    } else if last < n_lines || first > 1 {
        Some(Cut::Range)
    } else if cut_lines {
        out.push_str("\n[Long lines are cut.]\n");
        Some(Cut::Lines)
    } else {
        None
    };
    if text.split_terminator('\n').count() < n_lines {
        out.push_str("\n[Lines of more than 2000 characters go on as further lines here.]\n");
    }
    let page = LinePage { first, shown: &wanted[..n_shown], n_lines, cut };
    Ok(outcome(input, loaded, out, page))
}

/// What of a file was not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The pages after the first; all pages were asked for.
    Page,
    /// What was not asked for.
    Range,
    /// The ends of long lines.
    Lines,
}

struct LinePage<'a> {
    first: usize,
    shown: &'a [&'a str],
    n_lines: usize,
    cut: Option<Cut>,
}

fn outcome(input: &ReadInput, loaded: &Loaded, text: String, page: LinePage<'_>) -> ToolOutcome {
    let mut outcome = ToolOutcome::ok(text);
    outcome.structured = Some(structured(input, &page));
    if page.cut == Some(Cut::Page) {
        outcome.truncation = Some(Truncation::new(
            String::from_utf8_lossy(&loaded.bytes).chars().count() as u64,
            outcome.text.chars().count() as u64,
            Some(input.file_path.clone()),
        ));
    } else {
        // The path is filled in by the caller, who knows where the file really is.
        let seen = loaded.as_seen(page.cut.is_some());
        outcome.notes.push(ToolNote::FileSeen { path: String::new(), seen });
    }
    outcome
}

fn structured(input: &ReadInput, page: &LinePage<'_>) -> String {
    let mut file = json!({
        "filePath": input.file_path,
        "content": page.shown.join("\n"),
        "numLines": page.shown.len(),
        "startLine": page.first,
        "totalLines": page.n_lines,
    });
    if page.cut == Some(Cut::Page) {
        file["truncatedByTokenCap"] = true.into();
    }
    json!({"type": "text", "file": file}).to_string()
}

#[cfg(test)]
mod tests;
