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

mod groundwork;
mod storage;

mod faults;
mod sessions;
mod surfaces;

// The rules of the project itself.
mod tidy;
