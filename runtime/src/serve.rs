//! The rules of a server of many tenants: whose run begins next, in which order a session takes its runs,
//! what tenants may use in a day, where a run is, and what the sessions of a tenant keep off on the disk.
//!
//! Nothing here knows of HTTP, files or tasks: the server carries out what these values decide.

pub mod closed_places;
pub mod fair_turns;
pub mod ledger;
pub mod progress;
pub mod run_queue;
