//! A frame around what is kept in binary form next to a transcript: magic, format version, type, type version,
//! length, digest, payload. Whatever does not fit exactly has no payload.
//!
//! The only place that knows bincode.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use ennead_runtime::digest::Digest;

const MAGIC: &[u8; 4] = b"ennd";
const FORMAT: u8 = 1;
/// Bytes in front of the payload.
const HEADER: usize = 4 + 3 + 4 + 16;

/// What is in a frame: its type, and the version of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameKind {
    pub(crate) kind: u8,
    pub(crate) version: u8,
}

impl FrameKind {
    fn bytes(self) -> [u8; 3] {
        [FORMAT, self.kind, self.version]
    }

    /// Returns a value in its frame; `None` if it cannot be encoded.
    pub(crate) fn encode(self, value: impl bincode::Encode) -> Option<Vec<u8>> {
        let payload = bincode::encode_to_vec(value, bincode::config::legacy()).ok()?;
        let mut frame = Vec::with_capacity(HEADER + payload.len());
        frame.extend_from_slice(MAGIC);
        frame.extend_from_slice(&self.bytes());
        frame.extend_from_slice(&u32::try_from(payload.len()).ok()?.to_le_bytes());
        frame.extend_from_slice(&Digest::of(&payload).0);
        frame.extend_from_slice(&payload);
        Some(frame)
    }

    /// Returns what is in a frame, if it is whole and of this kind. Decoding allocates `LIMIT` bytes at most.
    pub(crate) fn decode<T: bincode::Decode<()>, const LIMIT: usize>(
        self,
        frame: &[u8],
    ) -> Option<T> {
        let (header, payload) = frame.split_at_checked(HEADER)?;
        let (magic, header) = header.split_at(4);
        let (versions, header) = header.split_at(3);
        let (length, digest) = header.split_at(4);
        let fits = magic == MAGIC
            && versions == self.bytes()
            && length == u32::try_from(payload.len()).ok()?.to_le_bytes()
            && digest == Digest::of(payload).0;
        if !fits {
            return None;
        }
        let config: Configuration<LittleEndian, Fixint, Limit<LIMIT>> =
            bincode::config::legacy().with_limit::<LIMIT>();
        let (value, read) = bincode::decode_from_slice(payload, config).ok()?;
        (read == payload.len()).then_some(value)
    }
}
