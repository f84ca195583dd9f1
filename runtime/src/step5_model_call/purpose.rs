//! What a model is asked for.

/// Why the model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For the turn's answer.
    Turn,
    /// The call asks for a summary of the conversation.
    Compaction,
    /// The call asks whether a tool call may run.
    Classification,
    /// The call asks whether an event is right, for a hook.
    Hook,
    /// The call makes the result of a tool call: it puts together what several sub-agents found, or answers about a page.
    Synthesis,
}

impl Purpose {
    /// Returns the name that records use.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Turn => "turn",
            Purpose::Compaction => "compaction",
            Purpose::Classification => "classification",
            Purpose::Hook => "hook",
            Purpose::Synthesis => "synthesis",
        }
    }
}
