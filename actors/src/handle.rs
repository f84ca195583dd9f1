//! What an embedder holds: the handle of a process, which opens sessions, and what its user trusts.
//! The handle of one session is `session/handle.rs`, next to the actor that it sends prompts to.

pub(crate) mod ennead;
pub(crate) mod trust;
