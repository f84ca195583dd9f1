//! The transcript: settled records in whole lines, only ever appended.
//!
//! Conversation lines have the field names of the format that existing readers know; harness
//! records are one shape of their own next to them. Encoding and reading are here; files are not.

pub mod entry;

// Writing and reading one line.
pub(crate) mod codec;
pub mod read;
pub mod seal;

// Reading a whole file: to go on with it, to check it, to look at it.
pub mod audit;
pub mod lines;
pub mod load;
pub mod replay;
pub mod restore;
pub mod trace;
pub mod turn_record;
