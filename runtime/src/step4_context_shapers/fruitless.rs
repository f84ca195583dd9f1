//! Ends a run that compacts again and again and gets nowhere.
//!
//! The count runs over the turns of a run. A compaction that fails, frees
//! nothing or leaves the context under pressure was fruitless; three in a row are enough. Where the
//! context fits the window, nothing has to end: the next one waits until the conversation has grown by
//! half.

use crate::tokens::Tokens;

/// Fruitless compactions in a row after which the run ends.
pub(crate) const MAX_FRUITLESS: usize = 3;

/// Counts compactions. One per run, which begins without a count; how long the next one waits holds for the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionWatch {
    fruitless: Vec<FruitlessCompaction>,
    pause: usize,
    /// The pause as far as it holds for later runs.
    lasting: usize,
}

/// One compaction that did not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FruitlessCompaction {
    /// Estimated tokens before the compaction.
    pub before: Tokens,
    /// Estimated tokens after the compaction.
    pub after: Tokens,
    /// The result of the stage or the model call.
    pub why: String,
}

impl CompactionWatch {
    /// Notes a compaction, failed ones included (`after` is `before` then). Returns the text that the run ends with
    /// when it was the third fruitless one in a row.
    pub fn note(
        &mut self,
        before: Tokens,
        after: Tokens,
        is_still_under_pressure: bool,
        why: &str,
    ) -> Option<String> {
        if after < before && !is_still_under_pressure {
            *self = Self::default();
            return None;
        }
        self.fruitless.push(FruitlessCompaction { before, after, why: why.into() });
        (MAX_FRUITLESS <= self.fruitless.len()).then(|| self.evidence())
    }

    /// Notes a compaction that did not help where the context fits. The next one for the same reason waits until there
    /// are half as many messages again.
    /// With `lasts` that holds for later runs, too.
    pub fn wait(&mut self, n_messages: usize, lasts: bool) {
        self.fruitless.clear();
        self.pause = n_messages.saturating_add(n_messages.div_ceil(2));
        if lasts {
            self.lasting = self.pause;
        }
    }

    /// Returns the watch of the run that follows.
    pub(crate) fn for_next_run(&self) -> Self {
        Self::waiting(self.lasting)
    }

    /// Makes a watch that has counted nothing and waits until there are this many messages; 0 means that it does not wait.
    pub(crate) fn waiting(pause: usize) -> Self {
        Self { fruitless: Vec::new(), pause, lasting: pause }
    }

    /// Returns the pause as far as it holds for later runs; 0 when none does.
    pub(crate) fn lasting_pause(&self) -> usize {
        self.lasting
    }

    /// Returns the number of messages from which on there is a compaction again; 0 when none waits.
    pub fn pause(&self) -> usize {
        self.pause
    }

    /// Has the next compaction wait for nothing.
    pub(crate) fn stop_waiting(&mut self) {
        (self.pause, self.lasting) = (0, 0);
    }

    /// Notes that something else made the context fit: the count begins anew. Where compactions had not helped before,
    /// the next one waits until there are half as many messages again as `n_messages`; with `None` it does not.
    pub(crate) fn note_fit(&mut self, n_messages: Option<usize>) {
        match n_messages.filter(|_| !self.fruitless.is_empty()) {
            Some(n_messages) => self.wait(n_messages, true),
            None => self.fruitless.clear(),
        }
    }

    fn evidence(&self) -> String {
        let lines = self
            .fruitless
            .iter()
            .map(|it| format!("{} tokens before, {} after: {}", it.before.0, it.after.0, it.why));
        let lines: Vec<_> = lines.collect();
        format!(
            "the context does not fit and {} compactions in a row did not help ({}); the newest \
             messages alone may be too large",
            lines.len(),
            lines.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the place of the compaction that ends the run. `(before, after, pressure)` each.
    #[track_caller]
    fn check(compactions: &[(u64, u64, bool)], end: Option<usize>) {
        let mut watch = CompactionWatch::default();
        let found = compactions.iter().position(|(before, after, pressure)| {
            match watch.note(Tokens(*before), Tokens(*after), *pressure, "said so") {
                Some(text) => {
                    assert!(text.contains("said so") && text.contains(&before.to_string()));
                    true
                }
                None => false,
            }
        });
        assert_eq!(found, end);
    }

    // REQ: SHP-13
    #[test]
    fn three_fruitless_compactions_in_a_row_end_the_run_with_evidence() {
        check(&[(100, 100, true); 2], None);
        check(&[(100, 100, true); 3], Some(2));
        check(&[(100, 90, true), (100, 100, false), (100, 100, true)], Some(2));
    }

    // REQ: SHP-13
    #[test]
    fn wait_for_a_reason_of_the_run_leaves_the_one_that_lasts() {
        let mut watch = CompactionWatch::default();
        watch.wait(100, true);
        watch.wait(200, false);
        assert_eq!((watch.pause(), watch.lasting_pause()), (300, 150));
        assert_eq!(watch.for_next_run(), CompactionWatch::waiting(150));
        watch.stop_waiting();
        assert_eq!(watch, CompactionWatch::default());
    }

    // REQ: SHP-13
    #[test]
    fn one_that_helps_begins_the_count_anew() {
        let (bad, good) = ((100, 100, true), (100, 10, false));
        check(&[bad, bad, good, bad, bad], None);
        check(&[bad, bad, good, bad, bad, bad], Some(5));
    }
}
