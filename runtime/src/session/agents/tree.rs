//! What all agents of a tree use together, counted by its top session.
//!
//! Before each model call its worst case is set aside, if anything is limited; after it, what was used
//! is counted in any case. A call that only reservations of others hold up waits until
//! one of them is settled. Deadlock freedom: an agent that waits for a reservation holds none, and
//! one that holds a reservation waits for no other.

use std::{mem, time::Duration};

use crate::{
    ids::AgentId,
    lease::{LeaseRefused, MaxCost, Spent, Tree},
    session::names::CallName,
};

/// What an agent asks the top session of its tree.
#[derive(Clone, Debug)]
pub enum TreeQuestion {
    /// May this sub-agent be started?
    Admit {
        /// The name of the sub-agent in the tree.
        agent: AgentId,
        /// Who starts it; `None` is the top session.
        parent: Option<AgentId>,
        /// Whether it has ended before, and goes on.
        again: bool,
    },
    /// May a model call use this amount?
    Debit(Box<Debit>),
    /// The model calls of this agent (`None`: the top session) are over, and this is what they used.
    Settle {
        /// The agent whose calls these are; `None` is the top session.
        agent: Option<AgentId>,
        /// What came on top of what was settled before.
        used: Spent,
    },
    /// This sub-agent is over.
    Close {
        /// The name of the sub-agent in the tree.
        agent: AgentId,
    },
}

/// The answer of the top session.
#[derive(Clone, Debug)]
pub enum TreeAnswer {
    /// The answer to [`TreeQuestion::Admit`].
    Admitted {
        /// The agent that was asked about.
        agent: AgentId,
        /// Whether it may be started.
        result: Result<(), LeaseRefused>,
    },
    /// The answer to [`TreeQuestion::Debit`].
    Debited {
        /// The model call that was asked about.
        call: CallName,
        /// Whether it may be sent.
        result: Result<(), LeaseRefused>,
    },
}

/// What is to be set aside for a model call.
#[derive(Clone, Debug)]
pub struct Debit {
    /// Who asks; `None` is the top session.
    pub agent: Option<AgentId>,
    /// The model call that the amount is set aside for.
    pub call: CallName,
    /// Whether it is the first of its turn, which is then counted, too.
    pub is_first: bool,
    /// The most that it can use.
    pub max_cost: MaxCost,
}

/// An answer and who gets it; `None` is the top session.
pub(in crate::session) type Addressed = (Option<AgentId>, TreeAnswer);

/// The totals of a tree, and the calls that wait for their share.
#[derive(Debug)]
pub(in crate::session) struct TreeTotals {
    pub(in crate::session) tree: Tree,
    /// At most one of each agent, in the order of their questions.
    waiting: Vec<Debit>,
}

impl TreeTotals {
    pub(in crate::session) fn new(tree: Tree) -> Self {
        Self { tree, waiting: Vec::new() }
    }

    /// Returns the answers that are due now. One that is not among them follows when something is
    /// given back.
    pub(in crate::session) fn answer(
        &mut self,
        question: TreeQuestion,
        elapsed: Duration,
    ) -> Vec<Addressed> {
        match question {
            TreeQuestion::Admit { agent, parent, again } => {
                let result = match again {
                    false => self.tree.admit(&agent, parent.as_ref(), elapsed),
                    true => self.tree.admit_again(&agent, parent.as_ref(), elapsed),
                };
                vec![(parent, TreeAnswer::Admitted { agent, result })]
            }
            TreeQuestion::Debit(debit) => {
                // An agent that asks anew has given up its earlier question.
                self.waiting.retain(|it| it.agent != debit.agent);
                self.debit(*debit).into_iter().collect()
            }
            TreeQuestion::Settle { agent, used } => {
                self.waiting.retain(|it| it.agent != agent);
                self.tree.settle(agent.as_ref(), used);
                self.ask_again()
            }
            TreeQuestion::Close { agent } => {
                self.tree.close(&agent);
                // Those below it are over, too.
                self.waiting.retain(|it| self.tree.is_open(it.agent.as_ref()));
                self.ask_again()
            }
        }
    }

    fn debit(&mut self, debit: Debit) -> Option<Addressed> {
        let agent = debit.agent.as_ref();
        let result = if debit.is_first {
            self.tree.debit(agent, &debit.max_cost)
        } else {
            self.tree.reserve(agent, &debit.max_cost)
        };
        if result == Err(LeaseRefused::Reserved) {
            self.waiting.push(debit);
            return None;
        }
        Some((debit.agent, TreeAnswer::Debited { call: debit.call, result }))
    }

    /// Something was given back: the calls that wait ask again, in order.
    fn ask_again(&mut self) -> Vec<Addressed> {
        mem::take(&mut self.waiting).into_iter().filter_map(|it| self.debit(it)).collect()
    }
}
