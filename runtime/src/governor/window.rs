//! How many calls may be under way at once, found out as TCP does.
//!
//! Without trouble there is no window. An overload halves what was under way; each success makes
//! room for one more, which doubles the window per round of calls. After a circuit was open it
//! starts small, so that those who waited do not all come at once.

use std::num::NonZeroU32;

/// Calls at once right after the breaker has closed: initial window of TCP's slow start before RFC
/// 6928.
const AFTER_OPEN: u32 = 2;

/// The number of calls that may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConcurrencyWindow {
    configured: Option<NonZeroU32>,
    found: Option<u32>,
    /// Calls admitted before this one were sent under the window before the last cut.
    cut_at: u64,
}

impl ConcurrencyWindow {
    /// Makes a window. `configured` is the most calls that are ever in flight at once, if there is such a number.
    pub(crate) fn new(configured: Option<NonZeroU32>) -> Self {
        Self { configured, found: None, cut_at: 0 }
    }

    /// Returns how many calls may be in flight; `None` is any number.
    pub(crate) fn slots(&self) -> Option<u32> {
        let configured = self.configured.map(NonZeroU32::get);
        [configured, self.found].into_iter().flatten().min()
    }

    /// Grows the window by one, after a call that was answered.
    pub(crate) fn grow(&mut self) {
        if let Some(found) = &mut self.found {
            *found = found.saturating_add(1);
        }
    }

    /// Halves the window, after the call that was admitted as number `admission` met an overload, with this many in
    /// flight. Calls of one burst count once; `n_admitted` is the number of the next one.
    pub(crate) fn shrink(&mut self, admission: u64, in_flight: u32, n_admitted: u64) {
        if admission < self.cut_at {
            return;
        }
        let under_way = self.found.map_or(in_flight, |it| it.min(in_flight));
        self.found = Some((under_way / 2).max(1));
        self.cut_at = n_admitted;
    }

    /// Sets the window small, after the breaker has closed.
    pub(crate) fn start_small(&mut self) {
        self.found = Some(AFTER_OPEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-13
    #[test]
    fn one_burst_halves_once_and_each_success_makes_room() {
        let mut window = ConcurrencyWindow::new(None);
        assert_eq!(window.slots(), None);
        for admission in 0..100 {
            window.shrink(admission, 100, 100);
        }
        assert_eq!(window.slots(), Some(50));
        for _ in 0..50 {
            window.grow();
        }
        assert_eq!(window.slots(), Some(100));
        window.shrink(100, 8, 120);
        assert_eq!(window.slots(), Some(4));
        window.shrink(120, 1, 121);
        assert_eq!(window.slots(), Some(1));
    }

    #[test]
    fn what_is_configured_is_never_passed() {
        let mut window = ConcurrencyWindow::new(NonZeroU32::new(3));
        assert_eq!(window.slots(), Some(3));
        window.start_small();
        assert_eq!(window.slots(), Some(2));
        for _ in 0..10 {
            window.grow();
        }
        assert_eq!(window.slots(), Some(3));
    }
}
