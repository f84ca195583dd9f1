//! The wire format of Chat Completions, which most compatible and local servers speak.
//!
//! Stateless, like the Messages API, with a smaller language: a message is a text and calls, a
//! result of a tool is a message of its own, and reasoning never goes back. What servers make of
//! the format differs, so the reader decides by what is there and not by what is documented about it.

mod request;
mod stream;
mod whole;
mod wire;

pub(super) use self::request::form;
pub(crate) use self::stream::Chat;
pub use self::whole::read_whole;
