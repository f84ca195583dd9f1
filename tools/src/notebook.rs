//! Notebooks (`.ipynb`, nbformat 4) as text: one cell is replaced, inserted or deleted.
//!
//! What lies outside of the cell stays as it is, byte by byte. Of the cell itself the members that are
//! not changed stay, with their order; the white space between them becomes that of the notebook: its
//! indentation and line ends, or none. All work is linear in the length of the text.

mod cells;
mod json_text;

use std::ops::Range;

use ennead_runtime::digest::Digest;
use serde::Deserialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

pub(crate) use self::cells::{NotebookCell, NotebookCells};
use self::json_text::{Layout, MAX_DEPTH, Members, is_deeper, range_in};

/// Characters of the language that a result names.
const MAX_LANGUAGE_CHARS: usize = 64;

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellType {
    Code,
    Markdown,
}

impl CellType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

/// What happens to which cell. Cells are named by their id, or as `cell-N`, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CellChange<'a> {
    /// The cell gets another source and, if one is given, another type. What it had put out goes.
    Replace { cell: &'a str, source: &'a str, to: Option<CellType> },
    /// A new cell comes after this one, or before all others.
    Insert { after: Option<&'a str>, source: &'a str, of: CellType },
    /// The cell is removed.
    Delete { cell: &'a str },
}

/// A notebook after a change.
#[derive(Debug)]
pub(crate) struct ChangedNotebook {
    /// The whole text of the changed notebook.
    pub(crate) text: String,
    /// The id of the cell, or `cell-N` where cells have none.
    pub(crate) cell_id: String,
    /// The type of the cell; that of a deleted one, too.
    pub(crate) cell_type: String,
    /// The language of code cells.
    pub(crate) language: String,
    /// The source that the cell had.
    pub(crate) old_source: Option<String>,
    /// The place of the cell, counted from 0.
    pub(crate) at: usize,
}

/// Why a notebook is not changed. The messages are for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotebookError {
    /// The text is not JSON, or what has to be an object or a list is something else.
    #[error("The file is not a notebook: {0}.")]
    NotANotebook(#[from] serde_json::Error),
    /// The JSON is nested too deeply.
    #[error("The file is nested more than {MAX_DEPTH} levels deep, which no notebook is.")]
    TooDeep,
    /// There is no list of cells, or it is of a format before 4.
    #[error("The notebook has no cells in the way of nbformat 4. Convert it first.")]
    OtherFormat,
    /// No cell has this name.
    #[error("There is no cell {0:?} in the notebook, which has {1} cells.")]
    NoSuchCell(String, usize),
    /// Several cells have this id.
    #[error("{1} cells have the id {0:?}. Name one by its place, as cell-N, counted from cell-0.")]
    AmbiguousCell(String, usize),
}

/// The members of a notebook that a change looks at.
struct Notebook<'a> {
    /// The whole text of the notebook.
    text: &'a str,
    layout: Layout<'a>,
    /// Where the list of cells lies.
    list: Range<usize>,
    cells: Vec<&'a RawValue>,
    language: String,
    has_ids: bool,
}

#[derive(Deserialize)]
struct CellId {
    id: Option<Value>,
}

#[derive(Deserialize)]
struct Metadata {
    language_info: Option<LanguageInfo>,
}

#[derive(Deserialize)]
struct LanguageInfo {
    name: Option<String>,
}

/// Returns the text of a notebook with one cell changed. `text` has no byte order mark.
pub(crate) fn change_cell(
    text: &str,
    change: CellChange<'_>,
) -> Result<ChangedNotebook, NotebookError> {
    let notebook = Notebook::read(text)?;
    match change {
        CellChange::Replace { cell, source, to } => {
            notebook.replaced(notebook.find(cell)?, source, to)
        }
        CellChange::Insert { after, source, of } => {
            let at = after.map_or(Ok(0), |cell| notebook.find(cell).map(|at| at + 1))?;
            notebook.inserted(at, source, of)
        }
        CellChange::Delete { cell } => notebook.deleted(notebook.find(cell)?),
    }
}

impl<'a> Notebook<'a> {
    fn read(text: &'a str) -> Result<Self, NotebookError> {
        if is_deeper(text) {
            return Err(NotebookError::TooDeep);
        }
        let Members(members) = serde_json::from_str(text)?;
        let member = |name: &str| members.iter().find(|it| it.0 == name).map(|it| it.1);
        let number = |name: &str| member(name).and_then(|it| it.get().parse::<u64>().ok());
        let list = member("cells").ok_or(NotebookError::OtherFormat)?;
        if number("nbformat") != Some(4) {
            return Err(NotebookError::OtherFormat);
        }
        let cells: Vec<&RawValue> = serde_json::from_str(list.get())?;
        let metadata = member("metadata").map(RawValue::get);
        let metadata = metadata.and_then(|it| serde_json::from_str::<Metadata>(it).ok());
        let language = metadata.and_then(|it| it.language_info?.name);
        let language = language.as_deref().unwrap_or("python");
        Ok(Self {
            text,
            layout: Layout::of(text),
            list: range_in(text, list.get()),
            cells,
            language: language.chars().take(MAX_LANGUAGE_CHARS).collect(),
            has_ids: number("nbformat_minor").is_some_and(|it| 5 <= it),
        })
    }

    /// Returns the place of the cell with this id or, if none has it, of that `cell-N`.
    fn find(&self, name: &str) -> Result<usize, NotebookError> {
        let (mut found, mut has_ids) = (Vec::new(), false);
        for (at, cell) in self.cells.iter().enumerate() {
            let CellId { id } = serde_json::from_str(cell.get())?;
            has_ids |= id.is_some();
            if id.as_ref().and_then(Value::as_str) == Some(name) {
                found.push(at);
            }
        }
        let n_cells = self.cells.len();
        match *found {
            [] => {
                // Where cells have ids it would be the id of one that is gone.
                let at = name.strip_prefix("cell-").filter(|_| !has_ids);
                let at = at.and_then(|it| it.parse().ok()).filter(|it| *it < n_cells);
                at.ok_or_else(|| NotebookError::NoSuchCell(name.into(), n_cells))
            }
            [at] => Ok(at),
            _ => Err(NotebookError::AmbiguousCell(name.into(), found.len())),
        }
    }

    fn replaced(
        &self,
        at: usize,
        source: &str,
        to: Option<CellType>,
    ) -> Result<ChangedNotebook, NotebookError> {
        let raw = self.cells[at];
        let Members(mut members) = serde_json::from_str(raw.get())?;
        let (old_type, old_source) = (type_of(&members), source_of(&members));
        let new_type = to.map_or(&*old_type, |it| it.as_str());
        let has_lines = !members.iter().any(|it| it.0 == "source" && it.1.get().starts_with('"'));
        let lines = self.written(&self.source(source, has_lines), 3)?;
        let kind = to_raw_value(new_type)?;
        let (no_count, no_outputs) = (to_raw_value(&())?, to_raw_value(&[(); 0])?);
        set(&mut members, "cell_type", &kind);
        set(&mut members, "source", &lines);
        if new_type == "code" {
            set(&mut members, "execution_count", &no_count);
            set(&mut members, "outputs", &no_outputs);
        } else {
            members.retain(|it| !matches!(it.0.as_str(), "execution_count" | "outputs"));
        }
        let cell = self.layout.object(&members, 2);
        let text = self.with(range_in(self.text, raw.get()), &cell);
        Ok(self.changed(text, (at, id_of(&members)), new_type, old_source))
    }

    fn inserted(
        &self,
        at: usize,
        source: &str,
        of: CellType,
    ) -> Result<ChangedNotebook, NotebookError> {
        let has_lines = !self.cells.first().is_some_and(|it| {
            let first = serde_json::from_str::<Members<'_>>(it.get()).unwrap_or_default();
            first.0.iter().any(|it| it.0 == "source" && it.1.get().starts_with('"'))
        });
        let id = if self.has_ids { Some(self.new_id(source)?) } else { None };
        // In the order of the alphabet, as nbformat writes them.
        let mut cell = vec![("cell_type", json!(of.as_str()))];
        if of == CellType::Code {
            cell.push(("execution_count", Value::Null));
        }
        cell.extend(id.iter().map(|id| ("id", json!(id))));
        cell.push(("metadata", json!({})));
        if of == CellType::Code {
            cell.push(("outputs", json!([])));
        }
        cell.push(("source", self.source(source, has_lines)));
        let written =
            |(name, value): &(&str, Value)| Ok((String::from(*name), self.written(value, 3)?));
        let cell: Vec<_> = cell.iter().map(written).collect::<Result<_, NotebookError>>()?;
        let members: Vec<_> = cell.iter().map(|it| (it.0.clone(), &*it.1)).collect();
        let cell = self.layout.object(&members, 2);
        let between = self.layout.between(2);
        let range = |at: usize| range_in(self.text, self.cells[at].get());
        let text = match (at, self.cells.len()) {
            (_, 0) => {
                let (open, close) = (self.layout.line(2), self.layout.line(1));
                self.with(self.list.clone(), &format!("[{open}{cell}{close}]"))
            }
            (0, _) => self.with(range(0).start..range(0).start, &format!("{cell}{between}")),
            (at, _) => {
                let end = range(at - 1).end;
                self.with(end..end, &format!("{between}{cell}"))
            }
        };
        Ok(self.changed(text, (at, id), of.as_str(), None))
    }

    fn deleted(&self, at: usize) -> Result<ChangedNotebook, NotebookError> {
        let Members(members) = serde_json::from_str(self.cells[at].get())?;
        let range = |at: usize| range_in(self.text, self.cells[at].get());
        // With the comma after it, or that before the last one.
        let gone = match (at, self.cells.len()) {
            (_, 1) => self.list.start + 1..self.list.end - 1,
            (at, n_cells) if at + 1 == n_cells => range(at - 1).end..range(at).end,
            (at, _) => range(at).start..range(at + 1).start,
        };
        let text = self.with(gone, "");
        Ok(self.changed(text, (at, id_of(&members)), &type_of(&members), source_of(&members)))
    }

    fn changed(
        &self,
        text: String,
        (at, id): (usize, Option<String>),
        cell_type: &str,
        old_source: Option<String>,
    ) -> ChangedNotebook {
        ChangedNotebook {
            text,
            cell_id: id.unwrap_or_else(|| format!("cell-{at}")),
            cell_type: cell_type.into(),
            language: self.language.clone(),
            old_source,
            at,
        }
    }

    /// Returns an id that no cell has: the digest of what is there and what is added.
    fn new_id(&self, source: &str) -> Result<String, NotebookError> {
        let mut digest = Digest::of_parts(&[self.text.as_bytes(), source.as_bytes()]);
        loop {
            let id: String = digest.to_string().chars().take(8).collect();
            match self.find(&id) {
                Err(NotebookError::NoSuchCell(..)) => return Ok(id),
                Err(error @ NotebookError::NotANotebook(_)) => return Err(error),
                _ => digest = digest.chain(digest),
            }
        }
    }

    /// Returns a source in one of the two forms that notebooks have: a text, or a list of its lines.
    fn source(&self, source: &str, has_lines: bool) -> Value {
        let source = source.replace("\r\n", "\n");
        if has_lines { source.split_inclusive('\n').collect() } else { source.into() }
    }

    /// Returns a value as the notebook writes it, for a place at this depth.
    fn written(&self, value: &Value, depth: usize) -> Result<Box<RawValue>, NotebookError> {
        let text = match value {
            Value::Array(lines) if !lines.is_empty() => {
                let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
                let (open, close) = (self.layout.line(depth + 1), self.layout.line(depth));
                format!("[{open}{}{close}]", lines.join(&self.layout.between(depth + 1)))
            }
            value => value.to_string(),
        };
        Ok(RawValue::from_string(text)?)
    }

    /// Returns the text with a part of it replaced.
    fn with(&self, part: Range<usize>, new: &str) -> String {
        [&self.text[..part.start], new, &self.text[part.end..]].concat()
    }
}

/// Gives a member another value, or adds it.
fn set<'a>(members: &mut Vec<(String, &'a RawValue)>, name: &str, value: &'a RawValue) {
    match members.iter_mut().find(|it| it.0 == name) {
        Some(member) => member.1 = value,
        None => members.push((name.into(), value)),
    }
}

fn text_of(members: &[(String, &RawValue)], name: &str) -> Option<String> {
    let (_, raw) = members.iter().find(|it| it.0 == name)?;
    serde_json::from_str(raw.get()).ok()
}

fn id_of(members: &[(String, &RawValue)]) -> Option<String> {
    text_of(members, "id")
}

fn type_of(members: &[(String, &RawValue)]) -> String {
    text_of(members, "cell_type").unwrap_or_else(|| "code".into())
}

fn source_of(members: &[(String, &RawValue)]) -> Option<String> {
    let (_, raw) = members.iter().find(|it| it.0 == "source")?;
    let lines = || serde_json::from_str::<Vec<String>>(raw.get()).ok().map(|it| it.concat());
    text_of(members, "source").or_else(lines)
}

#[cfg(test)]
mod tests;
