//! What every actor here is built on: bounded mailboxes, supervised leaves, the directory of live
//! actors, spans, schedulers, the merge of long settings, and the redaction of what leaves a session.

pub(crate) mod directory;
pub(crate) mod mailbox;
pub(crate) mod merging;
pub(crate) mod redaction;
pub(crate) mod scheduler;
pub(crate) mod spans;
pub(crate) mod supervision;
