//! What an agent or a call of one is refused for, in words for the model that asked.

use std::sync::Arc;

use crate::catalogue::Money;

/// Why an agent or a call of one was refused. The text is for the model that asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseRefused {
    /// Sub-agents of this depth may not start others.
    #[error("sub-agents may be nested {max} deep and this is the deepest; do the work yourself")]
    TooDeep {
        /// Greatest depth that is allowed.
        max: u32,
    },
    /// A place comes free when a sub-agent ends.
    #[error("{max} sub-agents are running, which is the limit; wait for one to end and try again")]
    TooManyAtOnce {
        /// Sub-agents that may run at the same time.
        max: u32,
    },
    /// Final: agents that have ended count, too.
    #[error("this session has started {max} sub-agents, which is the limit; do the work yourself")]
    TooManyInTree {
        /// Sub-agents that the tree may have in all.
        max: u32,
    },
    /// Too many were started within a minute.
    #[error(
        "{max} sub-agents were started within a minute, which is the limit; do some of the work \
         yourself, or try again in {wait_s} s"
    )]
    TooFast {
        /// Sub-agents that may start within a minute.
        max: u32,
        /// Seconds until one more may be started, rounded up.
        wait_s: u64,
    },
    /// All turns of the tree are used up; the refusal is final.
    #[error("all {max} turns of this session and its sub-agents are used; report what you have")]
    TurnsUsedUp {
        /// Turns that the tree may take.
        max: u64,
    },
    /// Final for a call of this size.
    #[error(
        "{used} of {max} tokens of this session and its sub-agents are used and the rest is not \
         enough; report what you have"
    )]
    TokensUsedUp {
        /// Tokens that the tree may use.
        max: u64,
        /// Tokens that the tree has used so far.
        used: u64,
    },
    /// Final for a call of this size.
    #[error(
        "Budget limit reached: {used} of {max} are spent by this session and its sub-agents and \
         the rest is not enough; report what you have"
    )]
    MoneyUsedUp {
        /// Amount that the tree may spend.
        max: Money,
        /// Amount that the tree has spent so far.
        used: Money,
    },
    /// Final: a limit on money cannot be kept for a model of unknown price.
    #[error(
        "no price of the model `{model}` is known, so the limit on money cannot be kept; its \
         prices can be set under `ennead.catalogue`"
    )]
    NoPrice {
        /// Name of the model without a price.
        model: Arc<str>,
    },
    /// Final: calls were made before whose price is not known.
    #[error(
        "what {calls} earlier calls of this session and its sub-agents cost is not known, so the \
         limit on money cannot be kept"
    )]
    CostUnknown {
        /// Number of calls whose cost is unknown.
        calls: u64,
    },
    /// The time of the tree is used up; the refusal is final.
    #[error("the time of this session and its sub-agents is used; report what you have")]
    TimeUsedUp,
    /// Other calls hold the rest until they end.
    #[error("what remains is set aside for calls under way; try again when one has ended")]
    Reserved,
    /// The id names an agent that was started before.
    #[error("an agent of this id has been started before")]
    KnownAgent,
    /// The agent has ended or was never admitted.
    #[error("the agent has ended")]
    Closed,
}

impl LeaseRefused {
    /// Returns the stable code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            LeaseRefused::TooDeep { .. } => "agent_depth",
            LeaseRefused::TooManyAtOnce { .. } => "agents_at_once",
            LeaseRefused::TooManyInTree { .. } => "agents_in_tree",
            LeaseRefused::TooFast { .. } => "agent_rate",
            LeaseRefused::TurnsUsedUp { .. } => "tree_turns",
            LeaseRefused::TokensUsedUp { .. } => "tree_tokens",
            LeaseRefused::MoneyUsedUp { .. } => "tree_money",
            LeaseRefused::NoPrice { .. } => "tree_money_no_price",
            LeaseRefused::CostUnknown { .. } => "tree_money_unknown",
            LeaseRefused::TimeUsedUp => "tree_time",
            LeaseRefused::Reserved => "tree_reserved",
            LeaseRefused::KnownAgent => "agent_known",
            LeaseRefused::Closed => "agent_ended",
        }
    }
}
