//! The order in which a session takes its runs.

use std::collections::VecDeque;

use crate::ids::RunId;

/// How early a run is taken: before all with a higher rank, and after those with the same that came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunRank {
    /// It goes on with the run that was under way.
    Continuation,
    /// It steers or interrupts the run under way.
    Urgent,
    /// It waits for its turn.
    Patient,
}

/// The runs of a session that wait, and the one under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQueue {
    waiting: VecDeque<(RunId, RunRank)>,
    running: Option<RunId>,
}

impl RunQueue {
    /// Returns the queue of runs in the order in which they were accepted, as after a restart.
    pub fn restore(accepted: Vec<(RunId, RunRank)>, running: Option<RunId>) -> Self {
        let mut waiting = accepted;
        waiting.sort_by_key(|it| it.1);
        Self { waiting: waiting.into(), running }
    }

    /// Queues a run, and returns the number of runs before it, the one under way included.
    pub fn accept(&mut self, id: RunId, rank: RunRank) -> usize {
        // A continuation is the first of all: the one before it has ended by its being there.
        let index = match rank {
            RunRank::Continuation => 0,
            _ => self.waiting.iter().take_while(|it| it.1 <= rank).count(),
        };
        self.waiting.insert(index, (id, rank));
        index + usize::from(self.running.is_some())
    }

    /// Returns the run to be taken next; `None` while one is under way.
    pub fn next(&self) -> Option<&RunId> {
        self.waiting.front().map(|it| &it.0).filter(|_| self.running.is_none())
    }

    /// Takes note that a run is under way.
    pub fn begin(&mut self, id: &RunId) {
        self.waiting.retain(|it| it.0 != *id);
        self.running = Some(id.clone());
    }

    /// Puts a run that cannot run yet before all others. It keeps its rank, so an urgent run that comes later
    /// is taken before a patient one that was put back.
    pub fn put_back(&mut self, id: RunId, rank: RunRank) {
        self.end(&id);
        self.waiting.push_front((id, rank));
    }

    /// Takes out a run that has ended, whether it was under way or waited.
    pub fn end(&mut self, id: &RunId) {
        if self.running.as_ref() == Some(id) {
            self.running = None;
        }
        self.waiting.retain(|it| it.0 != *id);
    }

    /// Returns the run under way.
    pub fn running(&self) -> Option<&RunId> {
        self.running.as_ref()
    }

    /// Returns how many runs wait.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether no run waits and none is active.
    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    /// Returns the active run and then those that wait, in order.
    pub fn open(&self) -> impl Iterator<Item = &RunId> {
        self.running.iter().chain(self.waiting.iter().map(|it| &it.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(queue: &RunQueue) -> String {
        queue.open().map(RunId::as_str).collect::<Vec<_>>().join(" ")
    }

    // REQ: INP-2
    #[test]
    fn urgent_runs_are_taken_before_patient_ones_and_after_those_that_were_as_urgent_earlier() {
        let mut queue = RunQueue::default();
        assert_eq!(queue.accept("first".into(), RunRank::Patient), 0);
        queue.begin(&"first".into());
        assert_eq!(queue.accept("last".into(), RunRank::Patient), 1);
        assert_eq!(queue.accept("steers".into(), RunRank::Urgent), 1);
        assert_eq!(queue.accept("interrupts".into(), RunRank::Urgent), 2);
        assert_eq!(queue.next(), None, "one is under way");
        assert_eq!(open(&queue), "first steers interrupts last");
        queue.end(&"first".into());
        queue.accept("goes-on".into(), RunRank::Continuation);
        assert_eq!(queue.next(), Some(&"goes-on".into()));
        assert_eq!(open(&queue), "goes-on steers interrupts last");
        queue.begin(&"goes-on".into());
        queue.put_back("goes-on".into(), RunRank::Continuation);
        assert_eq!(open(&queue), "goes-on steers interrupts last");
        queue.end(&"steers".into());
        assert_eq!((open(&queue).as_str(), queue.n_waiting()), ("goes-on interrupts last", 3));
    }

    // REQ: RUN-9
    #[test]
    fn order_is_the_same_after_a_restart() {
        let accepted = [("last", RunRank::Patient), ("urgent", RunRank::Urgent)];
        let mut queue = RunQueue::default();
        for (id, rank) in accepted {
            queue.accept(id.into(), rank);
        }
        let again = RunQueue::restore(accepted.map(|(id, rank)| (id.into(), rank)).into(), None);
        assert_eq!(again, queue);
        assert_eq!(open(&again), "urgent last");
        assert!(!again.is_idle() && RunQueue::default().is_idle());
    }
}
