//! Decides: every rule of the harness as plain data and pure functions.
//!
//! No clock, file, socket, thread, task, actor or global lives here. [`turn::Turn::handle`] takes
//! an input and gives back effects; the same inputs always give the same effects, which is what
//! makes a session replayable from its transcript. The listing of this folder is the pipeline.

// The pipeline, in the order a turn walks it.
pub mod recovery;
pub mod step;
pub mod step1_settings_resolution;
pub(crate) mod step2_state_initialization;
pub mod step3_context_assembly;
pub mod step4_context_shapers;
pub mod step5_model_call;
pub mod step6_tool_dispatch;
pub mod step7_permission_gate;
pub(crate) mod step8_tool_execution;
pub mod step9_stop_check;
pub mod turn;

// What outlives a turn.
pub mod cost;
pub mod evaluation;
pub mod governor;
pub mod lease;
pub mod mcp;
pub mod output;
pub mod run;
pub mod sandbox;
pub mod serve;
pub mod session;
pub mod transcript;

// The vocabulary.
pub mod agent_text;
pub mod approval;
pub mod block;
pub mod catalogue;
pub mod digest;
pub mod entropy;
pub mod event;
pub mod hook;
pub mod ids;
pub mod input_schema;
mod json;
pub mod message;
pub mod permission;
pub mod picture;
pub mod ports;
pub mod redaction;
pub mod saturating;
mod shared;
pub mod skill;
pub mod time;
pub mod tokens;
pub mod tool;
pub mod wire_body;
