//! What all agents of a tree use together, counted by its top session.
//!
//! Before each turn its worst case is set aside, behind it what was used is counted. The others ask
//! the top session by message; nobody waits in a handler. A turn that only reservations of others
//! stand in the way of waits until one of them is settled.

use ennead_runtime::{
    ids::AgentId,
    lease::{LeaseRefused, Spent, Tree, Worst, worst_case},
    ports::Clock,
    run::RunEnd,
    step1_settings_resolution::AgentLimits,
    tokens::Tokens,
};
use ractor::ActorRef;
use tokio::sync::oneshot;

use super::{Done, InTree};
use crate::session::{SessionMsg, State, runs::Phase};

/// Questions to the top session of a tree, and its answers.
pub(crate) enum TreeMsg {
    /// May this sub-agent be started?
    Admit { agent: AgentId, from: ActorRef<SessionMsg> },
    /// The answer.
    Admitted { agent: AgentId, result: Result<(), LeaseRefused> },
    /// May a turn use so much?
    Debit(Box<Debit>),
    /// The answer.
    Debited { result: Result<(), LeaseRefused> },
    /// Model calls of this agent (`None`: the top session) are over.
    Settle { agent: Option<AgentId>, used: Spent },
    /// This sub-agent is over.
    Close { agent: AgentId },
}

/// What is to be set aside.
pub(crate) struct Debit {
    /// `None`: the top session.
    agent: Option<AgentId>,
    turn: TurnAsked,
    worst: Worst,
    from: ActorRef<SessionMsg>,
}

/// Which turn something is to be set aside for.
enum TurnAsked {
    /// One that is to begin.
    New,
    /// One that began before its settings were known.
    Begun,
}

/// The first model call of a turn that began before its settings were known waits to be let go.
pub(crate) struct FirstCall {
    /// Its turn.
    pub(crate) key: u64,
    /// The limits in its settings.
    pub(crate) limits: AgentLimits,
    /// What it may use.
    pub(crate) worst: Worst,
    /// Told when it may. Dropped when the turn is ended instead.
    pub(crate) go: oneshot::Sender<()>,
}

/// The sums of a tree, and who waits for its share.
pub(super) struct Sums {
    pub(super) tree: Tree,
    /// At most one question of each agent.
    waiting: Vec<Debit>,
}

impl Sums {
    pub(super) fn new(tree: Tree) -> Self {
        Self { tree, waiting: Vec::new() }
    }

    /// Answers go to whoever asked, as messages.
    fn answer(&mut self, question: TreeMsg, clock: &dyn Clock) {
        match question {
            TreeMsg::Admit { agent, from } => {
                let result = self.tree.admit(&agent, clock.elapsed());
                let _gone = from.cast(SessionMsg::Tree(TreeMsg::Admitted { agent, result }));
            }
            TreeMsg::Debit(debit) => {
                let from = debit.from.clone();
                if let Some(result) = self.debit(*debit) {
                    let _gone = from.cast(SessionMsg::Tree(TreeMsg::Debited { result }));
                }
            }
            TreeMsg::Settle { agent, used } => {
                self.tree.settle(agent.as_ref(), used);
                self.ask_again(clock);
            }
            TreeMsg::Close { agent } => {
                self.tree.close(&agent);
                self.waiting.retain(|it| it.agent.as_ref() != Some(&agent));
                self.ask_again(clock);
            }
            TreeMsg::Admitted { .. } | TreeMsg::Debited { .. } => {}
        }
    }

    /// `None`: it waits, and the answer will be a message.
    fn debit(&mut self, debit: Debit) -> Option<Result<(), LeaseRefused>> {
        // Who asks anew has given up its earlier question.
        self.waiting.retain(|it| it.agent != debit.agent);
        let agent = debit.agent.as_ref();
        let result = match debit.turn {
            TurnAsked::New => self.tree.debit(agent, &debit.worst),
            TurnAsked::Begun => self.tree.reserve(agent, &debit.worst),
        };
        if result == Err(LeaseRefused::Reserved) {
            self.waiting.push(debit);
            return None;
        }
        Some(result)
    }

    /// Something was given back: whoever waits asks again, in order.
    fn ask_again(&mut self, clock: &dyn Clock) {
        for debit in std::mem::take(&mut self.waiting) {
            self.answer(TreeMsg::Debit(Box::new(debit)), clock);
        }
    }
}

impl State {
    /// Asks for the next turn: its worst case is debited first. When it is granted at once, it begins
    /// behind the message that is being handled.
    pub(in crate::session) fn ask_for_turn(&mut self, myself: &ActorRef<SessionMsg>) {
        self.take_limits(myself, None);
        let worst = self.worst_case();
        let Some(active) = &mut self.active else { return };
        active.phase = Phase::Asking;
        match self.debit(myself, TurnAsked::New, worst) {
            Some(result) => self.turn_answered(result),
            // Others may let this turn wait.
            None => self.recorder.flush(),
        }
    }

    /// The last request with its answer plus the output ceiling, at the dearest price. What tools have
    /// brought since is not in it, nor are repeated calls, so limits may be passed by about a turn.
    fn worst_case(&self) -> Worst {
        let carry = &self.conversation.carry;
        let input = carry.anchor.map_or(Tokens(0), |it| it.reported);
        carry.resolved.as_ref().map_or(Worst::NOTHING, |it| worst_case(&it.settings, input))
    }

    /// The settings of a turn have become known in it, and its first model call waits.
    pub(in crate::session) async fn first_call(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: FirstCall,
    ) -> Done {
        let FirstCall { key, limits, worst, go } = call;
        let Some(active) = &mut self.active else { return Ok(()) };
        let Phase::Turning(turn) = &mut active.phase else { return Ok(()) };
        if turn.key != key {
            return Ok(());
        }
        turn.first_call = Some(go);
        self.take_limits(myself, Some(limits));
        match self.debit(myself, TurnAsked::Begun, worst) {
            Some(result) => self.debited(myself, result).await,
            None => Ok(()),
        }
    }

    /// `None`: the answer will be a message.
    fn debit(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        turn: TurnAsked,
        worst: Worst,
    ) -> Option<Result<(), LeaseRefused>> {
        let agent = self.agents.name();
        let debit = Debit { agent, turn, worst, from: myself.clone() };
        match &mut self.agents.in_tree {
            // Who is the top itself need not write to itself.
            InTree::Top(sums) => sums.debit(debit),
            InTree::Below(_) => {
                self.tell_top(TreeMsg::Debit(Box::new(debit)));
                None
            }
        }
    }

    async fn debited(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        result: Result<(), LeaseRefused>,
    ) -> Done {
        let Some(active) = &mut self.active else { return Ok(()) };
        match &mut active.phase {
            Phase::Asking => self.turn_answered(result),
            Phase::Turning(turn) => match (turn.first_call.take(), result) {
                (Some(go), Ok(())) => {
                    // A call that is gone is asked for anew.
                    let _gone = go.send(());
                }
                (Some(_), Err(refused)) => {
                    active.error = Some(refused.to_string());
                    return self.end_turn(myself, RunEnd::TreeLimit).await;
                }
                (None, _) => {}
            },
            Phase::Granted | Phase::Stopping(..) | Phase::Ending(_) => {}
        }
        Ok(())
    }

    fn turn_answered(&mut self, result: Result<(), LeaseRefused>) {
        let Some(active) = &mut self.active else { return };
        match result {
            Ok(()) => active.phase = Phase::Granted,
            Err(refused) => {
                active.error = Some(refused.to_string());
                self.end_run(RunEnd::TreeLimit);
            }
        }
    }

    /// Counts what the run's own model calls used since this was last done; what was set aside for
    /// them goes back. Done when a turn or a run ends, and before that when a turn starts sub-agents,
    /// which may need what was set aside.
    pub(in crate::session) fn settle(&mut self) {
        let Some(active) = &mut self.active else { return };
        let sum = Spent::from(active.cost.own().total());
        let used = sum.since(std::mem::replace(&mut active.settled, sum));
        let agent = self.agents.name();
        self.tell_top(TreeMsg::Settle { agent, used });
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
                if let InTree::Top(sums) = &mut self.agents.in_tree {
                    sums.answer(question, &*self.shared.world.clock);
                }
                Ok(())
            }
        }
    }

    /// Tells the top session, which may be this one; answers come as messages either way.
    pub(super) fn tell_top(&mut self, message: TreeMsg) {
        match &mut self.agents.in_tree {
            InTree::Below(parent) => {
                // A tree whose top is gone is going, too.
                let _gone = parent.top.cast(SessionMsg::Tree(message));
            }
            InTree::Top(sums) => sums.answer(message, &*self.shared.world.clock),
        }
    }
}
