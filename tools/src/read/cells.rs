//! Read of a notebook (`.ipynb`): cell by cell, with what each has put out.
//!
//! The lines of a source have numbers and those of outputs a mark in front, so that none of them passes for the
//! heading of a cell. Cells that were seen page by page add up.

use ennead_runtime::{
    agent_text::{cut, quoted},
    saturating::Saturating as _,
    tool::{FileSeen, ToolNote, ToolOutcome, Truncation},
};
use serde_json::{Value, json};

use super::{MAX_PAGE_CHARS, ReadInput};
use crate::{
    files::{Loaded, MARK, normal},
    notebook::{NotebookCell, NotebookCells},
    output::push_numbered,
};

/// Bytes of one output that are shown.
const MAX_OUTPUT: usize = 4000;

/// Outputs of one cell that are shown.
const MAX_OUTPUTS: usize = 20;

/// Shows cells of a notebook. `before` is what was known of the file. `None` where the file is no notebook that can be
/// read, which is shown as the text that it is.
pub(super) fn show(
    input: &ReadInput,
    loaded: &Loaded,
    before: Option<&FileSeen>,
) -> Option<Result<ToolOutcome, String>> {
    if !input.file_path.ends_with(".ipynb") {
        return None;
    }
    let text = std::str::from_utf8(&loaded.bytes).ok()?;
    let cells = NotebookCells::read(text.strip_prefix(MARK).unwrap_or(text)).ok()?;
    Some(page(input, loaded, &cells, before))
}

fn page(
    input: &ReadInput,
    loaded: &Loaded,
    cells: &NotebookCells<'_>,
    before: Option<&FileSeen>,
) -> Result<ToolOutcome, String> {
    let n_cells = cells.len();
    let first = input.offset.map_or(0, |it| usize::saturating(it.get()) - 1);
    if n_cells <= first && 0 < first {
        let text =
            format!("The notebook has {n_cells} cells; there is none at offset {}.", first + 1);
        return Ok(ToolOutcome::ok(text));
    }
    let wanted =
        input.limit.map_or(n_cells, |it| first.saturating_add(usize::saturating(it.get())));
    let end = wanted.min(n_cells);
    let (mut out, mut listed, mut n_chars, mut shown) = (String::new(), Vec::new(), 0, first);
    let mut is_cut = false;
    while shown < end && !is_cut {
        let Some(mut cell) = cells.cell(shown) else { break };
        let mut text = shown_cell(&cell);
        let n_more = text.chars().count();
        if MAX_PAGE_CHARS < n_chars + n_more {
            if first < shown {
                break;
            }
            // Alone it is too long, and what follows can still be reached.
            let what = "…\n[Cut: the cell is too long to be shown whole.]\n";
            is_cut = cut(&mut text, MAX_PAGE_CHARS, what);
            cut(&mut cell.source, MAX_PAGE_CHARS, "…");
        }
        n_chars += n_more;
        out.push_str(&text);
        listed.push(as_json(cell));
        shown += 1;
    }
    if shown < end && input.limit.is_some() {
        return Err(format!(
            "These {} cells have more than {MAX_PAGE_CHARS} characters. Ask for a smaller limit ({} cells fit).",
            end - first,
            shown - first
        ));
    }
    if n_cells == 0 {
        out.push_str("The notebook has no cells.");
    }
    if shown < n_cells && input.limit.is_none() {
        out.push_str(&format!(
            "[PARTIAL view: cells {} to {shown} of {n_cells}. Continue with offset={}.]\n",
            first + 1,
            shown + 1
        ));
    }
    let whole = shown - usize::from(is_cut);
    let mut outcome = ToolOutcome::ok(out);
    if shown - first < n_cells && input.offset.is_none() && input.limit.is_none() {
        let n_chars = String::from_utf8_lossy(&loaded.bytes).chars().count() as u64;
        let n_kept = outcome.text.chars().count() as u64;
        outcome.truncation = Some(Truncation::new(n_chars, n_kept, Some(input.file_path.clone())));
    }
    outcome.notes.push(ToolNote::FileSeen {
        path: String::new(),
        seen: seen(loaded, [first, whole], n_cells, before),
    });
    let file = json!({"filePath": input.file_path, "cells": listed});
    Ok(outcome.with_structured(&json!({"type": "notebook", "file": file})))
}

/// Notes which cells were seen, together with those that were seen before and are next to them.
fn seen(
    loaded: &Loaded,
    [from, to]: [usize; 2],
    n_cells: usize,
    before: Option<&FileSeen>,
) -> FileSeen {
    let mut seen = loaded.as_seen(true);
    let [mut from, mut to] = [from, to].map(u32::saturating);
    let known = before.filter(|it| it.digest == seen.digest).and_then(|it| it.cells);
    if let Some([known_from, known_to]) = known
        && known_from <= to
        && from <= known_to
    {
        (from, to) = (from.min(known_from), to.max(known_to));
    }
    seen.partial = 0 < from || to < u32::saturating(n_cells);
    seen.cells = seen.partial.then_some([from, to]);
    seen
}

fn shown_cell(cell: &NotebookCell) -> String {
    let heading = |it: &str| it.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = format!("[cell {} ({})]\n", heading(&cell.name), heading(&cell.cell_type));
    for (line, number) in normal(&cell.source).lines().zip(1..) {
        push_numbered(&mut out, number, line);
    }
    for output in cell.outputs.iter().take(MAX_OUTPUTS) {
        let mut output = normal(output);
        cut(&mut output, MAX_OUTPUT, "… [more is not shown]");
        out.push_str(&format!("[output]\n{}\n", quoted(&output)));
    }
    if MAX_OUTPUTS < cell.outputs.len() {
        out.push_str(&format!("[{} more outputs]\n", cell.outputs.len() - MAX_OUTPUTS));
    }
    out
}

fn as_json(cell: NotebookCell) -> Value {
    let NotebookCell { name, cell_type, source, .. } = cell;
    json!({"cell_id": name, "cellType": cell_type, "source": source})
}

#[cfg(test)]
mod tests;
