//! Questions to the program that drives the command.
//!
//! A question is a `control_request` of ours; the program answers with a `control_response` of the same
//! name, in any order. Dropping the future of a question withdraws it. Once the program has closed its end
//! no answer can come, and every question fails at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::pipe::Output;
use ennead_tools::locked::Locked as _;

/// The program, as one that can be asked. Clones ask the same one.
#[derive(Clone, Debug)]
pub struct Host(Arc<HostShared>);

#[derive(Debug)]
struct HostShared {
    output: Output,
    state: Mutex<HostState>,
}

#[derive(Debug, Default)]
struct HostState {
    n_questions: u64,
    open: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    is_closed: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The program has closed its end.
    #[error("the program that drives this session has closed its end")]
    Closed,
    /// The program could not answer.
    #[error("{0}")]
    Failed(String),
}

impl Host {
    /// Asks through this output.
    pub fn new(output: Output) -> Self {
        Self(Arc::new(HostShared { output, state: Mutex::default() }))
    }

    /// Asks the program, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`].
    pub async fn ask(&self, request: Value) -> Result<Value, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        let id = {
            let mut state = self.state();
            if state.is_closed {
                return Err(NoAnswer::Closed);
            }
            state.n_questions += 1;
            let id = format!("ennead_{}", state.n_questions);
            state.open.insert(id.clone(), reply);
            id
        };
        // From here on, leaving withdraws it.
        let question = Question { host: self, id };
        self.0.output.write(
            json!({"type": "control_request", "request_id": question.id, "request": request}),
        );
        match answer.await {
            Ok(answer) => answer.map_err(NoAnswer::Failed),
            Err(_) => Err(NoAnswer::Closed),
        }
    }

    /// Takes an answer. One to a question that is not open is of no interest.
    pub fn answered(&self, id: &str, result: Result<Value, String>) {
        if let Some(reply) = self.state().open.remove(id) {
            let _withdrawn = reply.send(result);
        }
    }

    /// Closes the host: the program will answer no more.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.open.clear();
    }

    /// Returns whether a question waits for its answer.
    pub fn is_asking(&self) -> bool {
        !self.state().open.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, HostState> {
        // Every change is one step.
        self.0.state.locked()
    }
}

struct Question<'a> {
    host: &'a Host,
    id: String,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.host.state().open.remove(&self.id).is_some() {
            let withdrawn = json!({"type": "control_cancel_request", "request_id": self.id});
            self.host.0.output.write(withdrawn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::pipe::{SharedBytes, written},
        *,
    };

    // REQ: SUR-3
    #[tokio::test]
    async fn answers_come_in_any_order_and_a_question_left_is_withdrawn() {
        let place = SharedBytes::default();
        let (output, end) = Output::start(place.clone());
        let host = Host::new(output);
        let first = host.ask(json!({"subtype": "a"}));
        let second = host.ask(json!({"subtype": "b"}));
        let answers = async {
            host.answered("ennead_2", Err("no".into()));
            host.answered("ennead_9", Ok(json!(1)));
            host.answered("ennead_1", Ok(json!({"n": 1})));
        };
        let (first, second, ()) = tokio::join!(first, second, answers);
        assert_eq!((first, second), (Ok(json!({"n": 1})), Err(NoAnswer::Failed("no".into()))));
        let mut left = Box::pin(host.ask(json!({"subtype": "c"})));
        assert!(futures::poll!(&mut left).is_pending());
        assert!(host.is_asking());
        drop(left);
        assert!(!host.is_asking());
        drop(host);
        end.await.unwrap().unwrap();
        let lines = written(&place.0.lock().unwrap());
        let last = lines.last().unwrap();
        assert_eq!(*last, json!({"type": "control_cancel_request", "request_id": "ennead_3"}));
    }

    // REQ: SUR-3
    #[tokio::test]
    async fn nobody_answers_after_the_end() {
        let (output, _end) = Output::start(SharedBytes::default());
        let host = Host::new(output);
        let mut open = Box::pin(host.ask(json!({"subtype": "a"})));
        assert!(futures::poll!(&mut open).is_pending());
        host.close();
        assert_eq!(open.await, Err(NoAnswer::Closed));
        assert_eq!(host.ask(json!({"subtype": "b"})).await, Err(NoAnswer::Closed));
    }
}
