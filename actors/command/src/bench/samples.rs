//! Figures of samples: the middle one, and how a duration is written.

use std::time::Duration;

use serde::Serializer;

/// Returns the middle one; of an even number, the higher of the two; zero if there is none.
pub(super) fn median(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// Writes microseconds with their fractions.
pub(super) fn as_us<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_nanos() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_any_order() {
        let us = Duration::from_micros;
        assert_eq!(median(&mut [us(9), us(1), us(5)]), us(5));
        assert_eq!(median(&mut [us(4), us(1)]), us(4));
        assert_eq!(median(&mut []), us(0));
    }
}
