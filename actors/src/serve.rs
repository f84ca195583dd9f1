//! Hosts many agents of many tenants over HTTP.
//!
//! A [`Server`] has an [`Ennead`](crate::Ennead) and a directory, and gives the routes of the API as an [`axum::Router`]: to be
//! served by [`Server::listen`], or to be mounted into a program of one's own.
//!
//! # The API
//!
//! `/openapi.json` describes it in full; docs/server.md is for people.
//!
//! | Path | What it does |
//! |---|---|
//! | `POST`, `GET /v1/sessions` | makes a session; lists them by pages |
//! | `GET`, `DELETE /v1/sessions/{id}` | shows one; deletes it |
//! | `POST`, `GET /v1/sessions/{id}/runs` | asks for a run: the receipt at once, the outcome with `Prefer: wait=S`, the events with `Accept: text/event-stream`; lists the newest |
//! | `GET /v1/sessions/{id}/runs/{run}` | shows a run and what it left |
//! | `POST /v1/sessions/{id}/interrupt` | ends the run under way |
//! | `GET /v1/sessions/{id}/events` | server-sent events; `Last-Event-ID` goes on after any of them |
//! | `GET /v1/sessions/{id}/turns`, `/turns/{number}` | the nine steps of each turn |
//! | `GET /v1/sessions/{id}/transcript` | the transcript, JSON lines, with ranges |
//! | `GET /v1/approvals`, `POST /v1/approvals/{id}` | questions about calls; answers one |
//! | `GET /v1/tree`, `/v1/tree/events` | the actors that live, and their comings and goings |
//! | `GET /v1/me` | whose token was sent |
//! | `GET /`, `/page/{file}` | the live page |
//! | `GET /healthz`, `/readyz`, `/metrics` | for load balancers and Prometheus |
//!
//! All but the last and `/openapi.json` want a token ([`TokenFile`]). What belongs to another tenant is not
//! there: the answer is 404. Refusals are `application/problem+json` with a stable `code`.
//!
//! # How a run is taken
//!
//! A run is written to the journal of its session before its receipt is given. One task for each session takes
//! its runs in order; the session becomes an actor with the first, and is let go when it was idle for
//! [`ServeOptions::passivate_after`]. After a restart, runs that waited are run, a run that waits for an answer goes
//! on waiting, and one that was in the middle is gone on with by another run.

mod access;
mod api;
mod approvals;
mod body;
mod book;
mod confines;
mod directories;
mod drain;
mod error;
mod health;
mod hosted;
mod hosting;
mod journal;
mod limits;
mod listen;
mod me;
mod memory;
mod metrics;
mod options;
pub(crate) mod page;
mod problem;
mod pump;
mod random;
mod rates;
mod record;
mod removal;
mod replay;
mod ring;
mod run_routes;
mod runs;
mod server;
mod sessions;
mod shares;
mod slots;
mod stream;
mod tasks;
pub(crate) mod tokens;
mod transcript;
mod tree;
mod turns;
mod turnstile;
mod worker;

pub use self::{
    error::ServeError,
    options::ServeOptions,
    server::Server,
    tokens::{Role, TokenFile},
};
pub use ennead_runtime::serve::ledger::TenantLimits;
