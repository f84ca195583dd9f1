//! Transcripts and checkpoints: who writes them, without which secrets, and how they are looked at later.

pub(crate) mod archive;
pub(crate) mod checkpoint;
pub(crate) mod frame;
pub(crate) mod redaction;
pub(crate) mod transcript_index;
pub(crate) mod transcript_writer;
pub(crate) mod transcripts;
pub(crate) mod vault;
