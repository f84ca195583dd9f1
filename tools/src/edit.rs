//! Edit: one text in a file is replaced by another.
//!
//! Matches on text without carriage returns and writes back what was not matched byte by byte.

use std::{ops::Range, path::Path, sync::Arc};

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    built_in::{AtPath, BuiltIn, BuiltInCall, at_path, changing_spec},
    files::{Loaded, normal, original, splice},
    output::{cut_line, push_numbered},
    patch::structured_patch,
    paths::{Directory, OpenError, split},
    replace::{Replacement, open_or_make, replace},
};

/// Lines around the change in the snippet that the model is shown.
const SNIPPET_CONTEXT: usize = 4;

/// Lines of the snippet.
const MAX_SNIPPET_LINES: usize = 60;

pub(crate) struct Edit;

/// A file and what to change in it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditInput {
    /// The absolute path of the file.
    file_path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers. Empty to make
    /// a new file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence; without it the text must occur once.
    #[serde(default)]
    replace_all: bool,
}

impl BuiltIn for Edit {
    type Input = EditInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        changing_spec(
            "Edit",
            "Replaces one text in a file by another. The file must have been read in \
                this conversation. `old_string` must stand in the file exactly, with its white \
                space, and only once unless `replace_all` is set; take in more lines around it to \
                make it unique.",
            input_schema,
        )
    }

    async fn call(call: BuiltInCall<EditInput>, context: ToolContext) -> ToolOutcome {
        at_path(call, context, edit).await
    }
}

fn edit(call: AtPath<'_, EditInput>) -> Result<ToolOutcome, String> {
    let input = call.input;
    if input.old_string == input.new_string {
        return Err("No change: old_string and new_string are the same.".into());
    }
    if input.old_string.is_empty() {
        return create(&call);
    }
    let say = |error: OpenError| error.to_string();
    let (parent, name) = split(Path::new(&call.path.real)).map_err(say)?;
    let directory = Directory::open(parent).map_err(say)?;
    let file = directory.open_file(name).map_err(say)?;
    let loaded = Loaded::from(&file).map_err(|error| error.to_string())?;
    let Some(seen) = call.context.memory.files.get(&call.path.real) else {
        return Err("File has not been read yet. Read it before editing it.".into());
    };
    if loaded.is_binary() {
        return Err("This is a binary file; Edit changes text only.".into());
    }
    let text = std::str::from_utf8(&loaded.bytes)
        .map_err(|_| "The file is not valid UTF-8; editing it would damage it.".to_owned())?;
    let before = normal(text);
    let ranges = find(input, &before)?;
    let changed = seen.digest != loaded.as_seen(false).digest;
    if changed && ranges.len() > 1 {
        return Err("File has been modified since read. Read it again before editing it.".into());
    }
    directory.check_writable(name).map_err(say)?;

    let new_string = input.new_string.replace("\r\n", "\n");
    let content = splice(text, &ranges, &new_string);
    let after = normal(&content);
    let mut message = format!("The file {} has been edited", input.file_path);
    match ranges.len() {
        1 => message.push_str(":\n"),
        n => message.push_str(&format!(" in {n} places; the first one:\n")),
    }
    push_snippet(&mut message, &after, ranges[0].start, new_string.len());
    if changed {
        message.push_str("\nThe file has also other changes that were made since it was read.\n");
    }
    let outcome = ToolOutcome::ok(message).with_structured(&json!({
        "filePath": input.file_path,
        "oldString": input.old_string,
        "newString": input.new_string,
        "originalFile": original(&before),
        "structuredPatch": structured_patch(&before, &after),
        "userModified": false,
        "replaceAll": input.replace_all,
    }));
    let replacement = Replacement {
        bytes: content.as_bytes(),
        permissions: Some(loaded.permissions),
        // Other people's changes have not been seen.
        partial: seen.partial || changed,
        outcome,
    };
    replace(&directory, replacement, &call)
}

/// Where the text is.
fn find(input: &EditInput, text: &str) -> Result<Vec<Range<usize>>, String> {
    let old = input.old_string.replace("\r\n", "\n");
    let ranges: Vec<_> = text.match_indices(&old).map(|(at, found)| at..at + found.len()).collect();
    match ranges.len() {
        0 => Err("The text to replace was not found in the file.".into()),
        n if n > 1 && !input.replace_all => Err(format!(
            "The text to replace occurs {n} times in the file. Take in more lines around it to \
             make it unique, or set replace_all."
        )),
        _ => Ok(ranges),
    }
}

/// An empty old text makes a file where there is none, or an empty one.
fn create(call: &AtPath<'_, EditInput>) -> Result<ToolOutcome, String> {
    let input = call.input;
    let (directory, old) = open_or_make(&call.path.real)?;
    if old.as_ref().is_some_and(|it| !it.bytes.is_empty()) {
        return Err("old_string is empty, but the file exists and is not.".into());
    }
    let permissions = old.map(|it| it.permissions);
    let message = format!("The file {} has been created.", input.file_path);
    let outcome = ToolOutcome::ok(message).with_structured(&json!({
        "filePath": input.file_path,
        "oldString": "",
        "newString": input.new_string,
        "originalFile": "",
        "structuredPatch": structured_patch("", &input.new_string),
        "userModified": false,
        "replaceAll": input.replace_all,
    }));
    let bytes = input.new_string.as_bytes();
    let replacement = Replacement { bytes, permissions, partial: false, outcome };
    replace(&directory, replacement, call)
}

/// The lines around a change, numbered.
fn push_snippet(out: &mut String, text: &str, at: usize, len: usize) {
    let line_of = |at: usize| text[..at].matches('\n').count();
    let first = line_of(at).saturating_sub(SNIPPET_CONTEXT);
    let last = line_of(at + len) + SNIPPET_CONTEXT;
    let n_lines = (last + 1 - first).min(MAX_SNIPPET_LINES);
    for (i, line) in text.split_terminator('\n').enumerate().skip(first).take(n_lines) {
        push_numbered(out, i + 1, &cut_line(line, 300));
    }
    if last + 1 - first > n_lines {
        out.push_str("   ...\n");
    }
}

#[cfg(test)]
mod tests;
