//! Which of a server's tools run only as tasks.
//!
//! A server says so in the list of its tools (`execution.taskSupport`), in a field that the library
//! does not keep. So the lines of the server are read on their way to the library, as long as its
//! tools are being listed.

use std::{
    collections::BTreeSet,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use serde::Deserialize;
use tokio::io::{AsyncRead, ReadBuf};

/// The key that a line must have to be looked at.
const KEY: &[u8] = b"\"taskSupport\"";

/// Bytes of a line that are kept; of a longer one all tools count as tasks.
const MAX_LINE: usize = 16 << 20;

/// The tools that were found so far. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskTools(Arc<Mutex<Option<Found>>>);

#[derive(Debug, Default)]
struct Found {
    line: Vec<u8>,
    is_too_long: bool,
    names: BTreeSet<String>,
    all: bool,
}

impl TaskTools {
    /// Nothing found, and looking.
    pub(super) fn looking() -> Self {
        Self(Arc::new(Mutex::new(Some(Found::default()))))
    }

    /// Ends the looking; returns a function that says whether a tool of this name needs a task.
    pub(super) fn take(&self) -> impl Fn(&str) -> bool + use<> {
        let found = self.lock().take().unwrap_or_default();
        move |name| found.all || found.names.contains(name)
    }

    fn read(&self, mut bytes: &[u8]) {
        let mut found = self.lock();
        let Some(found) = &mut *found else { return };
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            found.push(&bytes[..end]);
            found.end_of_line();
            bytes = &bytes[end + 1..];
        }
        found.push(bytes);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Found>> {
        // Every change is whole before the next call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    fn push(&mut self, bytes: &[u8]) {
        if MAX_LINE < self.line.len() + bytes.len() {
            self.is_too_long = true;
            self.line.clear();
        }
        if !self.is_too_long {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_of_line(&mut self) {
        self.all |= std::mem::take(&mut self.is_too_long);
        if memchr::memmem::find(&self.line, KEY).is_some() {
            // What is no list of tools is for the library to complain about.
            let tools = serde_json::from_slice::<Answer>(&self.line).map(|it| it.result.tools);
            let needs = |it: &Tool| {
                it.execution.as_ref().and_then(|it| it.task_support.as_deref()) == Some("required")
            };
            let named = tools.unwrap_or_default().into_iter().filter(needs);
            self.names.extend(named.map(|it| it.name));
        }
        self.line.clear();
    }
}

#[derive(Deserialize)]
struct Answer {
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

/// Passes on what it reads, and shows it to [`TaskTools`].
pub(super) struct Tap<R> {
    pub(super) inner: R,
    pub(super) tasks: TaskTools,
}

impl<R: AsyncRead + Unpin> AsyncRead for Tap<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.tasks.read(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-11
    #[test]
    fn tools_that_need_a_task_are_found_however_the_lines_are_cut() {
        let list = |id: u8, tools: &str| format!(r#"{{"id":{id},"result":{{"tools":[{tools}]}}}}"#);
        let first = list(1, r#"{"name":"a","execution":{"taskSupport":"required"}},{"name":"b"}"#);
        let second = list(
            2,
            r#"{"execution":{"taskSupport":"optional"},"name":"c"},{"execution":{"taskSupport":"required"},"name":"d"},{"name":"e","execution":{}}"#,
        );
        let text = format!("{first}\n{{\"taskSupport\"\n{second}\nno end");
        for size in [1, 7, 64, text.len()] {
            let tasks = TaskTools::looking();
            text.as_bytes().chunks(size).for_each(|it| tasks.read(it));
            let needs = tasks.take();
            let found: Vec<&str> =
                ["a", "b", "c", "d", "e"].into_iter().filter(|it| needs(it)).collect();
            assert_eq!(found, ["a", "d"], "{size}");
            tasks.read(first.as_bytes());
            assert!(!tasks.take()("a"), "nothing is looked at any more");
        }
    }

    #[test]
    fn line_that_is_too_long_to_be_looked_at_makes_every_tool_one_that_needs_a_task() {
        let tasks = TaskTools::looking();
        tasks.read(&vec![b'x'; MAX_LINE + 1]);
        tasks.read(b"\n{}\n");
        assert!(tasks.take()("any"));
    }
}
