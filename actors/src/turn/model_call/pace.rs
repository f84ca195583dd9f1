//! When the parts of an answer came: how long for the first, and the longest wait for another.

/// The times of one attempt, in milliseconds since it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    first: Option<u64>,
    last: u64,
    longest_gap: Option<u64>,
}

impl Pace {
    /// Notes that a part has come that can be shown.
    pub(super) fn part(&mut self, at_ms: u64) {
        match self.first {
            None => self.first = Some(at_ms),
            Some(_) => {
                self.longest_gap = self.longest_gap.max(Some(at_ms.saturating_sub(self.last)))
            }
        }
        self.last = at_ms;
    }

    /// Returns the milliseconds until the first part came.
    pub(super) fn first_ms(self) -> Option<u64> {
        self.first
    }

    /// Returns the longest time between two parts, in milliseconds; `None` where fewer than two came.
    pub(super) fn longest_gap_ms(self) -> Option<u64> {
        self.longest_gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-6
    #[test]
    fn first_part_and_longest_gap_are_kept() {
        let mut pace = Pace::default();
        assert_eq!((pace.first_ms(), pace.longest_gap_ms()), (None, None));
        pace.part(30);
        assert_eq!((pace.first_ms(), pace.longest_gap_ms()), (Some(30), None));
        for at_ms in [31, 90, 95] {
            pace.part(at_ms);
        }
        assert_eq!((pace.first_ms(), pace.longest_gap_ms()), (Some(30), Some(59)));
    }
}
