//! What every actor here is built on: bounded mailboxes, supervised leaves, the directory of live
//! actors, private files, spans, schedulers, and the merge of long settings.

pub(crate) mod directory;
pub(crate) mod files;
pub(crate) mod mailbox;
pub(crate) mod merging;
pub(crate) mod scheduler;
pub(crate) mod spans;
pub(crate) mod supervision;
