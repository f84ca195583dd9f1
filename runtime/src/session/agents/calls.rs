//! What the model calls of a session may use of its tree of agents, and the way to the top of that tree.

use std::mem;

use super::tree::{Debit, TreeAnswer, TreeQuestion};
use crate::{
    lease::{LeaseRefused, MaxCost, Spent},
    run::RunEnd,
    session::{
        Machine, Now, SessionEffect,
        names::CallName,
        run::{Phase, TurnInFlight},
    },
    step1_settings_resolution::AgentLimits,
};

impl Machine {
    /// Asks the top of the tree for what a model call of the active turn may use. What earlier calls used was counted
    /// with their records.
    pub(in crate::session) fn call_waits(
        &mut self,
        now: Now,
        name: CallName,
        limits: AgentLimits,
        max_cost: MaxCost,
    ) {
        let Some(active) = &mut self.active else { return };
        let Phase::Turning(turn) = &mut active.phase else { return };
        if turn.key != name.turn {
            return;
        }
        turn.waiting_call = Some((name, max_cost.clone()));
        let is_first = active.settled.turns < u64::from(active.run.turns);
        self.take_limits(limits);
        let agent = self.agents.name.clone();
        let debit = Debit { agent, call: name, is_first, max_cost };
        self.ask_top(now, TreeQuestion::Debit(Box::new(debit)));
    }

    fn debited(&mut self, name: CallName, result: Result<(), LeaseRefused>) {
        let Some(active) = &mut self.active else { return };
        let Phase::Turning(turn) = &mut active.phase else { return };
        // A call that was given up, and its turn with it, waits for nothing.
        let Some((_, max_cost)) = turn.waiting_call.take_if(|it| it.0 == name) else { return };
        match result {
            Ok(()) => {
                turn.under_way = Some(max_cost.into());
                self.effects.push(SessionEffect::AdmitCall(name));
            }
            Err(refused) => {
                active.error = Some(refused.to_string());
                self.end_turn(RunEnd::TreeLimit);
            }
        }
    }

    /// Counts what the run used since this was last done, and gives back what was set aside for it.
    /// Done with the record of each model call, and at the end of the run.
    pub(in crate::session) fn settle(&mut self, now: Now) {
        let Some(active) = self.active.as_mut() else { return };
        let calls =
            Spent { turns: active.run.turns.into(), ..active.cost.own_accounts().total().into() };
        let sum = calls + active.in_doubt;
        let used = sum.since(mem::replace(&mut active.settled, sum));
        let agent = self.agents.name.clone();
        self.ask_top(now, TreeQuestion::Settle { agent, used });
    }

    /// Ends the calls of a run that is over, and with it a call that was sent and has no record.
    pub(in crate::session) fn calls_over(
        &mut self,
        now: Now,
        left: Option<(&TurnInFlight, bool, RunEnd)>,
    ) {
        let Some(active) = &mut self.active else { return };
        match left {
            Some((TurnInFlight { under_way: Some(max_cost), .. }, true, _)) => {
                active.in_doubt = active.in_doubt + (*max_cost).into();
            }
            // A turn that the tree ended before a call of it was sent is none.
            Some((_, _, RunEnd::TreeLimit)) => active.settled.turns = active.run.turns.into(),
            _ => {}
        }
        self.settle(now);
    }

    /// Asks the top session, which may be this one.
    pub(super) fn ask_top(&mut self, now: Now, question: TreeQuestion) {
        match &self.agents.totals {
            Some(_) => self.tree_question(now, question),
            None => self.effects.push(SessionEffect::AskTop(question)),
        }
    }

    /// Answers an agent of the tree, at its top.
    pub(in crate::session) fn tree_question(&mut self, now: Now, question: TreeQuestion) {
        let Some(totals) = &mut self.agents.totals else { return };
        for (to, answer) in totals.answer(question, now.elapsed) {
            match to {
                Some(agent) => self.effects.push(SessionEffect::AnswerAgent { agent, answer }),
                // Taken when the input that caused it has been handled.
                None => self.own_answers.push_back(answer),
            }
        }
    }

    /// Takes an answer of the top session.
    pub(in crate::session) fn tree_answer(&mut self, now: Now, answer: TreeAnswer) {
        match answer {
            TreeAnswer::Admitted { agent, result } => self.admitted(now, agent, result),
            TreeAnswer::Debited { call, result } => self.debited(call, result),
        }
    }
}
