//! The model of the tests: a script of replies as data, which keeps what it was asked.
//!
//! In process it is a [`Transport`], whose replies go through the same stream reader as those of a
//! real server; on a socket, for tests that are about HTTP, the same script is served by
//! [`model_server`](super::model_server).

mod asked;
mod dirs;
mod message_stream;
mod reply;

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead::{
    data::{TransportError, WireRequest, WireResponse},
    model::Transport,
    tool::BoxFuture,
};

pub(super) use self::reply::{Body, End};
pub(crate) use self::{
    asked::Asked,
    dirs::{NOW, SESSION, TestDirs, alerts, apart, finish, lines, until_end},
    reply::{Reply, call, calls, refusal, silence, text},
};
use super::barrier::Barrier;

/// What a sub-agent said, of a result that may end with the id by which it goes on.
pub(crate) fn said(result: &str) -> &str {
    result.split_once("\n\n[The id of the agent is ").map_or(result, |it| it.0)
}

/// A request that holds this word waits at [`Scripted::hold`] before it is answered.
const HELD: &str = "held";

/// A model that does what its script says: in process as a [`Transport`], and on a socket as a
/// [`ModelServer`](super::model_server::ModelServer).
pub(crate) struct Scripted {
    script: Box<dyn Fn(&Asked) -> Reply + Send + Sync>,
    hold: Barrier,
    n_asked: AtomicUsize,
    /// `None` where nothing is kept: of a model that is asked thousands of times.
    asked: Option<Mutex<Vec<Asked>>>,
}

/// A model that answers by this function.
pub(crate) fn model(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Arc<Scripted> {
    Arc::new(Scripted { asked: Some(Mutex::default()), ..Scripted::forgetful(script) })
}

/// A model that gives these replies in the order of the requests, the last one over and over.
pub(crate) fn replies(replies: Vec<Reply>) -> Arc<Scripted> {
    model(move |asked| replies[(asked.number - 1).min(replies.len() - 1)].clone())
}

/// A model that says these in order of the answers in the conversation, then `done`.
pub(crate) fn says(answers: Vec<Reply>) -> Arc<Scripted> {
    model(move |asked| answers.get(asked.n_answers()).cloned().unwrap_or_else(|| text("done")))
}

impl Scripted {
    /// One that keeps nothing of what it is asked.
    pub(crate) fn forgetful(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let (hold, n_asked) = (Barrier::default(), AtomicUsize::new(0));
        Self { script: Box::new(script), hold, n_asked, asked: None }
    }

    /// Where requests with the word `held` wait. Open at first.
    pub(crate) fn hold(&self) -> &Barrier {
        &self.hold
    }

    /// What it says to this.
    pub(crate) fn say(&self, asked: &Asked) -> Reply {
        (self.script)(asked)
    }

    /// Takes a request down, and says what becomes of it.
    pub(super) fn receive(&self, text: String, head: String) -> (Asked, Reply) {
        let asked = Asked::new(text, head, self.n_asked.fetch_add(1, Ordering::SeqCst) + 1);
        let mut reply = self.say(&asked);
        if asked.text.contains(HELD) && asked.user().contains(HELD) {
            reply = reply.held_at(&self.hold);
        }
        if let Some(all) = &self.asked {
            all.lock().unwrap().push(asked.clone());
        }
        (asked, reply)
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.as_ref().expect("it keeps what it is asked").lock().unwrap().clone()
    }

    /// The models that were asked for, in turn.
    pub(crate) fn models(&self) -> Vec<String> {
        self.asked().iter().map(|it| it.model().to_owned()).collect()
    }

    /// What it was asked last.
    pub(crate) fn last(&self) -> Asked {
        self.asked().pop().expect("it was asked")
    }

    /// What sub-agents asked.
    pub(crate) fn asked_by_agents(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(Asked::is_agent).collect()
    }

    /// What the top session asked last.
    pub(crate) fn last_of_top(&self) -> Asked {
        self.asked().into_iter().rfind(|it| !it.is_agent()).expect("it was asked")
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl Transport for Scripted {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let text = String::from_utf8(request.body.to_bytes().to_vec()).unwrap();
        let headers = request.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!("POST {}\r\n{}", request.url, headers.collect::<String>());
        let (asked, reply) = self.receive(text, head);
        Box::pin(async move { reply.respond(&asked).await })
    }
}
