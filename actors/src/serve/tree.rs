//! `/v1/tree`: the actors that live, and their comings and goings.

use std::collections::VecDeque;

use axum::{
    Extension, Json,
    body::{Body, Bytes},
    extract::State,
    http::Response,
};
use ennead_runtime::{ids::SessionId, time::Timestamp};
use futures::stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{
    Role, Server,
    access::Caller,
    problem::{Code, Problem, ProblemBody},
    shares::TakenShare,
    stream::sse,
};
use crate::groundwork::directory::{ActorKind, Live, TreeChange, TreeWatch};

/// Changes that are written at once at most.
const BATCH: usize = 256;

/// An actor that lives.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ActorView {
    /// Names the actor in this process.
    id: String,
    /// The actor that supervises it.
    parent: Option<String>,
    /// Its kind, as in the supervision tree.
    #[schema(value_type = String)]
    kind: ActorKind,
    /// The session it works for; of a sub-agent, `<session>/agent-<agent>`.
    #[schema(value_type = Option<String>)]
    session: Option<SessionId>,
    /// The step a turn supervisor is at.
    step: Option<&'static str>,
    /// The work in its bounded mailbox; `null` for actors without one.
    mailbox: Option<MailboxView>,
    /// What it waits for: `prompt`, `model`, `provider`, `tool`, `answer`, `hook`, `disk`, or `null`.
    waiting_for: Option<&'static str>,
    /// Since when it lives, in milliseconds since 1970.
    #[schema(value_type = u64)]
    since: Timestamp,
    /// Since when it is at its step, in milliseconds since 1970.
    #[schema(value_type = Option<u64>)]
    step_since: Option<Timestamp>,
}

/// The work in a mailbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MailboxView {
    /// Pieces of work that are queued or being done.
    depth: usize,
    /// How many there may be.
    capacity: usize,
}

/// The living actors, in an order in which parents come before their children.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tree {
    /// Parents before their children. Those that work for no session are shown to admins alone.
    actors: Vec<ActorView>,
}

/// Shows the actors of the tenant's sessions; an admin sees all.
#[utoipa::path(get, path = "/v1/tree", operation_id = "show_tree", tag = "tree", security(("bearer" = [])),
    responses(
        (status = 200, description = "The tree", body = Tree),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn show(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Json<Tree> {
    Json(Tree { actors: server.actors(&caller) })
}

/// Streams the tree: first `tree` with all actors, then `actor_started`, `actor_changed` and `actor_ended` with
/// one each. After `gap` there is a `tree` again.
#[utoipa::path(get, path = "/v1/tree/events", operation_id = "stream_tree", tag = "tree", security(("bearer" = [])),
    responses(
        (status = 200, description = "The changes", body = String, content_type = "text/event-stream"),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn events(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response<Body>, Problem> {
    let slot = server.take_long_answer(&caller)?;
    let Some(reading) = server.0.tree_readers.take(&caller.tenant) else {
        let wait = std::time::Duration::from_secs(15);
        return Err(
            Problem::new(Code::Streams, "the tree has as many readers as it may").after(wait)
        );
    };
    let watch = server.0.ennead.directory().watch();
    let all = json!({ "type": "tree", "actors": server.actors(&caller) });
    let ready = VecDeque::from([format!("data: {all}\n\n")]);
    let reader = TreeReader { server, caller, watch, ready, _slots: [slot, reading] };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.chunk().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk.into()), reader))
    });
    Ok(sse(Body::from_stream(chunks)))
}

struct TreeReader {
    server: Server,
    caller: Caller,
    watch: TreeWatch,
    ready: VecDeque<String>,
    _slots: [TakenShare; 2],
}

impl TreeReader {
    async fn chunk(&mut self) -> Option<String> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let stopped = self.server.0.tasks.stopped().clone();
        let heartbeat = tokio::time::sleep(std::time::Duration::from_secs(15));
        let mut heartbeat = std::pin::pin!(heartbeat);
        let mut text = String::new();
        loop {
            let next = tokio::select! {
                biased;
                () = stopped.cancelled() => return None,
                next = self.watch.next() => next?,
                () = &mut heartbeat => return Some(":\n\n".to_owned()),
            };
            self.write(next, &mut text);
            for _ in 0..BATCH {
                match futures::FutureExt::now_or_never(self.watch.next()) {
                    Some(Some(next)) => self.write(next, &mut text),
                    _ => break,
                }
            }
            // Changes of other tenants are none here.
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    fn write(&self, change: Result<TreeChange, u64>, text: &mut String) {
        let (kind, live) = match &change {
            Ok(TreeChange::Started(live)) => ("actor_started", live),
            Ok(TreeChange::Changed(live)) => ("actor_changed", live),
            Ok(TreeChange::Ended(live)) => ("actor_ended", live),
            Err(missed) => {
                let gap = json!({ "type": "gap", "missed": missed });
                let all = json!({ "type": "tree", "actors": self.server.actors(&self.caller) });
                text.push_str(&format!("data: {gap}\n\ndata: {all}\n\n"));
                return;
            }
        };
        if self.server.is_shown(&self.caller, live) {
            let mut data: Value = json!({ "type": kind });
            data["actor"] = json!(self.server.actor_view(live));
            text.push_str(&format!("data: {data}\n\n"));
        }
    }
}

impl Server {
    fn actors(&self, caller: &Caller) -> Vec<ActorView> {
        let all = self.0.ennead.directory().all();
        all.iter().filter(|it| self.is_shown(caller, it)).map(|it| self.actor_view(it)).collect()
    }

    fn is_shown(&self, caller: &Caller, live: &Live) -> bool {
        let Some(session) = &live.session else { return caller.role == Role::Admin };
        let top = session.as_str().split('/').next().unwrap_or_default();
        match self.0.book.get(&SessionId::from(top)) {
            Some(hosted) => caller.sees(hosted.tenant()),
            None => caller.role == Role::Admin,
        }
    }

    fn actor_view(&self, live: &Live) -> ActorView {
        let now = self.now();
        let when = |at: Instant| {
            let millis = u64::try_from(at.elapsed().as_millis()).unwrap_or(0);
            Timestamp(now.0.saturating_sub(millis))
        };
        let mailbox = live.mailbox.as_ref();
        let mailbox = mailbox.map(|it| MailboxView { depth: it.depth(), capacity: it.capacity() });
        let is_parked =
            live.session.as_ref().is_some_and(|it| self.0.ennead.directory().parked(it).is_some());
        let waiting_for = match live.kind {
            ActorKind::ModelCall if is_parked => Some("provider"),
            ActorKind::ModelCall => Some("model"),
            ActorKind::ToolExecutor | ActorKind::ShellProcess => Some("tool"),
            ActorKind::Approval => Some("answer"),
            ActorKind::TurnSupervisor if live.is_asking => Some("answer"),
            ActorKind::HookExecution => Some("hook"),
            ActorKind::SourceReader | ActorKind::GateWorker => Some("disk"),
            ActorKind::Session if mailbox.as_ref().is_some_and(|it| it.depth == 0) => {
                Some("prompt")
            }
            _ => None,
        };
        ActorView {
            id: live.cell.get_id().to_string(),
            parent: live.cell.try_get_supervisor().map(|it| it.get_id().to_string()),
            kind: live.kind,
            session: live.session.clone(),
            step: live.step.map(|it| it.name()),
            mailbox,
            waiting_for,
            since: when(live.since),
            step_since: live.step_since.map(when),
        }
    }
}
