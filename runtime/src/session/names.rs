//! What the inputs and effects of a session name by number. Each kind is its own type, so that none is taken for another.

/// Names a prompt of a session. Counts up from 1 within the life of its actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PromptId(pub u64);

/// What a run answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunOrigin {
    /// A prompt, whose sender receives the outcome.
    Prompt(PromptId),
    /// The end of an agent in the background: the session began the run by itself.
    Woken,
    /// A prompt of an earlier process, whose sender is gone: the outcome is kept under the name of the run.
    Resumed,
}

impl From<PromptId> for RunOrigin {
    fn from(prompt: PromptId) -> Self {
        Self::Prompt(prompt)
    }
}

/// Names the wish of a tool call for a sub-agent. Counts up from 1 within the life of the session's actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpawnId(pub u64);

/// Names a write of the session. Counts up from 1; lines that are written again have a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteTicket(pub u64);

/// Names a model call of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The key of its turn.
    pub turn: u64,
    /// Which call of the turn, from 1; one that is tried again counts anew.
    pub attempt: u32,
}
