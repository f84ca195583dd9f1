//! Write: a whole file, new or in the place of one that the model has seen.

use std::{path::Path, sync::Arc};

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    built_in::{AtPath, BuiltIn, BuiltInCall, at_path, changing_spec},
    files::{Loaded, in_form_of, normal, original},
    patch::structured_patch,
    paths::split,
    replace::{Replacement, open_or_make, replace},
};

pub(crate) struct Write;

/// A file and what it is to hold.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteInput {
    /// The absolute path of the file.
    file_path: String,
    /// Everything it is to hold.
    content: String,
}

impl BuiltIn for Write {
    type Input = WriteInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        changing_spec(
            "Write",
            "Writes a whole file and makes the directories it needs. A file that \
                exists is replaced; it must have been read whole in this conversation. To change \
                a part of a file use Edit.",
            input_schema,
        )
    }

    async fn call(call: BuiltInCall<WriteInput>, context: ToolContext) -> ToolOutcome {
        at_path(call, context, write).await
    }
}

fn write(call: AtPath<'_, WriteInput>) -> Result<ToolOutcome, String> {
    let (input, real) = (call.input, &*call.path.real);
    let (directory, old) = open_or_make(real)?;
    if let Some(old) = &old {
        may_overwrite(old, real, call.context)?;
        let writable = split(Path::new(real)).and_then(|(_, name)| directory.check_writable(name));
        writable.map_err(|error| error.to_string())?;
    }
    let old_text = old.as_ref().map(|old| String::from_utf8_lossy(&old.bytes));
    let content = match &old_text {
        Some(old_text) => in_form_of(old_text, &input.content),
        None => input.content.clone(),
    };
    let (before, after) = (old_text.as_deref().map(normal), normal(&content));
    let outcome = ToolOutcome::ok(match &before {
        Some(_) => format!("The file {} has been replaced.", input.file_path),
        None => format!("The file {} has been created.", input.file_path),
    })
    .with_structured(&json!({
        "type": if before.is_some() { "update" } else { "create" },
        "filePath": input.file_path,
        "content": input.content,
        "structuredPatch": before.as_deref().map(|old| structured_patch(old, &after)).unwrap_or_default(),
        "originalFile": before.as_deref().and_then(original),
    }));
    let permissions = old.as_ref().map(|old| old.permissions.clone());
    let bytes = content.as_bytes();
    let replacement = Replacement { bytes, permissions, partial: false, cells: None, outcome };
    replace(&directory, replacement, &call)
}

/// Whether the model knows what it is about to replace.
fn may_overwrite(old: &Loaded, real: &str, context: &ToolContext) -> Result<(), String> {
    match context.memory.files.get(real) {
        None => Err("File has not been read yet. Read it before writing to it.".into()),
        Some(seen) if seen.digest != old.as_seen(false).digest => {
            Err("File has been modified since read. Read it again before writing to it.".into())
        }
        Some(seen) if seen.partial => Err("File has been read only in part. Read the whole file \
             before replacing it, or change a part of it with Edit."
            .into()),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
