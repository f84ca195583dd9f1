//! The cells of a notebook as a reader sees them: what each is, its source, and what it has put out.

use serde_json::{Value, value::RawValue};

use super::{Notebook, NotebookError, id_of, json_text::Members, source_of, type_of};

/// One cell of a notebook.
#[derive(Debug)]
pub(crate) struct NotebookCell {
    /// What a change names it by: its id, or `cell-N` where it has none.
    pub(crate) name: String,
    /// `code`, `markdown` or `raw`, as a rule.
    pub(crate) cell_type: String,
    /// The code or the text of the cell.
    pub(crate) source: String,
    /// What it has put out, each as text; a picture or the like is named by its type.
    pub(crate) outputs: Vec<String>,
}

/// The cells of a notebook, of which each is read when it is shown.
#[derive(Debug)]
pub(crate) struct NotebookCells<'a>(Vec<&'a RawValue>);

impl<'a> NotebookCells<'a> {
    /// Reads a notebook; `text` has no byte order mark.
    pub(crate) fn read(text: &'a str) -> Result<Self, NotebookError> {
        Ok(Self(Notebook::read(text)?.cells))
    }

    /// Returns the number of cells.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Reads the cell at a place; `None` after the last one. What is not an object has neither source nor outputs.
    pub(crate) fn cell(&self, at: usize) -> Option<NotebookCell> {
        self.0.get(at).map(|raw| {
            let Members(members) = serde_json::from_str(raw.get()).unwrap_or_default();
            let outputs = members.iter().find(|it| it.0 == "outputs").map(|it| it.1.get());
            let outputs = outputs.and_then(|it| serde_json::from_str::<Vec<Value>>(it).ok());
            NotebookCell {
                name: id_of(&members).unwrap_or_else(|| format!("cell-{at}")),
                cell_type: type_of(&members),
                source: source_of(&members).unwrap_or_default(),
                outputs: outputs.unwrap_or_default().iter().map(output).collect(),
            }
        })
    }
}

/// Returns an output as text.
fn output(output: &Value) -> String {
    let named = |name: &str| output.get(name).map(joined).unwrap_or_default();
    if output.get("ename").is_some() {
        return format!("{}: {}", named("ename"), named("evalue"));
    }
    let Some(data) = output.get("data").and_then(Value::as_object) else { return named("text") };
    let text = data.get("text/plain").map(joined);
    let others = data.keys().filter(|it| *it != "text/plain").map(|it| format!("[{it}]"));
    text.into_iter().chain(others).collect::<Vec<_>>().join("\n")
}

/// Returns a text that is written as one, or as a list of its lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}
