//! What the sessions of a process share and what outlives each of them: limits on calls to model
//! servers, the connections to MCP servers, and the questions that wait for an answer.

pub(crate) mod approval;
pub(crate) mod governor;
pub(crate) mod mcp_server;
