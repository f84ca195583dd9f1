//! What the command `ennead` shows and runs in addition to the library: prompts for scripts, the
//! demonstration, the simulated model as a server, the benchmark, and the case files.
//!
//! Nothing here holds a rule or prints: what is to be shown is returned as text, and the binary prints
//! it. An embedder needs none of it.

pub mod ask;
pub mod bench;
pub mod conformance;
pub mod demo;
pub mod demo_load;
pub mod demo_serve;
pub mod demo_view;
pub mod evaluation;
pub mod exit;
pub mod history;
pub mod print;
pub mod print_view;
pub mod recorded_page;
pub mod shared_host;
pub mod signals;
pub mod simulate;
pub mod stream_json;
pub mod token_counts;
pub mod unread;
