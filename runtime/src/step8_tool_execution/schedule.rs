//! Which calls of an answer run now, and which wait.
//!
//! The order is decided here; executors run the calls. Calls
//! are known by their place in the request; results go back in that order whatever order the calls
//! end in.

use std::{collections::BTreeMap, ops::Range};

use crate::{ids::ToolName, saturating::Saturating as _, tool::Concurrency};

/// A call as far as scheduling is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// The tool; calls of one tool share its limit.
    pub tool: ToolName,
    /// What else may run at the same time.
    pub concurrency: Concurrency,
}

/// Cuts calls, in request order, into groups: neighbours that may run together are one group, any
/// other call is a group by itself. How many of a group run at once is [`Schedule`]'s part.
pub(crate) fn groups(calls: &[Scheduled]) -> Vec<Range<usize>> {
    let together = |it: &Scheduled| matches!(it.concurrency, Concurrency::Together { .. });
    let mut start = 0;
    calls
        .chunk_by(|left, right| together(left) && together(right))
        .map(|group| {
            let range = start..start + group.len();
            start = range.end;
            range
        })
        .collect()
}

/// Says which calls may start, as others end. Each call is started once.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    calls: Vec<ScheduledCall>,
    /// What is left of them, the one that is under way last.
    groups: Vec<Range<usize>>,
    max_parallel: usize,
}

#[derive(Clone, Debug)]
struct ScheduledCall {
    call: Scheduled,
    state: CallPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPhase {
    Waiting,
    Running,
    Ended,
}

impl Schedule {
    /// Makes a schedule with nothing started. `max_parallel` is the number of calls of a turn that run at once (10 by
    /// default); 0 counts as 1, and so does a tool's own limit of 0.
    pub(crate) fn new(calls: &[Scheduled], max_parallel: u32) -> Self {
        let mut groups = groups(calls);
        groups.reverse();
        Self {
            calls: calls
                .iter()
                .map(|call| ScheduledCall { call: call.clone(), state: CallPhase::Waiting })
                .collect(),
            groups,
            max_parallel: at_least_one(max_parallel),
        }
    }

    /// Returns the calls that may start now, in request order; from now on they count as running.
    ///
    /// A call whose tool is at its limit does not hold up its neighbours.
    pub(crate) fn start_next(&mut self) -> Vec<usize> {
        while let Some(group) = self.groups.last() {
            if self.calls[group.clone()].iter().any(|it| it.state != CallPhase::Ended) {
                return self.start_in(group.clone());
            }
            self.groups.pop();
        }
        Vec::new()
    }

    /// Notes that a call has ended, and returns the calls that may start now. A call that is not running is ignored, so
    /// a late or repeated report starts nothing twice.
    pub(crate) fn finished(&mut self, index: usize) -> Vec<usize> {
        match self.calls.get_mut(index) {
            Some(call) if call.state == CallPhase::Running => call.state = CallPhase::Ended,
            _ => return Vec::new(),
        }
        self.start_next()
    }

    /// Returns whether every call has ended.
    #[cfg(test)]
    pub(crate) fn is_done(&self) -> bool {
        self.calls.iter().all(|it| it.state == CallPhase::Ended)
    }

    /// Returns the calls that have been started and have not ended, in request order.
    pub(crate) fn running(&self) -> impl Iterator<Item = usize> {
        let running = |(_, it): &(usize, &ScheduledCall)| it.state == CallPhase::Running;
        self.calls.iter().enumerate().filter(running).map(|(i, _)| i)
    }

    fn start_in(&mut self, group: Range<usize>) -> Vec<usize> {
        let mut per_tool: BTreeMap<ToolName, usize> = BTreeMap::new();
        let mut n_running = 0;
        for i in self.running() {
            *per_tool.entry(self.calls[i].call.tool.clone()).or_default() += 1;
            n_running += 1;
        }
        let mut started = Vec::new();
        for i in group {
            if n_running == self.max_parallel {
                break;
            }
            let ScheduledCall { call, state } = &mut self.calls[i];
            let max = match call.concurrency {
                Concurrency::Alone => 1,
                Concurrency::Together { max } => at_least_one(max),
            };
            let of_tool = per_tool.entry(call.tool.clone()).or_default();
            if *state == CallPhase::Waiting && *of_tool < max {
                *state = CallPhase::Running;
                *of_tool += 1;
                n_running += 1;
                started.push(i);
            }
        }
        started
    }
}

fn at_least_one(limit: u32) -> usize {
    usize::saturating(limit.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn calls(tools: &str) -> Vec<Scheduled> {
        tools
            .split_whitespace()
            .map(|tool| Scheduled {
                tool: tool.into(),
                concurrency: match tool {
                    "Read" | "Grep" => Concurrency::Together { max: 10 },
                    "WebFetch" => Concurrency::Together { max: 3 },
                    "Agent" => Concurrency::Together { max: 5 },
                    _ => Concurrency::Alone,
                },
            })
            .collect()
    }

    /// Plays `ends` and notes what each of them starts.
    #[track_caller]
    fn check(tools: &str, max_parallel: u32, ends: &[usize], log: &str) {
        let mut schedule = Schedule::new(&calls(tools), max_parallel);
        let mut steps = vec![format!("{:?}", schedule.start_next())];
        steps.extend(ends.iter().map(|i| format!("{i}:{:?}", schedule.finished(*i))));
        assert_eq!(steps.join(" "), log);
    }

    // REQ: TOL-2
    #[test]
    fn reads_run_together_and_an_edit_alone_between_them() {
        assert_eq!(groups(&calls("Read Read Edit Read")), [0..2, 2..3, 3..4]);
        check("Read Read Edit Read", 10, &[1, 0, 2, 3], "[0, 1] 1:[] 0:[2] 2:[3] 3:[]");
    }

    // REQ: TOL-2
    #[test]
    fn calls_that_need_to_be_alone_are_never_neighbours() {
        assert_eq!(groups(&calls("Bash Bash")), [0..1, 1..2]);
        check("Bash Bash", 10, &[0, 1], "[0] 0:[1] 1:[]");
    }

    // REQ: TOL-2
    #[test]
    fn the_eleventh_call_waits_for_a_place() {
        let ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
        check(&"Read ".repeat(10), 10, &[], ten);
        check(&"Read ".repeat(11), 10, &[7], &format!("{ten} 7:[10]"));
    }

    // REQ: TOL-2
    #[test]
    fn a_tool_at_its_limit_does_not_hold_up_its_neighbours() {
        check("WebFetch WebFetch WebFetch WebFetch Read", 10, &[1], "[0, 1, 2, 4] 1:[3]");
        check("Agent Agent Agent Agent Agent Agent", 10, &[0], "[0, 1, 2, 3, 4] 0:[5]");
    }

    #[test]
    fn late_and_unknown_reports_start_nothing() {
        check("Bash Bash", 10, &[1, 7, 0, 0], "[0] 1:[] 7:[] 0:[1] 0:[]");
        check("", 10, &[0], "[] 0:[]");
        check("Read Read", 0, &[0], "[0] 0:[1]");
    }

    proptest! {
        // REQ: TOL-2
        #[test]
        fn each_call_starts_once_within_all_limits_and_groups_keep_their_order(
            tools in prop::collection::vec(
                prop::sample::select(vec!["Read", "WebFetch", "Agent", "Edit"]), 0..30),
            max_parallel in 1..12u32,
            order in prop::collection::vec(any::<prop::sample::Index>(), 30),
        ) {
            let calls = calls(&tools.join(" "));
            let groups = groups(&calls);
            let group_of = |i: usize| groups.iter().position(|it| it.contains(&i));
            let mut schedule = Schedule::new(&calls, max_parallel);
            let mut started = schedule.start_next();
            for next in order.iter().take(calls.len()) {
                let running: Vec<_> = schedule.running().collect();
                prop_assert!(!running.is_empty());
                prop_assert!(running.len() <= max_parallel as usize);
                prop_assert!(running.iter().all(|i| group_of(*i) == group_of(running[0])));
                for (tool, max) in [("WebFetch", 3), ("Agent", 5), ("Edit", 1)] {
                    let of_tool = running.iter().filter(|i| tools[**i] == tool).count();
                    prop_assert!(of_tool <= max);
                }
                started.extend(schedule.finished(*next.get(&running)));
            }
            prop_assert!(schedule.is_done());
            started.sort_unstable();
            prop_assert_eq!(started, (0..calls.len()).collect::<Vec<_>>());
        }
    }
}
