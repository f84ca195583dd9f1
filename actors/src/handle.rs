//! What an embedder holds: the handle of a process, which opens sessions, and what its user trusts.

pub(crate) mod ennead;
pub(crate) mod trust;
