//! The way to a writer: all that a session knows of one.

use ractor::ActorRef;

use crate::storage::transcript_writer::{Append, WriterMsg};

/// Sends lines to a writer.
#[derive(Clone, Debug)]
pub struct WriterHandle(ActorRef<WriterMsg>);

/// The writer has ended. If it crashed, [`super::OpenOutcome::Restarted`] follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the writer has ended")]
pub struct WriterGone;

impl WriterHandle {
    pub(crate) fn new(writer: ActorRef<WriterMsg>) -> Self {
        Self(writer)
    }

    /// Sends lines. The answer comes through [`Append::reply`].
    ///
    /// # Errors
    ///
    /// [`WriterGone`], when nothing was sent.
    pub fn append(&self, append: Append) -> Result<(), WriterGone> {
        self.0.cast(WriterMsg::Append(append)).map_err(|_| WriterGone)
    }
}
