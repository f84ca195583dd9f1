//! A reading of the wall clock. Readings are inputs; nothing in this crate takes one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z. On the wire of harness records a number; as text
/// (`Display`) RFC 3339 in UTC with milliseconds, the form of conversation lines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Milliseconds from `earlier` to this reading, 0 if the clock went backwards.
    pub fn millis_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads what `Display` writes, and any other RFC 3339 text.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(parsed.as_millisecond()).ok().map(Self)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        let shown = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{shown:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_has_milliseconds_and_reads_back() {
        let reading = Timestamp(1_790_000_000_007);
        assert_eq!(reading.to_string(), "2026-09-21T14:13:20.007Z");
        assert_eq!(Timestamp::parse("2026-09-21T14:13:20.007Z"), Some(reading));
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
