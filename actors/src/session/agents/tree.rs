//! What all agents of a tree use together, counted by its top session.
//!
//! Before each turn its worst case is set aside, behind it what was used is counted. The others ask
//! the top session by message; nobody waits in a handler. A call that only reservations of others
//! stand in the way of waits until one of them is settled.

use ennead_runtime::{
    ids::AgentId,
    lease::{LeaseRefused, Tree},
    run::RunEnd,
    tokens::{Tokens, Usage},
};
use ractor::ActorRef;

use super::Done;
use crate::session::{SessionMsg, State, runs::Phase};

/// Questions to the top session of a tree, and its answers.
pub(crate) enum TreeMsg {
    /// May this sub-agent be started?
    Admit { agent: AgentId, from: ActorRef<SessionMsg> },
    /// The answer.
    Admitted { agent: AgentId, result: Result<(), LeaseRefused> },
    /// May this agent (`None`: the top session) take a turn that may cost so much?
    Debit { agent: Option<AgentId>, worst: Tokens, from: ActorRef<SessionMsg> },
    /// The answer.
    Debited { result: Result<(), LeaseRefused> },
    /// A model call of this agent is over; 0 set aside: more was used for one that was settled.
    Settle { agent: Option<AgentId>, worst: Tokens, used: Tokens },
    /// This sub-agent is over.
    Close { agent: AgentId },
}

/// The sums of a tree, and who waits for its share.
pub(super) struct Sums {
    pub(super) tree: Tree,
    /// At most one question of each agent.
    waiting: Vec<(Option<AgentId>, Tokens, ActorRef<SessionMsg>)>,
}

impl Sums {
    pub(super) fn new(tree: Tree) -> Self {
        Self { tree, waiting: Vec::new() }
    }

    fn answer(&mut self, question: TreeMsg) {
        match question {
            TreeMsg::Admit { agent, from } => {
                let result = self.tree.admit(&agent);
                let _gone = from.cast(SessionMsg::Tree(TreeMsg::Admitted { agent, result }));
            }
            TreeMsg::Debit { agent, worst, from } => {
                // Who asks anew has given up its earlier question.
                self.waiting.retain(|(waiting, ..)| *waiting != agent);
                self.debit(agent, worst, from);
            }
            TreeMsg::Settle { agent, worst, used } => {
                self.tree.settle(agent.as_ref(), worst, used);
                self.ask_again();
            }
            TreeMsg::Close { agent } => {
                self.tree.close(&agent);
                self.waiting.retain(|(waiting, ..)| waiting.as_ref() != Some(&agent));
                self.ask_again();
            }
            TreeMsg::Admitted { .. } | TreeMsg::Debited { .. } => {}
        }
    }

    fn debit(&mut self, agent: Option<AgentId>, worst: Tokens, from: ActorRef<SessionMsg>) {
        match self.tree.debit(agent.as_ref(), worst) {
            Err(LeaseRefused::Reserved) => self.waiting.push((agent, worst, from)),
            result => {
                let _gone = from.cast(SessionMsg::Tree(TreeMsg::Debited { result }));
            }
        }
    }

    /// Something was given back: whoever waits asks again, in order.
    fn ask_again(&mut self) {
        for (agent, worst, from) in std::mem::take(&mut self.waiting) {
            self.debit(agent, worst, from);
        }
    }
}

impl State {
    /// Asks for the next turn: its worst case is debited first.
    pub(in crate::session) fn ask_for_turn(&mut self, myself: &ActorRef<SessionMsg>) -> Done {
        self.take_limits(None);
        let worst = self.worst_case();
        let Some(active) = &mut self.active else { return Ok(()) };
        active.phase = Phase::Asking;
        // A turn that was ended from outside has settled nothing.
        self.settle_turn(myself, Usage::default())?;
        self.agents.debited = Some(worst);
        self.agents.settled = Tokens(0);
        let agent = self.agents.parent.as_ref().map(|it| it.agent.clone());
        self.tell_top(myself, TreeMsg::Debit { agent, worst, from: myself.clone() })?;
        let is_granted = self.agents.sums.as_ref().is_some_and(|it| it.waiting.is_empty());
        if !is_granted {
            // Others may let this turn wait.
            self.recorder.flush();
        }
        Ok(())
    }

    /// The largest request that was seen plus the output ceiling.
    fn worst_case(&self) -> Tokens {
        let carry = &self.conversation.carry;
        let input = carry.anchor.map_or(Tokens(0), |it| it.reported);
        let output = carry.resolved.as_ref().map_or(0, |it| it.settings.max_output_tokens);
        input + Tokens(output.into())
    }

    async fn debited(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        result: Result<(), LeaseRefused>,
    ) -> Done {
        let Some(active) = &mut self.active else { return Ok(()) };
        if !matches!(active.phase, Phase::Asking) {
            return Ok(());
        }
        match result {
            Ok(()) => self.start_turn(myself).await,
            Err(refused) => {
                active.error = Some(refused.to_string());
                self.agents.debited = None;
                self.end_run(RunEnd::TreeLimit);
                Ok(())
            }
        }
    }

    /// So much of the turn's usage is known: what was set aside beyond it goes back. Told when the
    /// turn ends, and before that when it starts sub-agents, which may need what was set aside.
    pub(in crate::session) fn settle_turn(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        usage: Usage,
    ) -> Done {
        let worst = self.agents.debited.take().unwrap_or_default();
        let used = usage.total().saturating_sub(self.agents.settled);
        self.agents.settled = usage.total();
        if worst == Tokens(0) && used == Tokens(0) {
            return Ok(());
        }
        let agent = self.agents.parent.as_ref().map(|it| it.agent.clone());
        self.tell_top(myself, TreeMsg::Settle { agent, worst, used })
    }

    /// Questions to a top session, and its answers.
    pub(in crate::session) async fn tree(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        message: TreeMsg,
    ) -> Done {
        match message {
            TreeMsg::Admitted { agent, result } => self.admitted(myself, agent, result).await,
            TreeMsg::Debited { result } => self.debited(myself, result).await,
            question => {
                if let Some(sums) = &mut self.agents.sums {
                    sums.answer(question);
                }
                Ok(())
            }
        }
    }

    /// Tells the top session, which may be this one; answers come as messages either way.
    pub(super) fn tell_top(&mut self, myself: &ActorRef<SessionMsg>, message: TreeMsg) -> Done {
        match (&self.agents.parent, &mut self.agents.sums) {
            (Some(parent), _) => {
                // A tree whose top is gone is going, too.
                let _gone = parent.top.cast(SessionMsg::Tree(message));
            }
            (None, Some(sums)) => sums.answer(message),
            (None, None) => myself.cast(SessionMsg::Tree(message))?,
        }
        Ok(())
    }
}
