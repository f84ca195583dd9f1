//! NotebookEdit: one cell of a notebook (`.ipynb`) is replaced, inserted or deleted.
//!
//! A cell is named, and nothing of it has to be repeated. So, other than with Edit, a notebook that has
//! changed since it was read is never edited. Of a long one it is enough that the cell was seen.

use std::sync::Arc;

use ennead_runtime::{
    ports::ToolContext,
    saturating::Saturating as _,
    tool::{FileSeen, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    built_in::{AtPath, BuiltIn, BuiltInCall, at_path, changing_spec_at},
    files::{MARK, MAX_FILE_BYTES, original},
    notebook::{CellChange, CellType, ChangedNotebook, change_cell},
    replace::{Replacement, replace},
    text_edit::{SeenText, modified_since_read},
};

pub(crate) struct NotebookEdit;

/// A notebook and what to change in it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotebookEditInput {
    /// The absolute path of the notebook (`.ipynb`).
    notebook_path: String,
    /// The new source of the cell. Not used when a cell is deleted.
    new_source: String,
    /// The id of the cell, or `cell-N` where it has none, counted from `cell-0`. A new cell is
    /// inserted after it; without it, at the beginning.
    cell_id: Option<String>,
    /// The type of the cell; needed for a new one. Without it a cell keeps its type.
    cell_type: Option<Kind>,
    /// What to do: `replace` (the default), `insert` or `delete`.
    #[serde(default)]
    edit_mode: EditMode,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Code,
    Markdown,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum EditMode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl From<Kind> for CellType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Code => Self::Code,
            Kind::Markdown => Self::Markdown,
        }
    }
}

impl BuiltIn for NotebookEdit {
    type Input = NotebookEditInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        changing_spec_at(
            "notebook_path",
            "NotebookEdit",
            "Replaces, inserts or deletes one cell of a Jupyter notebook (`.ipynb`). \
                The cell must have been read in this conversation. What a code cell had put \
                out is removed when its source is replaced.",
            input_schema,
        )
    }

    async fn call(call: BuiltInCall<NotebookEditInput>, context: ToolContext) -> ToolOutcome {
        at_path(call, context, edit).await
    }
}

fn edit(call: AtPath<'_, NotebookEditInput>) -> Result<ToolOutcome, String> {
    let (input, real) = (call.input, &*call.path.real);
    if !real.ends_with(".ipynb") {
        return Err("This is not a notebook (.ipynb); change other files with Edit.".into());
    }
    let change = input.change()?;
    let file = SeenText::open(&call, "NotebookEdit")?;
    if file.is_changed {
        return Err(modified_since_read());
    }
    let whole = file.text();
    let text = whole.strip_prefix(MARK).unwrap_or(whole);
    let changed = change_cell(text, change).map_err(|error| error.to_string())?;
    let cells = input.cells_seen(file.seen, changed.at)?;
    let ChangedNotebook { text: new_text, cell_id, cell_type, language, old_source, .. } = &changed;
    let updated = [&whole[..whole.len() - text.len()], new_text].concat();
    if MAX_FILE_BYTES < updated.len() as u64 {
        return Err(format!("The notebook would have more than {MAX_FILE_BYTES} bytes."));
    }
    file.check_writable(real)?;

    let path = &input.notebook_path;
    let message = match input.edit_mode {
        EditMode::Replace => format!("The cell {cell_id} of {path} has been replaced."),
        EditMode::Insert => format!("The {cell_type} cell {cell_id} has been inserted in {path}."),
        EditMode::Delete => format!("The cell {cell_id} of {path} has been deleted."),
    };
    let mut result = json!({
        "new_source": input.new_source,
        "cell_id": cell_id,
        "cell_type": cell_type,
        "language": language,
        "edit_mode": input.edit_mode,
        "notebook_path": path,
        "original_file": original(whole),
        "updated_file": original(&updated),
    });
    if let Some(old_source) = old_source {
        result["old_source"] = original(old_source).into();
    }
    let replacement = Replacement {
        bytes: updated.as_bytes(),
        permissions: Some(file.loaded.permissions.clone()),
        partial: cells.is_some(),
        cells,
        outcome: ToolOutcome::ok(message).with_structured(&result),
    };
    replace(&file.directory, replacement, &call)
}

impl NotebookEditInput {
    /// Returns the cells that are known after the change of the one at a place, where not all are. A cell is only named:
    /// nothing else shows that it is the one that was seen.
    fn cells_seen(&self, seen: &FileSeen, at: usize) -> Result<Option<[u32; 2]>, String> {
        if !seen.partial {
            return Ok(None);
        }
        let at = u32::saturating(at);
        let [from, to] = seen.cells.unwrap_or_default();
        let (named, to_now) = match self.edit_mode {
            EditMode::Replace => (at, to),
            EditMode::Delete => (at, to.saturating_sub(1)),
            // It comes after the one that is named, or in front of the first.
            EditMode::Insert => (at.saturating_sub(1), to.saturating_add(1)),
        };
        if !(from..to).contains(&named) {
            let why =
                "This cell was not seen. Read it first; `offset` and `limit` of Read count cells.";
            return Err(why.into());
        }
        Ok(Some([from, to_now]))
    }

    fn change(&self) -> Result<CellChange<'_>, String> {
        let (source, cell_type) = (&*self.new_source, self.cell_type.map(CellType::from));
        let cell = || {
            let none = "No cell is named; give cell_id unless a cell is inserted.";
            self.cell_id.as_deref().ok_or(none.to_owned())
        };
        Ok(match self.edit_mode {
            EditMode::Replace => CellChange::Replace { cell: cell()?, source, to: cell_type },
            EditMode::Delete => CellChange::Delete { cell: cell()? },
            EditMode::Insert => {
                let of = cell_type.ok_or("A new cell needs cell_type: code or markdown.")?;
                CellChange::Insert { after: self.cell_id.as_deref(), source, of }
            }
        })
    }
}

#[cfg(test)]
mod tests;
