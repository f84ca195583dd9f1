//! What several tests need and none of them is about.

pub(crate) mod approver;
pub(crate) mod barrier;
pub(crate) mod breaks;
pub(crate) mod clocked;
pub(crate) mod command;
pub(crate) mod event_order;
pub(crate) mod events;
pub(crate) mod formats;
pub(crate) mod held_timer;
pub(crate) mod host;
pub(crate) mod hunter;
pub(crate) mod mcp_server;
pub(crate) mod memory_store;
pub(crate) mod model;
pub(crate) mod model_server;
pub(crate) mod paused;
pub(crate) mod probe;
pub(crate) mod processes;
pub(crate) mod provider_rules;
pub(crate) mod record;
pub(crate) mod scripted;
pub(crate) mod settings;
pub(crate) mod tls_server;
pub(crate) mod tools;
pub(crate) mod until;
pub(crate) mod waits;
