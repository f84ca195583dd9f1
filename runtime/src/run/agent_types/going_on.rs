//! Which sub-agents can go on after their end, when they are sent a message.

use std::sync::Arc;

use super::{AgentType, SEND_MESSAGE};
use crate::{
    digest::Digest,
    ports::messages::{KnownAgent, Undelivered},
    run::facts::SessionFacts,
};

/// Of types that are built in: they stay what they are.
pub(crate) const BUILT_IN: &str = "built-in";

/// Returns what a type is, to compare it later.
#[doc(hidden)]
pub fn definition_of(kind: &AgentType, own: &[AgentType]) -> String {
    if !own.iter().any(|it| it.name == kind.name) {
        return BUILT_IN.to_owned();
    }
    // A type is plain data: it can be written.
    let text = serde_json::to_string(kind).unwrap_or_default();
    Digest::of(text.as_bytes()).to_string()
}

/// Returns whether a sub-agent of this type can go on after its end, where its session takes messages.
#[doc(hidden)]
pub fn can_go_on(kind: &AgentType, of: &SessionFacts, in_worktree: bool) -> bool {
    let sends = of.tools.iter().any(|it| it.name.as_str() == SEND_MESSAGE);
    sends && of.agent.is_none() && !kind.is_one_shot() && !in_worktree
}

impl KnownAgent {
    /// Checks whether an agent of this type can go on, which is what the name of its type denotes now.
    pub(crate) fn check(&self, kind: &AgentType, own: &[AgentType]) -> Result<(), Undelivered> {
        let agent_type = || Arc::clone(&self.agent_type);
        if self.parent.is_some() {
            return Err(Undelivered::OfAnother);
        }
        if kind.is_one_shot() {
            return Err(Undelivered::OneShot { agent_type: agent_type() });
        }
        if self.in_worktree {
            return Err(Undelivered::InWorktree);
        }
        match &self.definition {
            Some(definition) if *definition != definition_of(kind, own) => {
                Err(Undelivered::OtherType { agent_type: agent_type() })
            }
            Some(_) => Ok(()),
            // The name alone does not say what it was allowed to use.
            None => Err(Undelivered::UnrecordedType { agent_type: agent_type() }),
        }
    }
}
