//! The stream protocol of Agent SDKs: JSON lines on standard input and output.
//!
//! A program that drives the command this way (`--input-format stream-json --output-format stream-json`)
//! writes prompts and control requests, one JSON object per line, and reads messages, results and control
//! requests of ours. This is a face of a session and holds no rule: lines become calls of
//! [`ennead::SessionHandle`], events become lines.
//!
//! * [`incoming`]: what a line of the program means;
//! * [`frames`]: the lines that are written, and [`fit`], which keeps each below the length that programs read;
//! * [`translate`]: events of a session to lines, a pure machine;
//! * [`pipe`]: standard input and output, each on a thread of its own, so that a program that stops reading
//!   holds nothing up;
//! * [`host`]: questions to the program, their answers and their cancellation;
//! * [`results`]: the first and the last line of a run;
//! * [`fork`]: a copy of a session under another id;
//! * [`going_back`]: a session that goes on from an earlier message;
//! * [`skills`]: skills and commands of files;
//! * [`agents`]: sub-agents that the program defines;
//! * [`titles`]: what a session is known by, kept where programs look for it;
//! * [`structured`]: answers that fit a schema;
//! * `callbacks`: approvals and hooks that the program answers;
//! * [`context`]: how much of the model's window is taken, and by what;
//! * [`mcp`]: MCP servers that run in the program;
//! * [`permission_tool`]: approvals that a tool of such a server gives;
//! * [`face`]: the loop that ties them together.

pub mod agents;
pub(crate) mod callbacks;
pub mod checkpoints;
pub mod context;
pub mod face;
pub mod fit;
pub mod fork;
pub mod frames;
pub mod going_back;
pub mod host;
pub mod incoming;
pub mod mcp;
pub mod mirror;
pub mod permission_tool;
pub mod pipe;
pub mod results;
pub mod skills;
pub mod structured;
mod tasks;
pub mod titles;
pub mod translate;

/// The version of the stream protocol's reference program that the lines are compatible with. Programs
/// compare it with the least one that they work with.
pub const COMPATIBLE_VERSION: &str = "2.1.300";
