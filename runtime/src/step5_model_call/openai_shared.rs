//! What the two formats of OpenAI have in common: how a stream is driven, how the arguments of a
//! call come together, how an error reads, and the pieces that requests are made of.
//!
//! The formats themselves hold only what differs: their events and the shape of their messages.

pub(super) mod call;
pub(super) mod encode;
pub(super) mod failure;
pub(crate) mod forms;
pub(super) mod reader;

#[cfg(test)]
mod cases;
