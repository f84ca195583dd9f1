//! When a limit is filled up again, as headers and messages of providers say it.
//!
//! Both the turn, which waits, and the governor, which holds other calls back, use it.

use crate::time::Timestamp;

/// Numbers from here on are moments, in seconds since 1970; no limit lasts 30 years.
const EPOCH_S: u64 = 1_000_000_000;

/// The same in milliseconds.
const EPOCH_MS: u64 = EPOCH_S * 1_000;

/// Returns how long it is until a moment (RFC 3339, or a number since 1970), or a length of time (`6m0s`, `12ms`,
/// `1.5s`, `30`); in milliseconds.
pub(crate) fn reset_ms(value: &str, now: Timestamp) -> Option<u64> {
    match value.parse::<u64>() {
        Ok(ms) if EPOCH_MS <= ms => Some(Timestamp(ms).millis_since(now)),
        Ok(s) if EPOCH_S <= s => Some(Timestamp(s * 1_000).millis_since(now)),
        _ => length_ms(value).or_else(|| Timestamp::parse(value).map(|it| it.millis_since(now))),
    }
}

/// Reads a length of time, rounded up to milliseconds. A number without a unit is seconds.
pub(crate) fn length_ms(mut text: &str) -> Option<u64> {
    let mut micros: u64 = 0;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let unit_micros: u64 = match unit {
            "d" => 86_400_000_000,
            "h" => 3_600_000_000,
            "m" => 60_000_000,
            "s" | "" => 1_000_000,
            "ms" => 1_000,
            "us" | "µs" => 1,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let fraction = fraction.get(..fraction.len().min(6))?;
        let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let part = fraction.parse::<u64>().ok()?.checked_mul(unit_micros)? / scale;
        let whole = whole.parse::<u64>().ok()?.checked_mul(unit_micros)?;
        micros = micros.checked_add(whole)?.checked_add(part)?;
        text = rest;
    }
    Some(micros.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-10
    #[test]
    fn number_is_a_moment_or_a_length_by_its_size() {
        let now = Timestamp(1_790_000_000_000);
        for (value, ms) in [
            ("30", Some(30_000)),
            ("1.5s", Some(1_500)),
            ("6m0s", Some(360_000)),
            ("1790000004000", Some(4_000)),
            ("1790000004", Some(4_000)),
            ("1780000000", Some(0)),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(reset_ms(value, now), ms, "{value}");
        }
    }
}
