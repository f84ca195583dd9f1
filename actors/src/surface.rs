//! The faces of the library: each translates between people or programs and sessions.
//!
//! A face holds no rule, and none prints: what is to be shown is returned as text, and the command
//! prints it.

// For programs that run one prompt, or look at what was run.
pub mod print;
pub mod transcripts;

// What only the command needs.
#[cfg(feature = "cli")]
pub mod bench;
#[cfg(feature = "cli")]
pub mod conformance;
#[cfg(feature = "cli")]
pub mod demo;
#[cfg(feature = "cli")]
pub mod demo_load;
#[cfg(feature = "cli")]
pub mod demo_view;
#[cfg(feature = "cli")]
pub mod print_view;
#[cfg(feature = "cli")]
pub mod simulate;
