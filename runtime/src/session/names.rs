//! What the inputs and effects of a session name by number. Each kind is its own type, so that none is taken for another.

/// Defines ids that are numbers and count up.
macro_rules! counted {
    ($($(#[$docs:meta])* $name:ident;)+) => {$(
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl $name {
            /// Counts up by one and returns the new id.
            pub fn advance(&mut self) -> Self {
                self.0 += 1;
                *self
            }
        }
    )+};
}

counted! {
    /// Names a prompt of a session. Counts up from 1 within the life of its actor.
    PromptId;
    /// Names the wish of a tool call for a sub-agent, or to send one a message. Counts up from 1 within the life of the session's actor.
    SpawnId;
    /// Names a message that a sub-agent was sent. Counts up from 1 within the life of its actor.
    MessageNumber;
    /// Names a write of the session. Counts up from 1; lines that are written again have a new one.
    WriteTicket;
    /// Names a turn among those of the session. Counts up from 1 within the life of its actor, over all runs.
    TurnKey;
    /// Names a run among those of the session. Counts up from the number of its transcript's lines as it was opened,
    /// shifted, so that the ids drawn from it differ from one opening to the next.
    RunNumber;
}

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

/// Names a model call of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The key of its turn.
    pub turn: TurnKey,
    /// Which call of the turn, from 1; one that is tried again counts anew.
    pub attempt: u32,
}
