//! Edit: one text in a file is replaced by another.

use std::sync::Arc;

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    built_in::{AtPath, BuiltIn, BuiltInCall, at_path, changing_spec},
    files::{normal, original},
    patch::structured_patch,
    replace::{Replacement, open_or_make, replace},
    text_edit::{Edited, OTHER_CHANGES, SeenText, TextEdit, modified_since_read, push_snippet},
};

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
    let edit =
        TextEdit { old: &input.old_string, new: &input.new_string, replace_all: input.replace_all };
    edit.check_changes().map_err(|error| error.to_string())?;
    if input.old_string.is_empty() {
        return create(&call);
    }
    let file = SeenText::open(&call, "Edit")?;
    let Edited { text, n_places, first } =
        edit.apply(file.text()).map_err(|error| error.to_string())?;
    if file.is_changed && 1 < n_places {
        return Err(modified_since_read());
    }
    file.check_writable(&call.path.real)?;

    let (before, after) = (normal(file.text()), normal(&text));
    let mut message = format!("The file {} has been edited", input.file_path);
    match n_places {
        1 => message.push_str(":\n"),
        n => message.push_str(&format!(" in {n} places; the first one:\n")),
    }
    push_snippet(&mut message, &after, first);
    if file.is_changed {
        message.push_str(OTHER_CHANGES);
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
        bytes: text.as_bytes(),
        permissions: Some(file.loaded.permissions),
        // Other people's changes have not been seen.
        partial: file.seen.partial || file.is_changed,
        cells: None,
        outcome,
    };
    replace(&file.directory, replacement, &call)
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
    let replacement = Replacement { bytes, permissions, partial: false, cells: None, outcome };
    replace(&directory, replacement, call)
}

#[cfg(test)]
mod tests;
