//! What becomes of the text of a notebook.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

/// A notebook as nbformat writes it.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "load",
   "metadata": {"x-unknown": [1.50, 1e400]},
   "outputs": [
    {"name": "stdout", "output_type": "stream", "text": ["1\n"]}
   ],
   "source": [
    "a = 1"
   ],
   "x-own": {"b": 1, "a": "é"}
  }
 ],
 "metadata": {"language_info": {"name": "julia"}, "zz": 1, "aa": 2},
 "nbformat": 4,
 "nbformat_minor": 5,
 "x-more": 1
}
"##;

fn replace<'a>(cell: &'a str, source: &'a str, to: Option<CellType>) -> CellChange<'a> {
    CellChange::Replace { cell, source, to }
}

#[track_caller]
fn changed(text: &str, change: CellChange<'_>) -> ChangedNotebook {
    let changed = change_cell(text, change).unwrap();
    serde_json::from_str::<&RawValue>(&changed.text).unwrap();
    changed
}

// REQ: TOL-6, TOL-7
#[test]
fn replaced_cell_loses_its_outputs_and_the_rest_stays_byte_by_byte() {
    let after = changed(NOTEBOOK, replace("load", "b = 2\nc = \"ü\"\n", None));
    let expected = NOTEBOOK
        .replace("\"execution_count\": 7", "\"execution_count\": null")
        .replace(
            "[\n    {\"name\": \"stdout\", \"output_type\": \"stream\", \"text\": [\"1\\n\"]}\n   ]",
            "[]",
        )
        .replace(r#""a = 1""#, "\"b = 2\\n\",\n    \"c = \\\"ü\\\"\\n\"");
    assert_eq!(after.text, expected);
    let told = (&*after.cell_id, &*after.cell_type, &*after.language, after.old_source.as_deref());
    assert_eq!(told, ("load", "code", "julia", Some("a = 1")));
    let after = changed(NOTEBOOK, replace("intro", "# Title\nnew", None));
    assert_eq!(after.text, NOTEBOOK.replace("\"text\"\n", "\"new\"\n"));
    assert_eq!((&*after.cell_id, &*after.old_source.unwrap()), ("intro", "# Title\ntext"));
}

// REQ: TOL-6
#[test]
fn cell_of_another_type_has_the_members_of_that_type() {
    let after = changed(NOTEBOOK, replace("load", "b", Some(CellType::Markdown))).text;
    let cell = &serde_json::from_str::<Value>(&after.replace("1e400", "1")).unwrap()["cells"][1];
    let names: Vec<_> = cell.as_object().unwrap().keys().collect();
    assert_eq!(names, ["cell_type", "id", "metadata", "source", "x-own"]);
    let after = changed(NOTEBOOK, replace("intro", "b", Some(CellType::Code))).text;
    let cell = &serde_json::from_str::<Value>(&after.replace("1e400", "1")).unwrap()["cells"][0];
    assert_eq!((&cell["outputs"], &cell["execution_count"]), (&json!([]), &Value::Null));
}

// REQ: TOL-6, TOL-7
#[test]
fn inserted_and_deleted_cells_leave_the_others_as_they_are() {
    for after in [None, Some("intro"), Some("load")] {
        let change = CellChange::Insert { after, source: "new\n", of: CellType::Code };
        let inserted = changed(NOTEBOOK, change);
        let id = &inserted.cell_id;
        let expected = format!(
            "{{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \
             \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"new\\n\"\n   ]\n  }}"
        );
        assert!(inserted.text.contains(&expected), "{}", inserted.text);
        assert_eq!((id.len(), &*inserted.cell_type), (8, "code"));
        assert_eq!(changed(&inserted.text, CellChange::Delete { cell: id }).text, NOTEBOOK);
    }
    let one = changed(NOTEBOOK, CellChange::Delete { cell: "intro" });
    assert_eq!((&*one.cell_type, one.old_source.as_deref()), ("markdown", Some("# Title\ntext")));
    let none = changed(&one.text, CellChange::Delete { cell: "load" }).text;
    assert!(none.starts_with("{\n \"cells\": [],\n"), "{none}");
    let change = CellChange::Insert { after: None, source: "x", of: CellType::Markdown };
    let first = changed(&none, change).text;
    assert!(
        first.starts_with("{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n"),
        "{first}"
    );
}

// REQ: TOL-7
#[test]
fn layout_and_the_form_of_sources_are_those_of_the_notebook() {
    let crlf = NOTEBOOK.replace('\n', "\r\n");
    let after = changed(&crlf, replace("intro", "# Title\r\ntext", None)).text;
    assert_eq!(after, crlf);
    let compact = r#"{"nbformat":4,"nbformat_minor":4,"cells":[{"source":"a","cell_type":"code","metadata":{},"outputs":[1],"execution_count":3}]}"#;
    let after = changed(compact, replace("cell-0", "x\ny", None));
    let expected =
        compact.replace("[1]", "[]").replace(":3}", ":null}").replace("\"a\"", r#""x\ny""#);
    assert_eq!((after.text, &*after.cell_id, &*after.language), (expected, "cell-0", "python"));
    let change = CellChange::Insert { after: Some("cell-0"), source: "z", of: CellType::Markdown };
    let after = changed(compact, change);
    let cell = r#",{"cell_type":"markdown","metadata":{},"source":"z"}]}"#;
    assert!(after.text.ends_with(cell), "{}", after.text);
    assert_eq!(after.cell_id, "cell-1");
    let spaced =
        r#"{"nbformat": 4, "cells": [{"cell_type": "raw", "source": "a", "metadata": {}}]}"#;
    let after = changed(spaced, replace("cell-0", "b", None));
    assert_eq!((after.text, &*after.cell_type), (spaced.replace("\"a\"", "\"b\""), "raw"));
}

// REQ: TOL-7
#[test]
fn what_is_no_notebook_or_means_two_things_is_refused() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let with = |x: &str| format!(r#"{{"nbformat":4,"cells":[{{"source":"a","x":{x}}}]}}"#);
    changed(&with(&nested(MAX_DEPTH - 3)), replace("cell-0", "b", None));
    let twice = r#"{"nbformat":4,"cells":[{"id":"a"},{"id":"a"}]}"#;
    for (text, cell, why) in [
        (with(&nested(MAX_DEPTH - 2)), "cell-0", "nested more than 128"),
        (nested(1 << 20), "cell-0", "nested more than 128"),
        ("{\"nbformat\":4,\"cells\":[".into(), "cell-0", "not a notebook"),
        ("[]".into(), "cell-0", "not a notebook"),
        (r#"{"nbformat":4,"cells":{}}"#.into(), "cell-0", "not a notebook"),
        (r#"{"nbformat":4,"cells":[7]}"#.into(), "cell-0", "not a notebook"),
        (r#"{"nbformat":4,"cells":[],"cells":[{}]}"#.into(), "cell-0", "same name twice"),
        (r#"{"nbformat":4,"cells":[{"source":"a","source":"b"}]}"#.into(), "cell-0", "same name"),
        (r#"{"nbformat":3,"worksheets":[]}"#.into(), "cell-0", "nbformat 4"),
        (r#"{"nbformat":3,"cells":[]}"#.into(), "cell-0", "nbformat 4"),
        (NOTEBOOK.into(), "cell-0", "no cell \"cell-0\" in the notebook"),
        (twice.into(), "a", "2 cells have the id"),
        (twice.into(), "cell-2", "no cell \"cell-2\" in the notebook, which has 2 cells"),
        (twice.into(), "", "no cell \"\""),
    ] {
        let error = change_cell(&text, replace(cell, "b", None)).unwrap_err().to_string();
        assert!(error.contains(why), "{error} and not {why}");
    }
    // Braces within texts are none.
    changed(&with(&format!("\"\\\"{}\"", "[".repeat(500))), replace("cell-0", "b", None));
    // Of an indentation without end little is kept up.
    let wide = NOTEBOOK.replacen("\n ", &format!("\n{}", " ".repeat(1 << 20)), 1);
    let change =
        CellChange::Insert { after: None, source: &"x\n".repeat(1000), of: CellType::Code };
    assert!(changed(&wide, change).text.len() < wide.len() + (1 << 17));
}
