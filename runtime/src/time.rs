//! A reading of the wall clock. Readings are inputs; nothing in this crate takes one.

use std::fmt;

use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Serialize};

use crate::saturating::Saturating as _;

/// Milliseconds since 1970-01-01T00:00:00Z. On the wire of harness records a number; as text
/// (`Display`) RFC 3339 in UTC with milliseconds, the form of conversation lines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Counts the milliseconds from `earlier` to this reading, 0 if the clock went backwards.
    pub fn millis_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads what `Display` writes, and any other RFC 3339 text.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(parsed.as_millisecond()).ok().map(Self)
    }

    /// Appends what `Display` writes, without formatting machinery; for the writing of lines.
    pub(crate) fn push(self, out: &mut Vec<u8>) {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        // Writing to a vector does not fail.
        let _written = PRINTER.print_timestamp(&self.to_jiff(), out);
    }

    /// Returns the day in UTC, as `2026-09-21`.
    pub(crate) fn day(self) -> String {
        jiff::tz::Offset::UTC.to_datetime(self.to_jiff()).date().to_string()
    }

    fn to_jiff(self) -> jiff::Timestamp {
        let millis = i64::saturating(self.0);
        jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
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
        for reading in [reading, Timestamp(0), Timestamp(u64::MAX)] {
            let mut pushed = Vec::new();
            reading.push(&mut pushed);
            assert_eq!(String::from_utf8(pushed).unwrap(), reading.to_string());
        }
    }
}
