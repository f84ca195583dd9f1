//! Servers of the Model Context Protocol: what a configuration says, and what becomes of their tools.
//!
//! Rules only. Processes and the protocol are in `tools`, the actors that keep a server alive in
//! `actors`. What a turn knows of a server is the [`ToolSpec`](crate::tool::ToolSpec)s of its tools,
//! which are recorded with the setup of the session or with the turn that
//! they join; so a replay needs no server.

pub mod config;
pub(crate) mod expansion;
pub mod names;
pub mod policy;
pub mod restart;
pub mod result;
pub mod schema;
pub mod spec;
pub mod state;
