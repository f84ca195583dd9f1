//! A request as the engine receives it, and what is to be sent in return.

use std::sync::Arc;

use bytes::Bytes;

/// A request as it came over the wire.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// `POST` is the only one that is answered.
    pub method: &'a str,
    /// The path, without a query.
    pub path: &'a str,
    /// Names in lower case.
    pub headers: &'a [(String, String)],
    /// Body of the request, as it arrived.
    pub body: &'a [u8],
}

/// What is to be sent, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Id of the rule that answered; `None` if none did.
    pub rule: Option<Arc<str>>,
    /// How long to wait before the head, in milliseconds.
    pub delay_ms: u64,
    /// Status of the HTTP response.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, in order.
    pub pieces: Vec<Piece>,
    /// What comes after the last piece.
    pub end: End,
    /// It ends so before anything is sent: there is no head, and there are no pieces.
    pub before_head: bool,
}

/// Bytes of a body that are sent at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How long to wait before it, in milliseconds.
    pub delay_ms: u64,
    /// The bytes; may be empty.
    pub bytes: Bytes,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it should, though perhaps too early for what is in it.
    Closed,
    /// The connection is closed in good order, and the body has no end.
    Dropped,
    /// The connection is reset.
    Reset,
    /// Nothing comes any more, and the connection stays open.
    Stall,
}
