//! Sets of bytes.

/// A set of ASCII bytes, and whether the bytes of other characters belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteClass {
    ascii: u128,
    has_others: bool,
}

impl ByteClass {
    /// Makes the class of these bytes; `a-z` as the three bytes `a`, `-`, `z` in `ranges`, one range after the other.
    pub(super) const fn new(ranges: &[u8], singles: &[u8]) -> Self {
        let mut ascii = 0_u128;
        let mut at = 0;
        while at + 2 < ranges.len() {
            let mut byte = ranges[at];
            while byte <= ranges[at + 2] {
                ascii |= 1 << byte;
                byte += 1;
            }
            at += 3;
        }
        at = 0;
        while at < singles.len() {
            ascii |= 1 << singles[at];
            at += 1;
        }
        Self { ascii, has_others: false }
    }

    /// Adds the bytes of all characters that are not ASCII.
    pub(super) const fn and_others(self) -> Self {
        Self { has_others: true, ..self }
    }

    /// Returns whether the byte belongs to it.
    pub(super) const fn has(self, byte: u8) -> bool {
        if byte < 128 { self.ascii >> byte & 1 == 1 } else { self.has_others }
    }
}
