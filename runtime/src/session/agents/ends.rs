//! How a sub-agent ends: refused, with an outcome, or crashed. Its call gets one report, and the tree its place back.

use super::tree::TreeQuestion;
use crate::{
    cost::CostLedger,
    ids::AgentId,
    ports::messages::Undelivered,
    run::outcome::{RunError, RunOutcome},
    session::{Machine, Now, SessionEffect, names::SpawnId},
    tokens::Usage,
    transcript::load::UsageTotals,
};

impl Machine {
    /// Refuses a sub-agent that was to be started and cannot be.
    pub(in crate::session) fn agent_refused(&mut self, now: Now, agent: &AgentId, why: String) {
        let Some(running) = self.agents.running.remove(agent) else { return };
        match running.awaits {
            false => self.refuse(running.spawn, why),
            true => self.not_begun(running.spawn, why),
        }
        self.agent_over(now, agent);
        self.send_returned(now, agent);
        self.leave_turn_if_over();
        self.close_if_over(now);
    }

    /// Answers the call whose message an agent that had ended could not go on with.
    fn not_begun(&mut self, spawn: SpawnId, why: String) {
        let why = Undelivered::NotBegun { why };
        self.effects.push(SessionEffect::RefuseMessage { spawn, why });
    }

    /// Ends a sub-agent that has ended its run. Its call gets the report exactly once.
    pub(in crate::session) fn agent_ended(
        &mut self,
        now: Now,
        agent: &AgentId,
        result: Box<Result<RunOutcome, RunError>>,
    ) {
        let Some(running) = self.agents.running.remove(agent) else { return };
        match (running.background, &mut self.active, &*result) {
            (Some(background), ..) => {
                if let Ok(outcome) = &*result {
                    self.count_in_session(agent.clone(), outcome.usage, &outcome.cost);
                }
                match (running.awaits, &*result) {
                    (false, _) => self.background_agent_ended(background, &result),
                    // It may have been written before it crashed.
                    (true, Err(RunError::Failed(_))) => {
                        let (spawn, why) = (running.spawn, Undelivered::Unclear);
                        self.effects.push(SessionEffect::RefuseMessage { spawn, why });
                    }
                    (true, Err(error)) => self.not_begun(running.spawn, error.to_string()),
                    (true, Ok(_)) => self.not_begun(running.spawn, "it was ended".into()),
                }
            }
            (None, Some(active), Ok(outcome)) => {
                active.cost.enter(agent.clone(), outcome.cost.clone());
                active.run.usage = active.run.usage + outcome.usage;
                active.questions.add(&outcome.questions);
            }
            (None, ..) => {}
        }
        self.effects.push(SessionEffect::ReportAgent { agent: agent.clone(), result });
        self.effects.push(SessionEffect::CloseAgent(agent.clone()));
        self.agent_over(now, agent);
        self.send_returned(now, agent);
        self.leave_turn_if_over();
        self.close_if_over(now);
        self.wake(now);
    }

    /// Counts what a crashed sub-agent used, and those below it.
    pub(in crate::session) fn agent_crashed(
        &mut self,
        now: Now,
        agent: &AgentId,
        used: Vec<(AgentId, UsageTotals)>,
    ) {
        if self.agents.is_in_background(agent) {
            for (who, used) in used {
                // Its transcript begins with what was counted before it went on.
                let counted = self.counted_of(&who);
                let usage = used.usage - counted.own_accounts().total().usage;
                self.count_in_session(who, usage, &used.ledger().without(&counted));
            }
        } else if let Some(active) = &mut self.active
            && self.agents.running.contains_key(agent)
        {
            for (who, used) in used {
                active.run.usage = active.run.usage + used.usage;
                active.cost.enter(who, used.ledger());
            }
        }
        let crashed = RunError::Failed("the sub-agent crashed".into());
        self.agent_ended(now, agent, Box::new(Err(crashed)));
    }

    /// Counts what an agent used that works for no run.
    fn count_in_session(&mut self, agent: AgentId, used: Usage, cost: &CostLedger) {
        self.spent = self.spent + used;
        // It may have gone on, and then it was counted before.
        self.cost.add_agent(agent.clone(), cost);
        self.cost_here.add_agent(agent, cost);
    }

    /// Returns what was counted of an agent itself so far.
    fn counted_of(&self, agent: &AgentId) -> CostLedger {
        let mut counted = CostLedger::default();
        self.cost.add_counted(agent, &mut counted);
        if let Some(active) = &self.active {
            active.cost.add_counted(agent, &mut counted);
        }
        counted
    }

    pub(super) fn agent_over(&mut self, now: Now, agent: &AgentId) {
        self.agents.lease.mark_ended(agent);
        self.ask_top(now, TreeQuestion::Close { agent: agent.clone() });
    }
}
