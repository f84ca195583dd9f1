//! The routes, and the document that describes them.

use axum::{
    Json, Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        OpenApi as Document,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    Server, access, approvals, health, hosted, me, page, problem, run_routes, sessions, stream,
    transcript, tree, turns,
};

/// Describes the API; `/openapi.json` gives it.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "ennead serve",
        description = "Hosts many agents of many tenants. Errors are application/problem+json with a stable code."
    ),
    paths(
        sessions::create, sessions::list, sessions::show, sessions::delete,
        run_routes::create, run_routes::list, run_routes::show, run_routes::interrupt,
        stream::events, turns::list, turns::show, transcript::show,
        approvals::list, approvals::answer,
        tree::show, tree::events, me::show,
        health::live, health::ready, health::metrics,
    ),
    components(schemas(problem::ProblemBody, hosted::SessionView)),
    modifiers(&Bearer),
)]
struct Api;

/// Says how a token is sent.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// Returns the document that describes the API.
pub(crate) fn document() -> Document {
    Api::openapi()
}

impl Server {
    /// Returns the routes of the API, to be merged into the router of a program or nested in it. What is at none of
    /// their paths is the program's to answer.
    pub fn router(&self) -> Router {
        self.layered(self.routes())
    }

    /// Returns the routes of the API as a whole: what is at none of their paths is refused like all else.
    pub fn app(&self) -> Router {
        self.layered(self.routes().fallback(health::nothing))
    }

    fn layered(&self, routes: Router<Self>) -> Router {
        routes
            .method_not_allowed_fallback(health::other_method)
            .layer(DefaultBodyLimit::max(self.0.options.max_body))
            .layer(middleware::from_fn_with_state(self.clone(), access::check))
            .with_state(self.clone())
    }

    fn routes(&self) -> Router<Self> {
        Router::new()
            .route("/v1/sessions", post(sessions::create).get(sessions::list))
            .route("/v1/sessions/{id}", get(sessions::show).delete(sessions::delete))
            .route("/v1/sessions/{id}/runs", post(run_routes::create).get(run_routes::list))
            .route("/v1/sessions/{id}/runs/{run}", get(run_routes::show))
            .route("/v1/sessions/{id}/interrupt", post(run_routes::interrupt))
            .route("/v1/sessions/{id}/events", get(stream::events))
            .route("/v1/sessions/{id}/turns", get(turns::list))
            .route("/v1/sessions/{id}/turns/{number}", get(turns::show))
            .route("/v1/sessions/{id}/transcript", get(transcript::show))
            .route("/v1/approvals", get(approvals::list))
            .route("/v1/approvals/{id}", post(approvals::answer))
            .route("/v1/tree", get(tree::show))
            .route("/v1/tree/events", get(tree::events))
            .route("/v1/me", get(me::show))
            .route("/healthz", get(health::live))
            .route("/readyz", get(health::ready))
            .route("/metrics", get(health::metrics))
            .route("/openapi.json", get(|| async { Json(document()) }))
            .merge(page::routes())
    }
}
