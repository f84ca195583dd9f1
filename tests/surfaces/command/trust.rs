//! What a repository may and may not do: docs/trust.md, against real files, processes and sockets.

mod keys;
mod links;
pub(super) mod server;
mod starts;
