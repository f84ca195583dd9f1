//! What an embedder replaces with code of its own (approvers, policies, hooks, models, stores), and what it
//! receives: events, channels and errors.

pub(crate) mod approver;
pub(crate) mod channel;
pub(crate) mod errors;
pub(crate) mod events;
pub(crate) mod in_process_hook;
pub(crate) mod in_process_model;
pub(crate) mod policy;
pub(crate) mod transcript_store;
