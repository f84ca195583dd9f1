//! MultiEdit: several texts of one file are replaced, one after another, all of them or none.
//!
//! An older tool that some programs still name. A session does not have it unless it is asked for.

use std::sync::Arc;

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    blocking::interrupted,
    built_in::{AtPath, BuiltIn, BuiltInCall, at_path, changing_spec},
    files::{normal, original},
    patch::structured_patch,
    replace::{Replacement, replace},
    text_edit::{OTHER_CHANGES, SeenText, TextEdit, modified_since_read},
};

/// Edits of one call.
const MAX_EDITS: usize = 100;

pub(crate) struct MultiEdit;

/// A file and what to change in it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MultiEditInput {
    /// The absolute path of the file.
    file_path: String,
    /// What to replace, in this order; each works on what the ones before it have made.
    #[schemars(length(min = 1, max = MAX_EDITS))]
    edits: Vec<OneEdit>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    /// The text to replace, exactly as it stands in the file, without line numbers.
    #[schemars(length(min = 1))]
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence; without it the text must occur once.
    #[serde(default)]
    replace_all: bool,
}

impl BuiltIn for MultiEdit {
    type Input = MultiEditInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        changing_spec(
            "MultiEdit",
            "Replaces several texts in one file, one after another. Each edit is as \
                one of Edit and works on what the ones before it have made. If one of them cannot \
                be made, none is. The file must have been read in this conversation.",
            input_schema,
        )
    }

    async fn call(call: BuiltInCall<MultiEditInput>, context: ToolContext) -> ToolOutcome {
        at_path(call, context, edit).await
    }
}

fn edit(call: AtPath<'_, MultiEditInput>) -> Result<ToolOutcome, String> {
    let input = call.input;
    let n_edits = input.edits.len();
    // The schema says so, too, where schemas are checked.
    if n_edits == 0 || MAX_EDITS < n_edits || input.edits.iter().any(|it| it.old_string.is_empty())
    {
        return Err(format!("Give 1 to {MAX_EDITS} edits, each with an old_string."));
    }
    let file = SeenText::open(&call, "MultiEdit")?;
    let mut text = file.text().to_owned();
    for (at, it) in input.edits.iter().enumerate() {
        if call.stop.is_set() {
            return Ok(interrupted());
        }
        let OneEdit { old_string: old, new_string: new, replace_all } = it;
        let edited = TextEdit { old, new, replace_all: *replace_all }.apply(&text);
        let edited = edited.map_err(|error| {
            format!("Edit {} of {n_edits} cannot be made, so none is: {error}", at + 1)
        })?;
        if file.is_changed && 1 < edited.n_places {
            return Err(modified_since_read());
        }
        text = edited.text;
    }
    file.check_writable(&call.path.real)?;

    let (before, after) = (normal(file.text()), normal(&text));
    let mut message = format!("{n_edits} edits have been made in {}.\n", input.file_path);
    if file.is_changed {
        message.push_str(OTHER_CHANGES);
    }
    let outcome = ToolOutcome::ok(message).with_structured(&json!({
        "filePath": input.file_path,
        "edits": input.edits,
        "originalFile": original(&before),
        "structuredPatch": structured_patch(&before, &after),
        "userModified": false,
    }));
    let replacement = Replacement {
        bytes: text.as_bytes(),
        permissions: Some(file.loaded.permissions.clone()),
        // Other people's changes have not been seen.
        partial: file.seen.partial || file.is_changed,
        cells: None,
        outcome,
    };
    replace(&file.directory, replacement, &call)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        built_in::Declared,
        read::Read,
        test_support::{World, structured},
    };
    use ennead_runtime::ports::Tool;

    fn edits(path: &str, edits: &[(&str, &str, bool)]) -> Value {
        let edit = |(old, new, all): &(&str, &str, bool)| json!({"old_string": old, "new_string": new, "replace_all": all});
        json!({"file_path": path, "edits": edits.iter().map(edit).collect::<Vec<_>>()})
    }

    // REQ: TOL-6, TOL-7
    #[test]
    fn each_edit_works_on_what_the_ones_before_it_made() {
        let mut world = World::new();
        let path = world.file("a", "\u{feff}one\r\ntwo\r\none\r\n");
        world.ok::<Read>(json!({"file_path": path}));
        let input = edits(&path, &[("one", "two", true), ("two\ntwo", "x", false)]);
        assert!(
            world.failed::<MultiEdit>(edits(&path, &[("one", "x", false)])).contains("2 times")
        );
        let outcome = world.ok::<MultiEdit>(input.clone());
        assert_eq!(world.content("a"), "\u{feff}x\r\ntwo\r\n");
        let result = structured(&outcome);
        assert_eq!(
            (&result["edits"], &result["originalFile"]),
            (&input["edits"], &json!("one\ntwo\none\n"))
        );
        assert_eq!(result["structuredPatch"][0]["lines"], json!(["-one", "+x", " two", "-one"]));
        // What was written was seen, so the next change needs no reading.
        world.ok::<MultiEdit>(edits(&path, &[("x", "y", false)]));
    }

    // REQ: TOL-6, TOL-7
    #[test]
    fn edit_that_cannot_be_made_leaves_the_file_as_it_is() {
        let mut world = World::new();
        let path = world.file("a", "one\ntwo\n");
        let unread = edits(&path, &[("one", "1", false)]);
        assert!(world.failed::<MultiEdit>(unread).contains("not been read yet"));
        world.ok::<Read>(json!({"file_path": path}));
        let last_fails = edits(&path, &[("one", "1", false), ("one", "2", false)]);
        let error = world.failed::<MultiEdit>(last_fails);
        assert!(
            error.contains("Edit 2 of 2 cannot be made") && error.contains("not found"),
            "{error}"
        );
        assert!(world.failed::<MultiEdit>(edits(&path, &[("a", "a", true)])).contains("the same"));
        // Each edit doubles what there is.
        let doubling = vec![("o", "oo", true); MAX_EDITS];
        assert!(
            world.failed::<MultiEdit>(edits(&path, &doubling)).contains("would have more than")
        );
        world.file("a", "one\ntwo\ntwo\n");
        let all = edits(&path, &[("two", "2", true)]);
        assert!(world.failed::<MultiEdit>(all).contains("modified since read"));
        assert_eq!(world.content("a"), "one\ntwo\ntwo\n");
        world.ok::<MultiEdit>(edits(&path, &[("one", "1", false)]));
        assert!(world.context.memory.files[&path].partial);
    }

    // REQ: TOL-6
    #[test]
    fn number_of_edits_is_bounded() {
        let mut world = World::new();
        let path = world.file("a", "0");
        world.ok::<Read>(json!({"file_path": path}));
        let steps: Vec<_> =
            (0..=MAX_EDITS).map(|it| (it.to_string(), (it + 1).to_string())).collect();
        let steps: Vec<_> = steps.iter().map(|it| (&*it.0, &*it.1, false)).collect();
        world.ok::<MultiEdit>(edits(&path, &steps[..MAX_EDITS]));
        assert_eq!(world.content("a"), MAX_EDITS.to_string());
        let tool = Declared::<MultiEdit>::new();
        for (edits, is_taken) in [
            (edits(&path, &steps), false),
            (edits(&path, &[]), false),
            (edits(&path, &[("", "x", false)]), false),
            (edits(&path, &[("a", "x", false)]), true),
        ] {
            assert_eq!(tool.check_input(&edits.to_string()).is_ok(), is_taken);
        }
    }
}
