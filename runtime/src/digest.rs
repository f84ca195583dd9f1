//! The one hash of the project: BLAKE3, cut to 128 bits.
//!
//! It finds accidents and careless edits. It is not a signature: the one that can write the file can
//! compute the chain anew.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The two hexadecimal digits of each byte.
pub(crate) const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut hex = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        hex[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    hex
};

/// The first 16 bytes of a BLAKE3 hash; 32 hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::cut(&blake3::hash(bytes))
    }

    /// Returns the digest of these bytes one after the other. They are joined first, since only what lies in one piece
    /// is hashed several KiB at a time.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        Self::of(&parts.concat())
    }

    /// Returns the digest of a sequence that `next` is added to. With the digest of the first part known, a long
    /// sequence is extended without being read again.
    pub fn chain(self, next: Digest) -> Self {
        let mut both = [0; 32];
        both[..16].copy_from_slice(&self.0);
        both[16..].copy_from_slice(&next.0);
        Self::of(&both)
    }

    /// Returns the first eight bytes as a number; for draws that are made once per named thing.
    pub(crate) fn low(self) -> u64 {
        let mut low = [0; 8];
        low.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(low)
    }

    fn cut(hash: &blake3::Hash) -> Self {
        let mut cut = [0; 16];
        cut.copy_from_slice(&hash.as_bytes()[..16]);
        Self(cut)
    }

    /// Appends the 32 digits to `out` without formatting machinery; for the writing of lines.
    pub(crate) fn push_hex(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.hex());
    }

    fn hex(self) -> [u8; 32] {
        let mut hex = [0; 32];
        for (digits, byte) in hex.as_chunks_mut().0.iter_mut().zip(self.0) {
            *digits = HEX[usize::from(byte)];
        }
        hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The text is not 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 32 hexadecimal digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotADigest);
        }
        let mut bytes = [0; 16];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back_and_bad_text_is_refused() {
        let digest = Digest::of(b"x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!("zz".parse::<Digest>(), Err(NotADigest));
        assert_eq!("é".repeat(16).parse::<Digest>(), Err(NotADigest));
    }
}
