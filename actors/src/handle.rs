//! What an embedder holds and gives: the handle of a process, its options, streams of events, and the
//! ports for approvals, hooks and models of one's own. Nothing here is an actor but [`approval`],
//! which waits for answers to questions.

pub(crate) mod approval;
pub(crate) mod channel;
pub(crate) mod ennead;
pub(crate) mod errors;
pub(crate) mod events;
pub(crate) mod in_process_hook;
pub(crate) mod in_process_model;
pub(crate) mod options;
pub(crate) mod trust;
