//! Which of a server's tools run only as tasks.
//!
//! A server says so in the list of its tools (`execution.taskSupport`), in a field that the library
//! does not keep. So the lines of the server are read on their way to the library, as long as its
//! tools are being listed.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use serde::Deserialize;

use crate::locked::Locked as _;

/// The key that a line must have to be looked at.
const KEY: &[u8] = b"\"taskSupport\"";

/// The tools that were found so far. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskTools(Arc<Mutex<Option<BTreeSet<String>>>>);

impl TaskTools {
    /// Starts looking: nothing is found yet.
    pub(super) fn looking() -> Self {
        Self(Arc::new(Mutex::new(Some(BTreeSet::new()))))
    }

    /// Ends the looking; returns a function that says whether a tool of this name needs a task.
    pub(super) fn take(&self) -> impl Fn(&str) -> bool + use<> {
        let names = self.lock().take().unwrap_or_default();
        move |name| names.contains(name)
    }

    /// Looks at one line of the server.
    pub(super) fn read(&self, line: &[u8]) {
        let mut names = self.lock();
        let Some(names) = &mut *names else { return };
        if memchr::memmem::find(line, KEY).is_some() {
            // What is not a list of tools is for the library to complain about.
            let tools = serde_json::from_slice::<ToolsAnswer>(line).map(|it| it.result.tools);
            let needs = |it: &Tool| {
                it.execution.as_ref().and_then(|it| it.task_support.as_deref()) == Some("required")
            };
            let named = tools.unwrap_or_default().into_iter().filter(needs);
            names.extend(named.map(|it| it.name));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        // Every change is whole before the next call.
        self.0.locked()
    }
}

#[derive(Deserialize)]
struct ToolsAnswer {
    result: Tools,
}

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    execution: Option<Execution>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    task_support: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-11
    #[test]
    fn tools_that_need_a_task_are_found_as_long_as_they_are_looked_for() {
        let list = |id: u8, tools: &str| format!(r#"{{"id":{id},"result":{{"tools":[{tools}]}}}}"#);
        let first = list(1, r#"{"name":"a","execution":{"taskSupport":"required"}},{"name":"b"}"#);
        let second = list(
            2,
            r#"{"execution":{"taskSupport":"optional"},"name":"c"},{"execution":{"taskSupport":"required"},"name":"d"},{"name":"e","execution":{}}"#,
        );
        let tasks = TaskTools::looking();
        for line in [&first, "{\"taskSupport\"", &second, "no end"] {
            tasks.read(line.as_bytes());
        }
        let needs = tasks.take();
        let found: Vec<&str> =
            ["a", "b", "c", "d", "e"].into_iter().filter(|it| needs(it)).collect();
        assert_eq!(found, ["a", "d"]);
        tasks.read(first.as_bytes());
        assert!(!tasks.take()("a"), "nothing is looked at any more");
    }
}
