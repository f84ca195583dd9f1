//! The tools that come with ennead.
//!
//! Their order is fixed: the model is offered them in it, and with another one the prefix of every
//! request would change.

use std::sync::{Arc, LazyLock};

use ennead_runtime::ports::Tool;

#[cfg(feature = "web")]
use crate::web_fetch::WebFetch;
use crate::{
    agent::Agent,
    bash::{Bash, BashOutput, KillShell},
    built_in::Declared,
    edit::Edit,
    multi_edit::MultiEdit,
    notebook_edit::NotebookEdit,
    plan::{EnterPlanMode, ExitPlanMode},
    question::AskUserQuestion,
    read::Read,
    send_message::SendMessage,
    tasks::{TaskOutput, TaskStop},
    todo::TodoWrite,
    write::Write,
};
#[cfg(feature = "search")]
use crate::{glob::Glob, grep::Grep};

/// Returns the tools that a session has: Read, Write, Edit, NotebookEdit, Glob, Grep, Bash, BashOutput, KillShell, TaskOutput,
/// TaskStop, WebFetch, TodoWrite, Agent, SendMessage, EnterPlanMode, ExitPlanMode, AskUserQuestion, in this order. Glob and Grep need
/// the feature `search`, and WebFetch the feature `web`.
///
/// Tools hold no state, so all sessions of a process share them: their schemas are compiled once.
pub fn builtin_tools() -> Vec<Arc<dyn Tool>> {
    static TOOLS: LazyLock<Vec<Arc<dyn Tool>>> = LazyLock::new(compiled);
    TOOLS.clone()
}

/// Returns the tools that a session has only if they are asked for by name: MultiEdit, which programs knew before Edit did
/// all of its work.
pub fn optional_tools() -> Vec<Arc<dyn Tool>> {
    static TOOLS: LazyLock<Vec<Arc<dyn Tool>>> =
        LazyLock::new(|| vec![Arc::new(Declared::<MultiEdit>::new())]);
    TOOLS.clone()
}

fn compiled() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Declared::<Read>::new()),
        Arc::new(Declared::<Write>::new()),
        Arc::new(Declared::<Edit>::new()),
        Arc::new(Declared::<NotebookEdit>::new()),
        #[cfg(feature = "search")]
        Arc::new(Declared::<Glob>::new()),
        #[cfg(feature = "search")]
        Arc::new(Declared::<Grep>::new()),
        Arc::new(Declared::<Bash>::new()),
        Arc::new(Declared::<BashOutput>::new()),
        Arc::new(Declared::<KillShell>::new()),
        Arc::new(Declared::<TaskOutput>::new()),
        Arc::new(Declared::<TaskStop>::new()),
        #[cfg(feature = "web")]
        Arc::new(Declared::<WebFetch>::new()),
        Arc::new(Declared::<TodoWrite>::new()),
        Arc::new(Declared::<Agent>::new()),
        Arc::new(Declared::<SendMessage>::new()),
        Arc::new(Declared::<EnterPlanMode>::new()),
        Arc::new(Declared::<ExitPlanMode>::new()),
        Arc::new(Declared::<AskUserQuestion>::new()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Arc<dyn Tool> {
        builtin_tools().into_iter().find(|tool| tool.spec().name.as_str() == name).unwrap()
    }

    // REQ: TOL-1
    #[test]
    fn specs_are_the_same_each_time_and_their_schemas_are_closed_objects() {
        let (first, second) = (builtin_tools(), builtin_tools());
        let names: Vec<_> = first.iter().map(|tool| tool.spec().name.as_str()).collect();
        let order = [
            "Read",
            "Write",
            "Edit",
            "NotebookEdit",
            "Glob",
            "Grep",
            "Bash",
            "BashOutput",
            "KillShell",
            "TaskOutput",
            "TaskStop",
            "WebFetch",
            "TodoWrite",
            "Agent",
            "SendMessage",
            "EnterPlanMode",
            "ExitPlanMode",
            "AskUserQuestion",
        ];
        assert_eq!(names, order);
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(a.spec(), b.spec());
            let schema: serde_json::Value = serde_json::from_str(&a.spec().input_schema).unwrap();
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false);
            assert!(schema["properties"].is_object());
            assert!(schema.get("$schema").is_none());
        }
    }

    // REQ: TOL-1
    #[test]
    fn inputs_that_fit_pass_and_others_are_told_what_is_wrong() {
        let cases = [
            ("Read", r#"{"file_path":"/a"}"#, ""),
            ("Read", r#"{"file_path":"/a","offset":3,"limit":4}"#, ""),
            ("Read", r#"{}"#, "file_path"),
            ("Read", r#"{"file_path":7}"#, "file_path"),
            ("Read", r#"{"file_path":"/a","offset":0}"#, "offset"),
            ("Read", r#"{"file_path":"/a","x":1}"#, "'x'"),
            ("Read", r#"{"file_path""#, "not JSON"),
            ("Read", r#"{"file_path":"/a","offset":1.0}"#, "cannot be read"),
            ("Read", r#"{"file_path":"/a","limit":1,"limit":2}"#, "duplicate field"),
            ("Edit", r#"{"file_path":"/a","old_string":"a","new_string":"b"}"#, ""),
            ("NotebookEdit", r#"{"notebook_path":"/a.ipynb","new_source":"x","cell_id":"a"}"#, ""),
            ("NotebookEdit", r#"{"notebook_path":"/a.ipynb","cell_id":"a"}"#, "new_source"),
            (
                "NotebookEdit",
                r#"{"notebook_path":"/a","new_source":"","edit_mode":"x"}"#,
                "edit_mode",
            ),
            (
                "NotebookEdit",
                r#"{"notebook_path":"/a","new_source":"","cell_type":"raw"}"#,
                "cell_type",
            ),
            ("Grep", r#"{"pattern":"a","-i":true,"-A":1,"output_mode":"count"}"#, ""),
            ("Grep", r#"{"pattern":"a","output_mode":"files"}"#, "output_mode"),
            ("Bash", r#"{"command":"ls","timeout":1000,"description":"d"}"#, ""),
            ("Bash", r#"{"command":"ls","timeout":-1}"#, "timeout"),
            ("Bash", r#"{"command":"ls","run_in_background":true}"#, ""),
            ("BashOutput", r#"{"bash_id":"bash_1","filter":"^a"}"#, ""),
            ("BashOutput", r#"{"task_id":"bash_1"}"#, "bash_id"),
            ("KillShell", r#"{"shell_id":"bash_1"}"#, ""),
            ("KillShell", r#"{}"#, "shell_id"),
            ("TaskOutput", r#"{"task_id":"a","block":false,"timeout":600000}"#, ""),
            ("TaskOutput", r#"{"task_id":"a","timeout":600001}"#, "timeout"),
            ("TaskOutput", r#"{"block":true}"#, "task_id"),
            ("TaskStop", r#"{"task_id":"a"}"#, ""),
            ("TaskStop", r#"{"shell_id":"bash_1"}"#, ""),
            ("TaskStop", r#"{"task":"a"}"#, "'task'"),
            ("WebFetch", r#"{"url":"https://example.com","prompt":"p"}"#, ""),
            ("WebFetch", r#"{"url":"https://example.com"}"#, "prompt"),
            ("TodoWrite", r#"{"todos":[{"content":"a","status":"pending","activeForm":"b"}]}"#, ""),
            ("TodoWrite", r#"{"todos":[{"content":"a","status":"pending"}]}"#, "activeForm"),
            ("Agent", r#"{"description":"d","prompt":"p"}"#, ""),
            ("SendMessage", r#"{"to":"a","message":"m"}"#, ""),
            ("SendMessage", r#"{"to":"a"}"#, "message"),
            ("EnterPlanMode", "{}", ""),
            ("ExitPlanMode", "{}", ""),
            ("ExitPlanMode", r#"{"plan":"p","planFilePath":"/f","allowedPrompts":[]}"#, ""),
            ("ExitPlanMode", r#"{"plan":1}"#, "plan"),
        ];
        for (tool, input, complaint) in cases {
            match find(tool).check_input(input) {
                Ok(()) => assert_eq!(complaint, "", "{tool} {input}"),
                Err(why) => {
                    assert!(!complaint.is_empty(), "{tool} {input}: {why}");
                    assert!(why.contains(tool) && why.contains(complaint), "{why}");
                }
            }
        }
    }
}
