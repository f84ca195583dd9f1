//! Randomness that is handed down, never shared.
//!
//! A [`EntropyStream`] is a key. A session's stream is keyed by the seed of the process and the session
//! id, a child's by the stream of its parent and the tool use that asked for it, and a draw by the
//! stream and a label that names its purpose. So a draw depends on what it is for and not on how
//! many others were made before, and a session run twice with one seed gives the same ids.

use crate::{digest::HEX, ids::EntryId, time::Timestamp};

/// A source of draws. Copies draw the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntropyStream([u8; 32]);

impl EntropyStream {
    /// Returns the root stream of a process.
    pub fn from_seed(seed: u64) -> Self {
        Self(*blake3::hash(&seed.to_le_bytes()).as_bytes())
    }

    /// Returns the key as 64 hexadecimal digits, for the record of a run.
    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().as_str().to_owned()
    }

    /// Reads what [`EntropyStream::to_hex`] writes; `None` when it is something else.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(*hash.as_bytes()))
    }

    /// Returns the stream of something that has a name below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(*blake3::keyed_hash(&self.0, name.as_bytes()).as_bytes())
    }

    /// Draws 128 bits for the purpose that `label` names, the `n`th of their kind.
    pub fn draw(&self, label: &str, n: u64) -> u128 {
        let purpose = [label.as_bytes(), &[0], &n.to_le_bytes()].concat();
        let hash = blake3::keyed_hash(&self.0, &purpose);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        u128::from_le_bytes(bytes)
    }

    /// Makes a UUID of version 7 from a clock reading and a draw. These sort by time.
    pub fn uuid(&self, at: Timestamp, label: &str, n: u64) -> String {
        text(&self.uuid_digits(at, label, n)).to_owned()
    }

    /// Returns the id of a conversation line.
    pub(crate) fn entry_id(&self, at: Timestamp, label: &str, n: u64) -> EntryId {
        text(&self.uuid_digits(at, label, n)).into()
    }

    fn uuid_digits(&self, at: Timestamp, label: &str, n: u64) -> [u8; 36] {
        let draw = self.draw(label, n);
        let value = (u128::from(at.0) << 80)
            | (0x7 << 76)
            | ((draw >> 64 & 0xfff) << 64)
            | (0b10 << 62)
            | (draw & 0x3fff_ffff_ffff_ffff);
        // By hand, since every line has one and formatting it takes several times as long.
        let mut digits = [b'-'; 36];
        let mut at = 0;
        for (i, byte) in value.to_be_bytes().into_iter().enumerate() {
            at += usize::from(matches!(i, 4 | 6 | 8 | 10));
            [digits[at], digits[at + 1]] = HEX[usize::from(byte)];
            at += 2;
        }
        digits
    }
}

fn text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_purpose_and_not_on_order() {
        let stream = EntropyStream::from_seed(7).child("session");
        let first = stream.draw("jitter", 0);
        assert_ne!(first, stream.draw("jitter", 1));
        assert_ne!(first, stream.draw("entry", 0));
        assert_eq!(first, EntropyStream::from_seed(7).child("session").draw("jitter", 0));
    }

    #[test]
    fn key_reads_back_and_bad_text_is_refused() {
        let stream = EntropyStream::from_seed(7);
        assert_eq!(EntropyStream::from_hex(&stream.to_hex()), Some(stream));
        for bad in ["", &"é".repeat(32), &"0".repeat(63), &"g".repeat(64)] {
            assert_eq!(EntropyStream::from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn uuid_has_version_variant_and_time() {
        let uuid = EntropyStream::from_seed(1).uuid(Timestamp(0x0123_4567_89ab), "entry", 0);
        assert!(uuid.starts_with("01234567-89ab-7"), "{uuid}");
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
        assert_eq!(uuid.len(), 36);
        let n_digits: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(n_digits, [8, 4, 4, 4, 12]);
        assert!(uuid.chars().all(|it| matches!(it, '-' | '0'..='9' | 'a'..='f')), "{uuid}");
    }
}
