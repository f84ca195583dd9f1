//! NotebookEdit through whole sessions, with real notebooks.

use ennead::{SessionOptions, permission::PermissionMode};
use serde_json::{Value, json};

use crate::support::{
    scripted::{TestDirs, call, model, text},
    settings::SettingsJson as _,
};

const NOTEBOOK: &str = r#"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "id": "a",
   "metadata": {},
   "outputs": [],
   "source": [
    "x = 1"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

/// Has the cell of a notebook replaced that was read; what the model reads of it, and the notebook then.
async fn edited(place: &TestDirs, options: SessionOptions, path: &str) -> (String, String) {
    let file = place.write(path, NOTEBOOK);
    let script = model(move |asked| match asked.n_answers() {
        0 => call("r", "Read", json!({ "file_path": file })),
        1 => {
            let input = json!({"notebook_path": file, "new_source": "x = 2", "cell_id": "a"});
            call("n", "NotebookEdit", input)
        }
        _ => text("done"),
    });
    let _outcome = place.run(&script, options).await;
    (script.last().result("n"), place.read(path))
}

// REQ: TOL-6, PRM-2, PRM-4
#[tokio::test]
async fn notebook_is_changed_where_an_edit_would_be() {
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
    let (inside, protected) = ("workspace/a.ipynb", "workspace/.git/a.ipynb");
    for (mode, rule, path, why) in [
        (Default, "", inside, Some("no rule allows it")),
        (Default, "Edit(*.ipynb)", inside, None),
        (Default, "Edit", inside, None),
        (Default, "NotebookEdit", inside, None),
        (Default, "NotebookEdit(*.ipynb)", inside, Some("no rule allows it")),
        (DontAsk, "", inside, Some("")),
        (AcceptEdits, "", inside, None),
        (AcceptEdits, "", protected, Some("")),
        (BypassPermissions, "", protected, Some("")),
        (Plan, "Edit", inside, Some("")),
        (BypassPermissions, "!Edit(*.ipynb)", inside, Some("Edit(*.ipynb)")),
        (BypassPermissions, "!Edit", inside, Some("Edit")),
    ] {
        let place = TestDirs::new();
        let options = place.session().mode(mode);
        let options = match (rule.strip_prefix('!'), rule) {
            (Some(rule), _) => options.deny(rule).unwrap(),
            (None, "") => options,
            (None, rule) => options.allow(rule).unwrap(),
        };
        let (shown, after) = edited(&place, options, path).await;
        let is_changed = after.contains("\"x = 2\"") && !after.contains("x = 1");
        assert_eq!(is_changed, why.is_none(), "{mode:?} {rule} {path}: {shown}");
        match why {
            None => assert!(shown.starts_with("The cell a of "), "{shown}"),
            Some(why) => {
                let is_denied = shown.starts_with("Permission denied: ") && shown.contains(why);
                assert!(is_denied, "{mode:?} {rule} {path}: {shown}");
                assert_eq!(after, NOTEBOOK);
            }
        }
    }
}

// REQ: TOL-6, HKS-2
#[tokio::test]
async fn hooks_receive_the_published_form_of_the_result() {
    let [unmatched, place] = [TestDirs::new(), TestDirs::new()];
    for (place, matcher) in [(&unmatched, "Edit|Write"), (&place, "Edit.*")] {
        let saved = place.path("saved");
        let command = json!({"type": "command", "command": format!("cat > {}", saved.display())});
        let hooks = json!({"PostToolUse": [{"matcher": matcher, "hooks": [command]}]});
        let options = place.session().mode(PermissionMode::AcceptEdits).setting("hooks", hooks);
        edited(place, options, "workspace/b.ipynb").await;
    }
    assert!(!unmatched.has("saved"));
    let input: Value = serde_json::from_str(&place.read("saved")).unwrap();
    let mut result = input["tool_response"].clone();
    for (file, source) in [("original_file", "x = 1"), ("updated_file", "x = 2")] {
        let text = result.as_object_mut().unwrap().remove(file).unwrap();
        assert!(text.as_str().unwrap().contains(source), "{text}");
    }
    let expected = json!({"new_source": "x = 2", "old_source": "x = 1", "cell_id": "a",
        "cell_type": "code", "language": "python", "edit_mode": "replace",
        "notebook_path": place.text("workspace/b.ipynb")});
    assert_eq!(result, expected);
}
