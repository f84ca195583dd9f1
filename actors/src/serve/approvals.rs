//! `/v1/approvals`: questions about calls that wait for an answer, and answering them.

use axum::{
    Extension, Json,
    extract::{Path, Request, State},
    http::StatusCode,
};
use ennead_runtime::{
    approval::{AnswerError, PermissionAnswer, Question, RuleDestination, RuleUpdate},
    digest::Digest,
    ids::SessionId,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    Role, Server,
    access::Caller,
    body,
    problem::{Code, Problem, ProblemBody},
};

/// A question about a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalView {
    /// Names the question; the same after the server was restarted.
    id: String,
    /// The session.
    session: String,
    /// The tenant of that session.
    tenant: String,
    /// The run whose call it is.
    run: String,
    /// The sub-agents from the session down to the one that asks; empty for the session itself.
    agents: Vec<String>,
    /// The tool of the call.
    tool: String,
    /// The id of the call.
    call: String,
    /// The input of the call, as the tool would receive it.
    #[schema(value_type = Object)]
    input: Value,
    /// The directory that it would run in.
    cwd: String,
    /// Why it is asked.
    reason: String,
    /// Rules that would settle it for the future, narrowest first.
    suggestions: Vec<String>,
    /// Of the exact action; an answer names it.
    #[schema(value_type = String)]
    digest: Digest,
    /// Of the rules and the mode that hold; an answer names it.
    #[schema(value_type = String)]
    epoch: Digest,
    /// When it was asked, in milliseconds since 1970.
    #[schema(value_type = u64)]
    asked_at: Timestamp,
    /// When answers stop being taken, in milliseconds since 1970.
    #[schema(value_type = u64)]
    expires_at: Timestamp,
}

/// The questions that are open.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    /// The open questions, the oldest first.
    approvals: Vec<ApprovalView>,
    /// How many more there are.
    more: usize,
}

/// An answer to a question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAnswer {
    /// Whether the call may run.
    allow: bool,
    /// `digest` of the question, as it was shown.
    #[schema(value_type = String)]
    digest: Digest,
    /// `epoch` of the question, as it was shown.
    #[schema(value_type = String)]
    epoch: Digest,
    /// In words; the model reads that of a refusal.
    #[serde(default)]
    reason: String,
    /// The input to run with instead.
    #[schema(value_type = Option<Object>)]
    input: Option<Value>,
    /// Allow rules that hold from now on in the session, at most 8.
    #[serde(default)]
    rules: Vec<String>,
    /// With a refusal: the run ends.
    #[serde(default)]
    interrupt: bool,
}

/// Lists the questions of the tenant's sessions that are open, the oldest first.
#[utoipa::path(get, path = "/v1/approvals", operation_id = "list_approvals", tag = "approvals", security(("bearer" = [])),
    params(
        ("session" = Option<String>, Query, description = "Only those of this session"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50 by default"),
    ),
    responses(
        (status = 200, description = "The questions", body = ApprovalList),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    uri: axum::http::Uri,
) -> Result<Json<ApprovalList>, Problem> {
    let n = body::page(&uri)?;
    let of = body::query(&uri, "session");
    let wanted = |it: &Question| of.is_none_or(|of| it.session.as_str() == of);
    let mut all: Vec<_> = server.0.ennead.approvals().into_iter().filter(wanted).collect();
    all.retain(|it| server.tenant_of(&caller, &it.session).is_some());
    let more = all.len().saturating_sub(n);
    all.truncate(n);
    let approvals = all.into_iter().filter_map(|it| server.approval_view(&caller, it)).collect();
    Ok(Json(ApprovalList { approvals, more }))
}

/// Answers a question. Of several answers one is taken.
#[utoipa::path(post, path = "/v1/approvals/{id}", operation_id = "answer_approval", tag = "approvals", request_body = NewAnswer,
    security(("bearer" = [])),
    params(("id" = String, Path, description = "The question")),
    responses(
        (status = 204, description = "The answer was taken"),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn answer(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    request: Request,
) -> Result<StatusCode, Problem> {
    caller.at_least(Role::User)?;
    let none = || Problem::new(Code::NoApproval, "the tenant has no such question");
    let open = server.0.ennead.approvals();
    let Some(question) = open.into_iter().find(|it| it.id.as_str() == id) else {
        let ended = server.0.ennead.ended_question(&id);
        ended.and_then(|it| server.tenant_of(&caller, &it)).ok_or_else(none)?;
        return Err(Problem::new(Code::Answered, "the question was answered, or its time is over"));
    };
    server.tenant_of(&caller, &question.session).ok_or_else(none)?;
    let new: NewAnswer = body::json(request, server.0.options.max_body).await?;
    let mut key = question.key();
    (key.digest, key.epoch) = (new.digest, new.epoch);
    let mut answer =
        if new.allow { PermissionAnswer::allow() } else { PermissionAnswer::deny(new.reason) };
    if let Some(input) = new.input {
        answer = answer.with_input(input.to_string());
    }
    for rule in new.rules {
        // Rules of files are the server's, and so are its directories: an answer changes the session alone.
        let update = RuleUpdate::allow(rule);
        answer = answer.with_rule(update.kept_in(RuleDestination::Session));
    }
    answer.interrupt = new.interrupt;
    let surface = format!("serve:{}", caller.name);
    server.0.ennead.answer(&key, &surface, answer).await.map_err(|it| refused(&it))?;
    Ok(StatusCode::NO_CONTENT)
}

fn refused(error: &AnswerError) -> Problem {
    let code = match error {
        AnswerError::Unknown(_) => Code::NoApproval,
        AnswerError::Answered(_) | AnswerError::Ended | AnswerError::Expired { .. } => {
            Code::Answered
        }
        AnswerError::BadRule(_)
        | AnswerError::BadInput(_)
        | AnswerError::TooManyRules
        | AnswerError::AllowsAndInterrupts => Code::BadRequest,
        _ => Code::BadAnswer,
    };
    Problem::new(code, error.to_string())
}

impl Server {
    /// The tenant of a session that exists for the caller.
    fn tenant_of(&self, caller: &Caller, session: &SessionId) -> Option<String> {
        let hosted = self.0.book.get(session).filter(|it| caller.sees(it.tenant()))?;
        Some(hosted.tenant().to_string())
    }

    fn approval_view(&self, caller: &Caller, question: Question) -> Option<ApprovalView> {
        let tenant = self.tenant_of(caller, &question.session)?;
        Some(ApprovalView {
            id: question.id.to_string(),
            session: question.session.to_string(),
            tenant,
            run: question.run.to_string(),
            agents: question.agents.iter().map(ToString::to_string).collect(),
            tool: question.call.name.to_string(),
            call: question.call.id.to_string(),
            input: serde_json::from_str(question.call.input.as_ref()).unwrap_or_default(),
            cwd: question.cwd.to_string(),
            reason: question.reason,
            suggestions: question.suggestions,
            digest: question.digest,
            epoch: question.epoch,
            asked_at: question.asked_at,
            expires_at: question.expires,
        })
    }
}
