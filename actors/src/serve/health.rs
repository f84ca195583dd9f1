//! `/healthz`, `/readyz` and `/metrics`: what load balancers and meters ask.

use std::time::Duration;

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderValue, Response, header},
};

use super::{
    Role, Server,
    access::Caller,
    book::Walked,
    hosting::blocking,
    problem::{Code, Problem, ProblemBody},
};

/// Reports that the process lives.
#[utoipa::path(get, path = "/healthz", operation_id = "show_health", tag = "server",
    responses((status = 200, description = "It lives", body = String, content_type = "text/plain")))]
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Reports whether load balancers are to send requests here. It says no first when the server is to end; runs are
/// taken for a while longer, so that those on their way are.
#[utoipa::path(get, path = "/readyz", operation_id = "show_readiness", tag = "server",
    responses(
        (status = 200, description = "Runs are taken", body = String, content_type = "text/plain"),
        (status = 503, description = "The server is about to end", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn ready(State(server): State<Server>) -> Result<&'static str, Problem> {
    if server.0.drain.is_announced() {
        return Err(server.draining());
    }
    Ok("ready\n")
}

/// Returns the counters and gauges of the server, in the text format of Prometheus. For admins.
#[utoipa::path(get, path = "/metrics", operation_id = "show_metrics", tag = "server", security(("bearer" = [])),
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain"),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn metrics(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response<Body>, Problem> {
    caller.at_least(Role::Admin)?;
    let text = blocking(move || server.0.metrics.render(&server.gauges())).await?;
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

impl Server {
    /// Refuses what begins something new while the server is about to end.
    pub(crate) fn refuse_while_draining(&self) -> Result<(), Problem> {
        if self.0.drain.is_begun() { Err(self.draining()) } else { Ok(()) }
    }

    fn draining(&self) -> Problem {
        Problem::new(Code::Draining, "ask the next process").after(Duration::from_secs(5))
    }

    /// Reads the gauges. To be called where the disk may be waited for.
    fn gauges(&self) -> Vec<(&'static str, &'static str, String, f64)> {
        let mut states = std::collections::BTreeMap::<&str, usize>::new();
        let mut queued = 0;
        let mut n_awake = 0;
        for hosted in self.0.book.walk(Walked::Awake).flatten() {
            n_awake += 1;
            let state = hosted.state();
            let is_running = state.progress.as_ref().map(|it| it.run.is_some());
            let is_asked = state.progress.as_ref().is_some_and(|it| !it.asked.is_empty());
            let name = match (is_running, state.blocked_by) {
                (Some(true), _) if is_asked => "waiting",
                (Some(true), _) => "running",
                (_, Some(_)) => "parked",
                (Some(false), None) => "idle",
                (None, None) => "passive",
            };
            *states.entry(name).or_default() += 1;
            queued += state.runs.as_ref().map_or(0, |it| it.n_queued());
        }
        *states.entry("passive").or_default() += self.0.book.len().saturating_sub(n_awake);
        let mut gauges: Vec<_> = states
            .into_iter()
            .map(|(state, n)| ("ennead_sessions", "state", state.to_owned(), n as f64))
            .collect();
        gauges.push(("ennead_runs_queued", "", String::new(), queued as f64));
        let held = self.0.turnstile.n_waiting();
        gauges.push(("ennead_runs_waiting_for_their_turn", "", String::new(), held as f64));
        let asked = self.0.ennead.approvals().len();
        gauges.push(("ennead_approvals_open", "", String::new(), asked as f64));
        let mut mailboxes = std::collections::BTreeMap::<String, usize>::new();
        let mut actors = std::collections::BTreeMap::<String, usize>::new();
        for live in self.0.ennead.directory().all() {
            let kind = serde_json::to_value(live.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or_default().to_owned();
            if let Some(mailbox) = &live.mailbox {
                *mailboxes.entry(kind.clone()).or_default() += mailbox.depth();
            }
            *actors.entry(kind).or_default() += 1;
        }
        gauges
            .extend(actors.into_iter().map(|(kind, n)| ("ennead_actors", "kind", kind, n as f64)));
        let depths = mailboxes.into_iter();
        gauges.extend(depths.map(|(kind, n)| ("ennead_mailbox_depth", "kind", kind, n as f64)));
        let readers = self.0.tree_readers.n_taken();
        gauges.push(("ennead_tree_readers", "", String::new(), readers as f64));
        let long = self.0.long_answers.n_taken();
        gauges.push(("ennead_streams", "", String::new(), long as f64));
        if let Some(bytes) = resident_bytes() {
            gauges.push(("process_resident_memory_bytes", "", String::new(), bytes as f64));
        }
        gauges
    }
}

/// Memory of the process that is in use, as Linux reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Answers where nothing is.
pub(crate) async fn nothing() -> Problem {
    Problem::new(Code::NotFound, "see /openapi.json for what there is")
}

/// Answers a method that a path does not take.
pub(crate) async fn other_method() -> Problem {
    Problem::new(Code::Method, "see /openapi.json for what there is")
}
