//! `/v1/me`: who asks, so that a page offers nothing that would be refused.

use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Role, access::Caller, problem::ProblemBody};

/// The bearer of the token that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallerView {
    /// The name of the token.
    name: String,
    /// The tenant that it works for.
    tenant: String,
    /// What it may do.
    role: Role,
}

/// Shows whose token was sent.
#[utoipa::path(get, path = "/v1/me", operation_id = "show_caller", tag = "server", security(("bearer" = [])),
    responses(
        (status = 200, description = "The bearer", body = CallerView),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn show(Extension(caller): Extension<Caller>) -> Json<CallerView> {
    let Caller { tenant, role, name } = caller;
    Json(CallerView { name, tenant: tenant.to_string(), role })
}
