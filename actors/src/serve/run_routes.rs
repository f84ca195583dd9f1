//! `/v1/sessions/{id}/runs`: asking for runs, and what became of them.

mod views;

use std::sync::Arc;

use axum::{
    Extension, Json,
    body::Body,
    extract::{OriginalUri, Path, Request, State},
    http::{HeaderName, HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use ennead_runtime::{ids::RunId, run::RunRequest};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

pub(crate) use self::views::RunView;
use self::views::{NewRun, RunList};
use super::{
    Role, Server,
    access::Caller,
    body,
    hosted::Hosted,
    problem::{Code, Problem, ProblemBody},
    random,
    runs::{Delivery, Run, Runs},
};

/// Bytes of an `Idempotency-Key`.
const MAX_KEY: usize = 128;

/// Asks for a run. The receipt comes at once; with `Prefer: wait=S` the answer waits for the outcome, at
/// most that long and at most 300 seconds; with `Accept: text/event-stream` it is the stream of the
/// session's events up to the end of the run. A request that is sent again with the same
/// `Idempotency-Key` is the same run.
#[utoipa::path(post, path = "/v1/sessions/{id}/runs", operation_id = "create_run", tag = "runs", request_body = NewRun,
    security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("Idempotency-Key" = Option<String>, Header, description = "At most 128 printable characters"),
        ("Prefer" = Option<String>, Header, description = "`wait=S`"),
    ),
    responses(
        (status = 202, description = "The receipt", body = RunView),
        (status = 200, description = "The run has ended", content(
            (RunView = "application/json"), (String = "text/event-stream"))),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn create(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    OriginalUri(asked): OriginalUri,
    request: Request,
) -> Result<Response<Body>, Problem> {
    caller.at_least(Role::User)?;
    let hosted = server.hosted(&caller, &id)?;
    let headers = request.headers().clone();
    let key = key(&headers)?;
    let new: NewRun = body::json(request, server.0.options.max_body).await?;
    let bad =
        |it: ennead_runtime::run::InvalidRequest| Problem::new(Code::BadRequest, it.to_string());
    RunRequest::new(new.prompt.as_str()).check().map_err(bad)?;
    let digest = digest(&new);
    // Before the run is accepted: one that is refused is not begun.
    let wait = body::wait(&headers);
    let is_long = body::wants_stream(&headers) || wait.is_some();
    let mut slot = is_long.then(|| server.take_long_answer(&caller)).transpose()?;
    // So that nothing of it is missed.
    let place = hosted.live().ring.end();
    let known = match &key {
        Some(key) => {
            let known = server.with_runs(&hosted, |runs| runs.of_key(key).cloned()).await?;
            known.map(|it| same(it, &digest)).transpose()?
        }
        None => None,
    };
    let (run, position) = match known {
        Some(run) => (run, None),
        None => {
            server.refuse_while_draining()?;
            server.0.limits.admit_run(hosted.tenant(), server.now())?;
            let id = random::uuid().map_err(|it| Problem::internal("no id can be made", &it))?;
            let mut run = Run::new(id.into(), new.prompt, new.delivery, server.now());
            run.key = key.clone().map(|it| (it, digest.clone()));
            let (run, position) = accept(&server, &hosted, run).await?;
            server.work_on(&hosted);
            let is_new = position.is_some();
            if is_new {
                steer(&hosted, new.delivery).await;
            }
            (same(run, &digest)?, position)
        }
    };
    let ended = run.ended.clone();
    if let Some(slot) = slot.take_if(|_| body::wants_stream(&headers)) {
        return server.stream_run(hosted, run.id, ended, place, slot).await;
    }
    if let Some(wait) = wait {
        wait_for(&ended, wait).await;
    }
    let run_id = run.id;
    let now = server.with_runs(&hosted, |runs| runs.get(&run_id).cloned()).await?;
    let run = now.ok_or_else(|| Problem::new(Code::NoRun, "the run is remembered no more"))?;
    let status = if run.ended.is_cancelled() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let view = RunView::new(&hosted, &run, position);
    let mut response = (status, Json(view)).into_response();
    let path = format!("{}/{}", asked.path(), run.id);
    if let Ok(place) = HeaderValue::from_str(&path) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

impl Server {
    /// Asks for a run in the name of the program that hosts the server.
    pub(crate) async fn ask_for_run(
        &self,
        hosted: &Arc<Hosted>,
        prompt: &str,
    ) -> Result<(), Problem> {
        self.refuse_while_draining()?;
        let id = random::uuid().map_err(|it| Problem::internal("no id can be made", &it))?;
        let run = Run::new(id.into(), prompt.to_owned(), Delivery::Queue, self.now());
        accept(self, hosted, run).await?;
        self.work_on(hosted);
        Ok(())
    }
}

/// Accepts a run and returns how many are before it, or finds that its key was faster.
async fn accept(
    server: &Server,
    hosted: &Arc<Hosted>,
    run: Run,
) -> Result<(Run, Option<usize>), Problem> {
    let max = server.0.options.max_queued_runs;
    let plan = |runs: &Runs| {
        if let Some(known) = run.key.as_ref().and_then(|(key, _)| runs.of_key(key)) {
            return (Ok((known.clone(), false)), Vec::new());
        }
        if max <= runs.n_queued() {
            let detail = format!("{max} runs wait in the session");
            let wait = std::time::Duration::from_secs(5);
            return (Err(Problem::new(Code::QueueFull, detail).after(wait)), Vec::new());
        }
        (Ok((run.clone(), true)), vec![run])
    };
    let (accepted, n_before) = server.promise_runs(hosted, plan).await?;
    let (run, is_new) = accepted?;
    Ok((run, is_new.then_some(n_before)))
}

/// Makes room for a run that is not to wait.
async fn steer(hosted: &Hosted, delivery: Delivery) {
    let handle = hosted.live().handle.lock().await.clone();
    match (delivery, handle) {
        (Delivery::Steer, Some(handle)) => handle.stop(),
        (Delivery::Interrupt, Some(handle)) => handle.interrupt(),
        _ => {}
    }
}

fn key(headers: &axum::http::HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(HeaderName::from_static("idempotency-key")) else {
        return Ok(None);
    };
    let key = key.to_str().ok().filter(|it| (1..=MAX_KEY).contains(&it.len()));
    let bad =
        || Problem::new(Code::BadRequest, "an Idempotency-Key has 1 to 128 printable characters");
    key.map(|it| Some(it.to_owned())).ok_or_else(bad)
}

fn digest(new: &NewRun) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[new.delivery as u8]);
    hasher.update(new.prompt.as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// The run, if it was asked for with the same body.
fn same(run: Run, digest: &str) -> Result<Run, Problem> {
    match &run.key {
        Some((_, of)) if of != digest => {
            Err(Problem::new(Code::KeyReused, "the body is not that of the first request"))
        }
        _ => Ok(run),
    }
}

async fn wait_for(ended: &CancellationToken, wait: std::time::Duration) {
    // Whichever comes first: the caller reads from the state what it was.
    let _over = tokio::time::timeout(wait, ended.cancelled()).await;
}

/// Lists the newest runs of a session, at most 256.
#[utoipa::path(get, path = "/v1/sessions/{id}/runs", operation_id = "list_runs", tag = "runs", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50 by default"),
    ),
    responses(
        (status = 200, description = "The runs", body = RunList),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: axum::http::Uri,
) -> Result<Json<RunList>, Problem> {
    let hosted = server.hosted(&caller, &id)?;
    let n = body::page(&uri)?;
    let view = |it: &Run| RunView::new(&hosted, it, None);
    let runs =
        server.with_runs(&hosted, |it| it.oldest_first().rev().take(n).map(view).collect()).await?;
    Ok(Json(RunList { runs }))
}

/// Shows a run.
#[utoipa::path(get, path = "/v1/sessions/{id}/runs/{run}", operation_id = "show_run", tag = "runs", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("run" = String, Path, description = "The run"),
        ("Prefer" = Option<String>, Header, description = "`wait=S`"),
    ),
    responses(
        (status = 200, description = "The run", body = RunView),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn show(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path((id, run)): Path<(String, String)>,
    headers: axum::http::HeaderMap,
) -> Result<Json<RunView>, Problem> {
    let hosted = server.hosted(&caller, &id)?;
    let run = RunId::from(run);
    let found = server.with_runs(&hosted, |it| it.get(&run).cloned()).await?;
    let none = || Problem::new(Code::NoRun, "the session has no such run, or not any more");
    let found = found.ok_or_else(none)?;
    if let Some(wait) = body::wait(&headers) {
        let _slot = server.take_long_answer(&caller)?;
        wait_for(&found.ended, wait).await;
    }
    let found = server.with_runs(&hosted, |it| it.get(&run).cloned()).await?.ok_or_else(none)?;
    Ok(Json(RunView::new(&hosted, &found, None)))
}

/// What an interrupt did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Interrupted {
    /// The run that ends; `null` when none was under way.
    #[schema(value_type = Option<String>)]
    run: Option<RunId>,
}

/// Ends the run under way now; those that wait go on.
#[utoipa::path(post, path = "/v1/sessions/{id}/interrupt", operation_id = "interrupt_run", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "It ends, or none was under way", body = Interrupted),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn interrupt(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Interrupted>, Problem> {
    caller.at_least(Role::User)?;
    let hosted = server.hosted(&caller, &id)?;
    let run = server.with_runs(&hosted, |it| it.running().cloned()).await?;
    steer(&hosted, Delivery::Interrupt).await;
    Ok(Json(Interrupted { run }))
}
