//! What the sessions of a process share and what outlives each of them: limits on calls to model
//! servers, and the connections to MCP servers.

pub(crate) mod governor;
pub(crate) mod mcp_server;
