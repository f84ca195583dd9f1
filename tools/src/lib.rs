//! Touches: what a model can have done to the world, one file per tool.
//!
//! Knows the rules of `ennead-runtime` and no actor. A tool runs only with a permit of the gate;
//! whatever waits or blocks here ends when its future is dropped, and lets go of the call's `hold`
//! only when nothing of it can touch the world any more.

// What embedders and the harness use.
pub mod custom;
pub mod locked;
pub mod mcp;
pub mod own_file;
#[cfg(feature = "web")]
pub mod page_text;
pub mod process_tree;
pub mod registry;
pub mod rule_file;
pub mod sandbox;
pub mod schema;
pub mod shells;
pub mod skill;
pub mod source_file;
pub mod web_search;
pub mod withdrawn_keys;

// The tools, in the order in which the model is offered them.
mod agent;
mod bash;
mod edit;
#[cfg(feature = "search")]
mod glob;
#[cfg(feature = "search")]
mod grep;
mod multi_edit;
mod notebook_edit;
mod read;
mod send_message;
mod tasks;
mod todo;
#[cfg(feature = "web")]
mod web_fetch;
mod write;

// What they share.
mod blocking;
mod built_in;
mod capped;
mod declared;
mod files;
#[cfg(feature = "search")]
mod globs;
#[cfg(target_os = "linux")]
mod helper;
mod hidden;
mod hosted;
mod notebook;
mod output;
mod patch;
mod paths;
mod plan;
mod question;
mod replace;
mod text_edit;
#[cfg(feature = "search")]
mod walk;

#[cfg(test)]
mod test_support;
