//! How the bytes of an answer arrive: in which pieces, and after which waits.

use bytes::Bytes;
use serde::Deserialize;

use super::{script::Piece, wire};

/// Pieces a body may be cut into.
const MAX_PIECES: usize = 1 << 20;

/// How the bytes arrive, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pace {
    /// Before the head of the answer, in milliseconds.
    #[serde(default)]
    pub(super) head_ms: u64,
    /// Before the first byte of the body.
    #[serde(default)]
    pub(super) first_ms: u64,
    /// Before every further piece.
    #[serde(default)]
    pub(super) between_ms: u64,
    /// Sizes of the pieces in bytes, over and over. Empty: by event when there is a delay between
    /// them, otherwise all at once.
    #[serde(default)]
    pub(super) cut: Vec<usize>,
}

impl Pace {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.cut.contains(&0) {
            Err("pace.cut: sizes must be at least 1".to_owned())
        } else {
            Ok(())
        }
    }

    /// Cuts a body into pieces with their delays.
    pub(super) fn pieces(&self, body: wire::Bytes) -> Vec<Piece> {
        let bytes = Bytes::from(body.bytes);
        let mut ends: Vec<usize> = match self.cut.as_slice() {
            [] if self.between_ms > 0 => body.event_ends,
            [] => Vec::new(),
            sizes => {
                let mut at = 0_usize;
                let end = sizes.iter().cycle().map(|size| {
                    at = at.saturating_add(*size);
                    at
                });
                end.take_while(|end| *end < bytes.len()).take(MAX_PIECES).collect()
            }
        };
        ends.retain(|end| *end < bytes.len());
        ends.push(bytes.len());
        let mut from = 0;
        let mut pieces = Vec::with_capacity(ends.len());
        for end in ends {
            let delay_ms = if from == 0 { self.first_ms } else { self.between_ms };
            if from < end || delay_ms > 0 {
                pieces.push(Piece { delay_ms, bytes: bytes.slice(from..end) });
            }
            from = end;
        }
        pieces
    }
}
