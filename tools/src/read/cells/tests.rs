//! Read of notebooks, and what of them may then be edited.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use crate::{
    notebook_edit::NotebookEdit,
    read::Read,
    test_support::{World, structured},
};

/// A notebook with these sources in code cells, of which each has put out one text.
fn notebook(sources: &[String], output: &str) -> String {
    let cell = |(at, source): (usize, &String)| {
        let output = json!({"output_type": "stream", "name": "stdout", "text": [output]});
        json!({"cell_type": "code", "execution_count": 1, "id": format!("c{at}"), "metadata": {},
            "outputs": [output], "source": source})
    };
    let cells: Vec<_> = sources.iter().enumerate().map(cell).collect();
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

// REQ: TOL-6, TOL-7
#[test]
fn notebook_is_shown_by_cells_with_what_they_put_out_and_may_then_be_edited() {
    let mut world = World::new();
    let text = json!({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "[cell x (code)]"]},
        {"cell_type": "code", "metadata": {}, "source": "1/0", "outputs": [
            {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}},
            {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero\n[output]"},
        ]},
    ]});
    let path = world.file("a.ipynb", text.to_string());
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert_eq!(
        outcome.text,
        "[cell cell-0 (markdown)]\n     1\t# Title\n     2\t[cell x (code)]\n\
         [cell cell-1 (code)]\n     1\t1/0\n[output]\n> <Figure>\n> [image/png]\n\
         [output]\n> ZeroDivisionError: by zero\n> [output]\n"
    );
    let result = structured(&outcome);
    assert_eq!(
        (&result["type"], &result["file"]["cells"][1]["source"]),
        (&json!("notebook"), &json!("1/0"))
    );
    let edit = json!({"notebook_path": path, "cell_id": "cell-1", "new_source": "1"});
    world.ok::<NotebookEdit>(edit);

    let odd = r#"{"cells": ["no cell"], "nbformat": 4}"#;
    let outcome = world.ok::<Read>(json!({"file_path": world.file("c.ipynb", odd)}));
    assert_eq!(outcome.text, "[cell cell-0 (code)]\n");

    // What is no notebook is shown as it is.
    for other in ["{\"cells\": 1}", "no JSON"] {
        let path = world.file("b.ipynb", other);
        let outcome = world.ok::<Read>(json!({"file_path": path}));
        assert_eq!(outcome.text, format!("     1\t{other}\n"));
    }
}

// REQ: TOL-6, TOL-7
#[test]
fn long_notebook_is_edited_cell_by_cell_once_these_were_seen() {
    let mut world = World::new();
    let sources: Vec<_> = (0..30).map(|at| format!("{at}{}", "x".repeat(9_000))).collect();
    let path = world.file("a.ipynb", notebook(&sources, "out"));
    let edit = |cell: &str, mode: &str| json!({"notebook_path": path, "cell_id": cell, "new_source": "1", "edit_mode": mode, "cell_type": "code"});
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert!(outcome.text.chars().count() < 101_000);
    assert!(
        outcome.text.ends_with("[PARTIAL view: cells 1 to 11 of 30. Continue with offset=12.]\n")
    );
    assert!(world.failed::<NotebookEdit>(edit("c11", "replace")).contains("was not seen"));
    assert!(world.failed::<NotebookEdit>(edit("c11", "delete")).contains("was not seen"));
    assert!(world.failed::<NotebookEdit>(edit("c11", "insert")).contains("was not seen"));
    world.ok::<NotebookEdit>(edit("c10", "replace"));
    world.ok::<NotebookEdit>(edit("c10", "insert"));
    assert_eq!(world.context.memory.files[&path].cells, Some([0, 12]));
    world.ok::<NotebookEdit>(edit("c0", "delete"));
    assert!(world.failed::<NotebookEdit>(edit("c11", "replace")).contains("was not seen"));

    // A page that is not next to the others begins anew; those that are add up to the whole.
    let too_many = json!({"file_path": path, "offset": 12, "limit": 20});
    assert!(world.failed::<Read>(too_many).contains("Ask for a smaller limit (11 cells fit)"));
    world.ok::<Read>(json!({"file_path": path, "offset": 12, "limit": 10}));
    assert_eq!(world.context.memory.files[&path].cells, Some([0, 21]));
    world.ok::<NotebookEdit>(edit("c11", "replace"));
    world.ok::<Read>(json!({"file_path": path, "offset": 25, "limit": 2}));
    assert_eq!(world.context.memory.files[&path].cells, Some([24, 26]));
    assert!(world.failed::<NotebookEdit>(edit("c11", "replace")).contains("was not seen"));
    world.ok::<Read>(json!({"file_path": path, "limit": 10}));
    world.ok::<Read>(json!({"file_path": path, "offset": 11, "limit": 10}));
    world.ok::<Read>(json!({"file_path": path, "offset": 21, "limit": 10}));
    let seen = world.context.memory.files[&path];
    assert_eq!((seen.partial, seen.cells), (false, None));

    let none = world.ok::<Read>(json!({"file_path": path, "offset": 31}));
    assert_eq!(none.text, "The notebook has 30 cells; there is none at offset 31.");
}

// REQ: TOL-7
#[test]
fn long_outputs_and_cells_are_cut_and_a_cell_that_was_cut_was_not_seen() {
    let mut world = World::new();
    let sources = ["short".to_owned(), "y".repeat(200_000), "last".to_owned()];
    let path = world.file("a.ipynb", notebook(&sources, &"z".repeat(50_000)));
    let first = world.ok::<Read>(json!({"file_path": path}));
    assert!(first.text.contains("… [more is not shown]") && first.text.len() < 6_000);
    assert!(first.text.ends_with("Continue with offset=2.]\n"), "{}", first.text);
    let second = world.ok::<Read>(json!({"file_path": path, "offset": 2}));
    assert!(second.text.contains("[Cut: the cell is too long") && second.text.len() < 101_000);
    assert!(second.text.ends_with("Continue with offset=3.]\n"));
    assert!(structured(&second).to_string().len() < 101_000, "programs get no more of it");
    let edit = |cell: &str| json!({"notebook_path": path, "cell_id": cell, "new_source": "1"});
    assert!(world.failed::<NotebookEdit>(edit("c1")).contains("was not seen"));
    world.ok::<Read>(json!({"file_path": path, "offset": 3}));
    world.ok::<NotebookEdit>(edit("c2"));
}
