//! Transcripts and checkpoints on disk: who writes them, where to, and how they are looked at later.

pub(crate) mod archive;
pub(crate) mod checkpoint;
pub(crate) mod transcript_store;
pub(crate) mod transcript_writer;
pub(crate) mod transcripts;
