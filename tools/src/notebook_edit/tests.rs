//! NotebookEdit against real files.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::Value;

use super::*;
use crate::{
    read::Read,
    test_support::{World, structured},
};

const NOTEBOOK: &str = "\u{feff}{\r\n \"cells\": [\r\n  {\r\n   \"cell_type\": \"code\",\r\n   \
    \"execution_count\": 1,\r\n   \"id\": \"a\",\r\n   \"metadata\": {},\r\n   \"outputs\": [],\r\n   \
    \"source\": []\r\n  }\r\n ],\r\n \"metadata\": {},\r\n \"nbformat\": 4,\r\n \"nbformat_minor\": 5\r\n}";

fn change(path: &str, more: Value) -> Value {
    let mut input = json!({"notebook_path": path, "new_source": "x = 1"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

// REQ: TOL-6, TOL-7
#[test]
fn cell_is_replaced_and_the_result_has_both_files() {
    let mut world = World::new();
    let path = world.file("a.ipynb", NOTEBOOK);
    world.ok::<Read>(json!({"file_path": path}));
    let outcome = world.ok::<NotebookEdit>(change(&path, json!({"cell_id": "a"})));
    let source = "[\r\n    \"x = 1\"\r\n   ]";
    let expected = NOTEBOOK.replace("_count\": 1", "_count\": null");
    let expected = expected.replace("\"source\": []", &format!("\"source\": {source}"));
    assert_eq!(world.content("a.ipynb"), expected);
    assert_eq!(outcome.text, format!("The cell a of {path} has been replaced."));
    let result = json!({"new_source": "x = 1", "old_source": "", "cell_id": "a", "cell_type": "code",
        "language": "python", "edit_mode": "replace", "notebook_path": path,
        "original_file": NOTEBOOK, "updated_file": expected});
    assert_eq!(structured(&outcome), result);
    // What was written was seen, so the next change needs no reading.
    let more = json!({"cell_id": "a", "edit_mode": "insert", "cell_type": "markdown"});
    let inserted = structured(&world.ok::<NotebookEdit>(change(&path, more)));
    assert!(inserted.get("old_source").is_none());
    let gone = json!({"cell_id": inserted["cell_id"], "edit_mode": "delete"});
    world.ok::<NotebookEdit>(change(&path, gone));
    assert_eq!(world.content("a.ipynb"), expected);
}

// REQ: TOL-7
#[test]
fn notebook_that_was_not_read_or_has_changed_is_not_edited() {
    let mut world = World::new();
    let path = world.file("a.ipynb", NOTEBOOK);
    let edit = change(&path, json!({"cell_id": "a"}));
    assert!(world.failed::<NotebookEdit>(edit.clone()).contains("not been read yet"));
    world.ok::<Read>(json!({"file_path": path}));
    let changed = NOTEBOOK.replace("\"a\"", "\"b\"");
    world.file("a.ipynb", &changed);
    assert!(world.failed::<NotebookEdit>(edit.clone()).contains("modified since read"));
    assert_eq!(world.content("a.ipynb"), changed);
    world.ok::<Read>(json!({"file_path": path}));
    assert!(world.failed::<NotebookEdit>(edit).contains("no cell \"a\""));
    world.ok::<NotebookEdit>(change(&path, json!({"cell_id": "b"})));
}

#[test]
fn calls_that_name_too_little_or_no_notebook_are_errors() {
    let mut world = World::new();
    let path = world.file("a.ipynb", NOTEBOOK);
    let text = world.file("a.txt", NOTEBOOK);
    for (path, more, why) in [
        (&path, json!({}), "No cell is named"),
        (&path, json!({"edit_mode": "delete"}), "No cell is named"),
        (&path, json!({"edit_mode": "insert"}), "needs cell_type"),
        (&text, json!({"cell_id": "a"}), "not a notebook (.ipynb)"),
        (&world.path("none.ipynb"), json!({"cell_id": "a"}), "does not exist"),
    ] {
        let error = world.failed::<NotebookEdit>(change(path, more));
        assert!(error.contains(why), "{error}");
    }
}
