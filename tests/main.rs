//! Drives ennead from the outside, as an embedder would. One binary, so it links once.
//!
//! This file is the table of contents. What one crate owes by itself is tested in that crate; here
//! is what several of them owe together, what a dependency owes us, and what the project owes
//! its readers.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up should stop")]
#![allow(clippy::expect_used, reason = "a test that cannot be set up should stop")]
#![allow(clippy::panic, reason = "a panic is how a test fails")]
#![allow(clippy::disallowed_methods, reason = "a test is the root of its own small tree")]

mod support;

// What we rely on in ractor, and what we add to it.
mod bounded_mailbox;
mod ractor_facts;

// The transcript on disk.
mod transcript_store;
mod transcript_writer;

// Sessions under faults.
mod backpressure;
mod bounds;
mod crash_rows;
mod damage;
mod failing_disk;
mod hostile_answers;
mod interrupts;
mod kill_matrix;
mod lifecycle;
mod mutated_histories;
mod stream_cuts;
mod watchdogs;

// Sessions from the outside.
mod appended;
mod approvals;
mod context;
mod determinism;
mod fallback;
mod gate;
mod gate_fuzz;
mod governor;
mod hooks;
mod learned_limits;
mod library;
mod limits;
mod mcp;
mod older_forms;
mod openai;
mod output;
mod overflow;
mod own_transcript;
mod recovery;
mod redaction;
mod resume;
mod run_request;
mod serve;
mod session_replay;
mod shell_differential;
mod shells;
mod sources;
mod spans;
mod sub_agents;
mod tls;

// What people see of it.
mod command;
mod demo;

// The rules of the project itself.
mod tidy;
