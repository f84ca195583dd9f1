//! The transcript on disk.

mod transcript_store;
mod transcript_writer;
