//! `/v1/sessions`: making sessions, listing them, and deleting them.

use std::{num::NonZeroU32, sync::Arc};

use axum::{
    Extension, Json,
    body::Body,
    extract::{OriginalUri, Path, Request, State},
    http::{HeaderValue, Response, StatusCode, Uri, header},
    response::IntoResponse,
};
use ennead_runtime::{
    ids::{SessionId, TenantId},
    permission::PermissionMode,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{
    Role, ServeError, Server,
    access::Caller,
    body,
    hosted::{Hosted, SessionView},
    problem::{Code, Problem, ProblemBody},
    random,
    record::{Record, Saved, Totals},
    tokens::is_name,
};

/// Bytes of a title, a directory or the name of a model.
const MAX_NAME: usize = 256;

/// Bytes of the text after the system prompt.
const MAX_SYSTEM: usize = 64 * 1024;

/// What a session is asked for with.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// What people call it.
    title: Option<String>,
    /// Where it works, below the directory of the tenant; made if it is not there. The default is a
    /// directory of its own, named by its id.
    directory: Option<String>,
    /// The model to ask; that of the server's settings by default.
    model: Option<String>,
    /// `plan`, `default`, `acceptEdits` or `dontAsk`.
    #[schema(value_type = Option<String>)]
    mode: Option<PermissionMode>,
    /// Turns that a run may take.
    #[schema(value_type = Option<u32>)]
    max_turns: Option<NonZeroU32>,
    /// A text after the system prompt, at most 65,536 bytes.
    system: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// The sessions, the youngest first.
    sessions: Vec<SessionView>,
    /// Where the next page begins, as `cursor`; `null` on the last one.
    next: Option<String>,
}

/// Makes a session. It becomes an actor with its first run.
#[utoipa::path(post, path = "/v1/sessions", operation_id = "create_session", tag = "sessions", request_body = NewSession,
    security(("bearer" = [])),
    responses(
        (status = 201, description = "The session", body = SessionView),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn create(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    OriginalUri(asked): OriginalUri,
    request: Request,
) -> Result<Response<Body>, Problem> {
    caller.at_least(Role::User)?;
    server.refuse_while_draining()?;
    let new: NewSession = body::json(request, server.0.options.max_body).await?;
    let hosted = server.make_session(caller.tenant, new).await?;
    let mut response = (StatusCode::CREATED, Json(hosted.view())).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!("{}/{}", asked.path(), hosted.id())) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

impl Server {
    async fn make_session(
        &self,
        tenant: TenantId,
        new: NewSession,
    ) -> Result<Arc<Hosted>, Problem> {
        new.check(self.0.options.session.may_bypass)?;
        if self.0.options.workspace.is_some() && new.directory.is_some() {
            let detail = "all sessions of this server work in one directory; name none";
            return Err(Problem::new(Code::BadDirectory, detail));
        }
        let admit = |of_tenant, all| self.0.limits.admit_session(of_tenant, all);
        let _place = self.0.book.reserve(&tenant, admit)?;
        let id = random::uuid().map_err(|it| Problem::internal("no id can be made", &it))?;
        let directory = new.directory.unwrap_or_else(|| id.clone());
        self.directory_of(&tenant, &directory).await?;
        let record = Record {
            id: id.into(),
            tenant: self.0.book.known(tenant),
            title: new.title.map(Into::into),
            directory: directory.into(),
            model: new.model.map(Into::into),
            mode: new.mode,
            max_turns: new.max_turns,
            system: new.system.map(Into::into),
            created_at: self.now(),
        };
        let last_used_at = Some(record.created_at);
        let saved = Saved { record, totals: Totals::default(), last_used_at, last_model: None };
        let paths = self.0.paths.clone();
        let write = self.write(move || {
            let written = paths.save(&saved);
            (saved, written)
        });
        let (saved, written) = write.await?;
        written.map_err(|it| Problem::internal("the session cannot be written", &it))?;
        let hosted = Arc::new(Hosted::new(saved));
        self.0.book.insert(Arc::clone(&hosted));
        Ok(hosted)
    }

    /// Makes a session for a tenant and asks for its first run; for programs that host the server.
    ///
    /// # Errors
    ///
    /// [`ServeError::Refused`], as the API would refuse it.
    pub async fn begin(
        &self,
        tenant: &str,
        title: &str,
        prompt: &str,
    ) -> Result<SessionId, ServeError> {
        let refused = |it: Problem| ServeError::Refused(it.to_string());
        if !is_name(tenant) {
            return Err(ServeError::Refused("the tenant has no name".to_owned()));
        }
        let new = NewSession { title: Some(title.to_owned()), ..NewSession::default() };
        let hosted = self.make_session(tenant.into(), new).await.map_err(refused)?;
        self.ask_for_run(&hosted, prompt).await.map_err(refused)?;
        Ok(hosted.id().clone())
    }
}

impl NewSession {
    fn check(&self, may_bypass: bool) -> Result<(), Problem> {
        let bad = |what: &str| Err(Problem::new(Code::BadRequest, format!("the body: {what}")));
        for (name, text) in
            [("title", &self.title), ("directory", &self.directory), ("model", &self.model)]
        {
            let Some(text) = text else { continue };
            if text.is_empty() || MAX_NAME < text.len() || text.chars().any(char::is_control) {
                return bad(&format!(
                    "`{name}` has 1 to {MAX_NAME} bytes and no control characters"
                ));
            }
        }
        if self.system.as_ref().is_some_and(|it| MAX_SYSTEM < it.len()) {
            return bad("`system` has at most 65536 bytes");
        }
        if self.mode == Some(PermissionMode::BypassPermissions) && !may_bypass {
            return bad("this server gives no leave to bypass permissions");
        }
        Ok(())
    }
}

/// Lists the sessions of the tenant, the youngest first; an admin sees those of all.
#[utoipa::path(get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions", security(("bearer" = [])),
    params(
        ("limit" = Option<u32>, Query, description = "1 to 200; 50 by default"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page", body = SessionList),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<SessionList>, Problem> {
    let n = body::page(&uri)?;
    let cursor = body::query(&uri, "cursor");
    let before = cursor
        .map(|it| {
            let (at, id) = it.split_once('-')?;
            Some((Timestamp(at.parse().ok()?), SessionId::from(id)))
        })
        .map(|it| {
            it.ok_or_else(|| Problem::new(Code::BadRequest, "the cursor is none of this list"))
        })
        .transpose()?;
    let tenant = (caller.role != Role::Admin).then_some(&caller.tenant);
    let (found, is_more) = server.0.book.youngest(tenant, before.as_ref(), n);
    let next = found.last().filter(|_| is_more);
    let next = next.map(|it| format!("{}-{}", it.record.created_at.0, it.id()));
    Ok(Json(SessionList { sessions: found.iter().map(|it| it.view()).collect(), next }))
}

/// Shows a session.
#[utoipa::path(get, path = "/v1/sessions/{id}", operation_id = "show_session", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session", body = SessionView),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn show(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<SessionView>, Problem> {
    Ok(Json(server.hosted(&caller, &id)?.view()))
}

/// Deletes a session: its run is interrupted, what waits fails, and it is known no more. Its transcript
/// and its directory stay on the disk, for the one who runs the server. With `files=true` the transcript is removed,
/// and so is the directory if it was made for this session alone; it is for a tenant whose place on the disk is used up.
#[utoipa::path(delete, path = "/v1/sessions/{id}", operation_id = "delete_session", tag = "sessions", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("files" = Option<bool>, Query, description = "Whether its files are removed, too"),
    ),
    responses(
        (status = 204, description = "It is gone"),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn delete(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<StatusCode, Problem> {
    caller.at_least(Role::User)?;
    let hosted = server.hosted(&caller, &id)?;
    let with_files = match body::query(&uri, "files") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::new(Code::BadRequest, "`files` is true or false")),
    };
    let paths = &server.0.paths;
    let record = paths.record(hosted.tenant(), hosted.id());
    let journal = paths.runs(hosted.tenant(), hosted.id());
    let files = hosted.lock_files().await;
    let removed = server.write(move || {
        let _none = std::fs::remove_file(journal);
        std::fs::remove_file(record)
    });
    removed.await?.map_err(|it| Problem::internal("the session cannot be deleted", &it))?;
    server.0.book.remove(hosted.id());
    // From now on nothing is written of it.
    hosted.state().is_deleted = true;
    drop(files);
    let handle = hosted.live().handle.lock().await.take();
    let outcome = json!({ "end": "failed", "error": "the session was deleted" });
    let at = server.now();
    server.note_runs(&hosted, |runs| runs.failed(&outcome, at)).await;
    if let Some(handle) = handle {
        handle.close().await;
    }
    hosted.live().ring.close();
    if with_files {
        server.remove_files(&hosted).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

impl Server {
    /// Finds a session that exists for the caller. One of another tenant is not found.
    pub(crate) fn hosted(&self, caller: &Caller, id: &str) -> Result<Arc<Hosted>, Problem> {
        let hosted = self.0.book.get(&SessionId::from(id));
        let hosted = hosted.filter(|it| caller.sees(it.tenant()));
        hosted.ok_or_else(|| Problem::new(Code::NoSession, "the tenant has no such session"))
    }
}
