//! Where the time of a conversation and its sub-agents goes, by their events.

use std::{collections::HashMap, time::Duration};

use ennead_runtime::{event::Event, ids::AgentId};

/// Where the time of one conversation went.
#[derive(Debug, Default)]
pub(super) struct ConversationTimes {
    open: HashMap<Option<AgentId>, OpenRun>,
    pub(super) n_agents: u64,
    pub(super) n_turns: u64,
    /// Time that ended runs took without their tools.
    pub(super) own: Duration,
    /// Of ended runs, in tools other than that which waits for agents.
    pub(super) tools: Duration,
}

#[derive(Debug, Default)]
struct OpenRun {
    start: Duration,
    n_tools: u32,
    tools_since: Duration,
    tools: Duration,
    /// Whether agents were waited for since then: their own time counts already.
    has_agents: bool,
    /// Of `tools`, the time in which agents were waited for.
    agents: Duration,
}

impl ConversationTimes {
    pub(super) fn observe(&mut self, event: &Event, now: Duration) {
        match event {
            Event::Agent { agent, event } => self.observe_one(Some(agent), event, now),
            event => self.observe_one(None, event, now),
        }
    }

    fn observe_one(&mut self, agent: Option<&AgentId>, event: &Event, now: Duration) {
        let key = agent.cloned();
        match event {
            Event::RunStarted { .. } => {
                self.n_agents += u64::from(agent.is_some());
                self.open.insert(key, OpenRun { start: now, ..OpenRun::default() });
            }
            Event::TurnStarted { .. } => self.n_turns += 1,
            Event::ToolStarted { tool, .. } => {
                if let Some(run) = self.open.get_mut(&key) {
                    if run.n_tools == 0 {
                        (run.tools_since, run.has_agents) = (now, false);
                    }
                    run.n_tools += 1;
                    run.has_agents |= tool.as_str() == "Agent";
                }
            }
            Event::ToolFinished { .. } => {
                // A call that was denied ends without having started.
                if let Some(run) = self.open.get_mut(&key).filter(|it| 0 < it.n_tools) {
                    run.n_tools -= 1;
                    if run.n_tools == 0 {
                        let took = now.saturating_sub(run.tools_since);
                        run.tools += took;
                        run.agents += if run.has_agents { took } else { Duration::ZERO };
                    }
                }
            }
            Event::RunFinished { .. } | Event::RunLost { .. } => {
                if let Some(run) = self.open.remove(&key) {
                    self.own += now.saturating_sub(run.start).saturating_sub(run.tools);
                    self.tools += run.tools.saturating_sub(run.agents);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-3
    #[test]
    fn tools_that_overlap_are_taken_off_once() {
        let ms = Duration::from_millis;
        let tool = |start: bool| {
            if start {
                Event::ToolStarted { call: "c".into(), tool: "Grep".into() }
            } else {
                Event::ToolFinished {
                    call: "c".into(),
                    tool: "Grep".into(),
                    is_error: false,
                    text: "".into(),
                }
            }
        };
        let mut times = ConversationTimes::default();
        times.observe(&Event::RunStarted { run: "r".into(), woken: false }, ms(0));
        times.observe(&Event::TurnStarted { turn: 1 }, ms(0));
        for (start, at) in [(true, 10), (true, 20), (false, 30), (false, 40)] {
            times.observe(&tool(start), ms(at));
        }
        times.observe(&Event::RunFinished { run: "r".into(), reason: "x" }, ms(100));
        assert_eq!((times.own, times.tools, times.n_turns), (ms(70), ms(30), 1));
    }

    // REQ: RUN-3
    #[test]
    fn time_in_which_agents_are_waited_for_is_theirs() {
        let ms = Duration::from_millis;
        let mut times = ConversationTimes::default();
        let (agent, run) =
            (AgentId::from("a"), || Event::RunStarted { run: "r".into(), woken: false });
        let of_agent =
            |event| Event::Agent { agent: agent.clone(), event: std::sync::Arc::new(event) };
        let started = |tool: &str| Event::ToolStarted { call: "c".into(), tool: tool.into() };
        let finished = |tool: &str| Event::ToolFinished {
            call: "c".into(),
            tool: tool.into(),
            is_error: false,
            text: "".into(),
        };
        let ended = || Event::RunFinished { run: "r".into(), reason: "x" };
        for (event, at) in [
            (run(), 0),
            (started("Agent"), 10),
            (of_agent(run()), 20),
            (of_agent(started("Grep")), 30),
            (of_agent(finished("Grep")), 70),
            (of_agent(ended()), 80),
            (finished("Agent"), 90),
            (ended(), 100),
        ] {
            times.observe(&event, ms(at));
        }
        assert_eq!((times.own, times.tools), (ms(20 + 20), ms(40)));
    }
}
