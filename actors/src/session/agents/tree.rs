//! What all agents of a tree use together, counted by its top session.
//!
//! Before each model call its worst case is set aside, if anything is limited; after it what was
//! used is counted in any case. The others ask the top session by message; nobody waits in a
//! handler. A call that fails only because of reservations of others waits until one of them is
//! settled. The one that asks has nothing set aside, and those who have wait for nobody in the
//! tree: so each reservation is settled, and each question answered.

use ennead_runtime::{
    ids::AgentId,
    lease::{LeaseRefused, MaxCost, Spent, Tree},
    ports::Clock,
    run::RunEnd,
    step1_settings_resolution::AgentLimits,
};
use ractor::ActorRef;
use tokio::sync::oneshot;

use super::InTree;
use crate::{
    model_call::Sent,
    session::{
        SessionMsg, SessionState,
        runs::{InFlight, Phase},
    },
    supervision::HandlerResult,
};

/// Questions to the top session of a tree, and its answers.
pub(crate) enum TreeMsg {
    /// May this sub-agent be started by this one (`None`: the top session)?
    Admit { agent: AgentId, parent: Option<AgentId>, from: ActorRef<SessionMsg> },
    /// Answers `Admit`, once for each agent.
    Admitted { agent: AgentId, result: Result<(), LeaseRefused> },
    /// May a model call use so much?
    Debit(Box<Debit>),
    /// Answers `Debit`, once for each call.
    Debited { call: CallName, result: Result<(), LeaseRefused> },
    /// Whatever model call this agent (`None`: the top session) was at is over.
    Settle { agent: Option<AgentId>, used: Spent },
    /// This sub-agent is over.
    Close { agent: AgentId },
}

/// Names a model call of a session: its turn and its attempt.
pub(crate) type CallName = (u64, u32);

/// What is to be set aside.
pub(crate) struct Debit {
    /// `None`: the top session.
    agent: Option<AgentId>,
    call: CallName,
    place: PlaceInTurn,
    worst: MaxCost,
    from: ActorRef<SessionMsg>,
}

/// Which call of its turn one is.
enum PlaceInTurn {
    First,
    Further,
}

/// A model call that waits to be let go.
pub(crate) struct WaitingCall {
    pub(crate) name: CallName,
    /// The limits in the settings under which it is made.
    pub(crate) limits: AgentLimits,
    /// What it may use.
    pub(crate) worst: MaxCost,
    /// Told when it may. Dropped when the turn is ended instead.
    pub(crate) go: oneshot::Sender<()>,
    /// Whether it was sent then.
    pub(crate) sent: Sent,
}

/// The sums of a tree, and who waits for its share.
pub(super) struct TreeAccount {
    pub(super) tree: Tree,
    /// At most one question of each agent.
    waiting: Vec<Debit>,
}

impl TreeAccount {
    pub(super) fn new(tree: Tree) -> Self {
        Self { tree, waiting: Vec::new() }
    }

    /// Answers go to the one that asked, as messages.
    fn answer(&mut self, question: TreeMsg, clock: &dyn Clock) {
        match question {
            TreeMsg::Admit { agent, parent, from } => {
                let result = self.tree.admit(&agent, parent.as_ref(), clock.elapsed());
                let _gone = from.cast(SessionMsg::Tree(TreeMsg::Admitted { agent, result }));
            }
            TreeMsg::Debit(debit) => {
                let (from, call) = (debit.from.clone(), debit.call);
                if let Some(result) = self.debit(*debit) {
                    let _gone = from.cast(SessionMsg::Tree(TreeMsg::Debited { call, result }));
                }
            }
            TreeMsg::Settle { agent, used } => {
                self.waiting.retain(|it| it.agent != agent);
                self.tree.settle(agent.as_ref(), used);
                self.ask_again(clock);
            }
            TreeMsg::Close { agent } => {
                self.tree.close(&agent);
                // Those below it are over, too.
                self.waiting.retain(|it| self.tree.is_open(it.agent.as_ref()));
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
        let result = match debit.place {
            PlaceInTurn::First => self.tree.debit(agent, &debit.worst),
            PlaceInTurn::Further => self.tree.reserve(agent, &debit.worst),
        };
        if result == Err(LeaseRefused::Reserved) {
            self.waiting.push(debit);
            return None;
        }
        Some(result)
    }

    /// Something was given back: the one that waits asks again, in order.
    fn ask_again(&mut self, clock: &dyn Clock) {
        for debit in std::mem::take(&mut self.waiting) {
            self.answer(TreeMsg::Debit(Box::new(debit)), clock);
        }
    }
}

impl SessionState {
    /// A model call of the turn under way waits to be let go. What earlier ones used was counted with
    /// their records.
    pub(in crate::session) async fn call_waits(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: Box<WaitingCall>,
    ) -> HandlerResult {
        let (name, limits, worst) = (call.name, call.limits, call.worst.clone());
        let Some(active) = &mut self.active else { return Ok(()) };
        let Phase::Turning(turn) = &mut active.phase else { return Ok(()) };
        if turn.key != name.0 {
            return Ok(());
        }
        turn.waiting_call = Some(call);
        let place = match active.settled.turns < u64::from(active.run.turns) {
            true => PlaceInTurn::First,
            false => PlaceInTurn::Further,
        };
        self.take_limits(myself, limits);
        let debit =
            Debit { agent: self.agents.name(), call: name, place, worst, from: myself.clone() };
        let known = match &mut self.agents.in_tree {
            // Who is the top itself need not write to itself.
            InTree::Top(sums) => sums.debit(debit),
            InTree::Below(_) => {
                self.tell_top(TreeMsg::Debit(Box::new(debit)));
                None
            }
        };
        match known {
            Some(result) => self.debited(myself, name, result).await,
            None => Ok(()),
        }
    }

    async fn debited(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        name: CallName,
        result: Result<(), LeaseRefused>,
    ) -> HandlerResult {
        let Some(active) = &mut self.active else { return Ok(()) };
        let Phase::Turning(turn) = &mut active.phase else { return Ok(()) };
        // A call that is given up, and its turn with it, waits for nothing.
        let is_meant = |it: &mut Box<WaitingCall>| it.name == name;
        let Some(call) = turn.waiting_call.take_if(is_meant) else { return Ok(()) };
        match result {
            Ok(()) => {
                turn.under_way = Some((call.worst.into(), call.sent));
                // A call that crashed meanwhile is followed by one that asks anew.
                let _gone = call.go.send(());
                Ok(())
            }
            Err(refused) => {
                active.error = Some(refused.to_string());
                self.end_turn(myself, RunEnd::TreeLimit).await
            }
        }
    }

    /// Counts what the run used since this was last done; what was set aside for it goes back. Done
    /// with the record of each model call, and at the end of the run.
    pub(in crate::session) fn settle(&mut self) {
        let Some(active) = self.active.as_mut() else { return };
        let calls = Spent { turns: active.run.turns.into(), ..active.cost.own().total().into() };
        let sum = calls + active.in_doubt;
        let used = sum.since(std::mem::replace(&mut active.settled, sum));
        let agent = self.agents.name();
        self.tell_top(TreeMsg::Settle { agent, used });
    }

    /// The run is over, and with it a call that was sent and has no record.
    pub(in crate::session) fn calls_over(&mut self) {
        let Some(active) = &mut self.active else { return };
        match active.phase.in_flight().and_then(InFlight::in_doubt) {
            Some(cut) => active.in_doubt = active.in_doubt + cut.into(),
            // A turn that the tree has ended before a call of it was sent is none.
            None if matches!(active.phase, Phase::Stopping(_, RunEnd::TreeLimit)) => {
                active.settled.turns = active.run.turns.into();
            }
            None => {}
        }
        self.settle();
    }

    /// Questions to a top session, and its answers.
    pub(in crate::session) async fn tree(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        message: TreeMsg,
    ) -> HandlerResult {
        match message {
            TreeMsg::Admitted { agent, result } => self.admitted(myself, agent, result).await,
            TreeMsg::Debited { call, result } => self.debited(myself, call, result).await,
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
