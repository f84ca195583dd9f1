//! When a server that is gone is started again.
//!
//! Pauses double from a second on. A server that ran for a while has shown that it works, so its
//! next end is the first again; one that ends at once each time is given up until somebody wants it.

use std::time::Duration;

/// The pause before the first attempt.
const FIRST: Duration = Duration::from_secs(1);

/// Attempts in a row: 5, with pauses that double from 1 s.
const MAX_ATTEMPTS: u32 = 5;

/// Pauses between the first attempts to reach a server over the network, of which there are three.
pub const FIRST_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// A server that ran for this long has shown that it works.
const PROVEN: Duration = Duration::from_secs(60);

/// What is remembered of a server's ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restarts {
    /// Ends in a row, none of which came after a good while.
    n_ends: u32,
}

impl Restarts {
    /// Notes that the server has ended after it ran for `time`. Returns the pause before it is started again; `None`:
    /// no further start is tried.
    pub fn note_end(&mut self, time: Duration) -> Option<Duration> {
        if PROVEN <= time {
            self.n_ends = 0;
        }
        self.n_ends = self.n_ends.saturating_add(1);
        (self.n_ends <= MAX_ATTEMPTS).then(|| FIRST * 2_u32.pow(self.n_ends - 1))
    }

    /// Forgets earlier ends, since the server is wanted again.
    pub fn forget(&mut self) {
        self.n_ends = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_five_times_and_then_it_is_given_up() {
        let mut restarts = Restarts::default();
        let pauses: Vec<_> = (0..7).map(|_| restarts.note_end(Duration::ZERO)).collect();
        let seconds = [1, 2, 4, 8, 16].map(|it| Some(Duration::from_secs(it)));
        assert_eq!(pauses, [&seconds[..], &[None, None]].concat());
        restarts.forget();
        assert_eq!(restarts.note_end(Duration::ZERO), Some(FIRST));
    }

    #[test]
    fn server_that_stood_for_a_minute_has_shown_that_it_works() {
        let mut restarts = Restarts::default();
        for _ in 0..9 {
            assert_eq!(restarts.note_end(PROVEN), Some(FIRST));
        }
        assert_eq!(restarts.note_end(PROVEN - Duration::from_millis(1)), Some(FIRST * 2));
    }
}
