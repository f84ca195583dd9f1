//! What may become of an event that waits for a slow listener.

use super::Event;

/// How much it matters that a listener gets this very event (MDL-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It is kept, in its place: results, errors, questions, beginnings and ends.
    Kept,
    /// A piece of something: it may be joined to the piece before it, or left out where the whole
    /// follows.
    Piece,
    /// A status snapshot. The next event of its kind supersedes it, so a slow subscriber may miss
    /// it.
    Note,
}

impl Event {
    /// Returns what may become of the event while it waits.
    #[doc(hidden)]
    pub fn weight(&self) -> Weight {
        match self {
            Self::TextDelta { .. } | Self::ReasoningDelta { .. } => Weight::Piece,
            Self::ToolInputPreview { .. }
            | Self::ToolProgress { .. }
            | Self::StepStarted { .. }
            | Self::ContextAssembled { .. }
            | Self::ShaperApplied { .. } => Weight::Note,
            Self::Agent { event, .. } => event.weight(),
            Self::RunStarted { .. }
            | Self::TurnStarted { .. }
            | Self::MessageCompleted { .. }
            | Self::TokensUsed { .. }
            | Self::ModelStreamed { .. }
            | Self::MessageRecorded { .. }
            | Self::Withdrawn { .. }
            | Self::ToolRequested { .. }
            | Self::PermissionAsked { .. }
            | Self::ModeChanged { .. }
            | Self::PermissionSettled { .. }
            | Self::PermissionDecided { .. }
            | Self::ToolStarted { .. }
            | Self::ToolFinished { .. }
            | Self::HookStarted { .. }
            | Self::HookFinished { .. }
            | Self::HookMessage { .. }
            | Self::InstructionsLoaded { .. }
            | Self::RecoveryTaken { .. }
            | Self::PromptCacheDropped { .. }
            | Self::ModelRetry { .. }
            | Self::Parked { .. }
            | Self::Unparked { .. }
            | Self::AgentStarted { .. }
            | Self::TurnFinished { .. }
            | Self::RunFinished { .. }
            | Self::RunLost { .. }
            | Self::Lagged { .. }
            | Self::McpServer { .. }
            | Self::Alert { .. } => Weight::Kept,
        }
    }

    /// Counts the bytes of the texts it holds, to bound what waits.
    pub fn n_bytes(&self) -> usize {
        match self {
            Self::TextDelta { text, .. }
            | Self::ReasoningDelta { text, .. }
            | Self::MessageCompleted { text, .. }
            | Self::ToolFinished { text, .. }
            | Self::ToolProgress { text, .. }
            | Self::HookMessage { text, .. } => text.len(),
            Self::InstructionsLoaded { path, .. } => path.len(),
            Self::ModelStreamed { json, .. } => json.len(),
            Self::MessageRecorded { message } => message.n_bytes(),
            Self::ToolInputPreview { input, .. } => input.len(),
            Self::PermissionAsked { input, reason, suggestions, .. } => {
                input.len() + reason.len() + suggestions.iter().map(String::len).sum::<usize>()
            }
            Self::PermissionDecided { reason, allow_rules, .. } => {
                reason.len() + allow_rules.iter().map(String::len).sum::<usize>()
            }
            Self::ModelRetry { cause: text, .. }
            | Self::HookStarted { label: text, .. }
            | Self::AgentStarted { description: text, .. }
            | Self::RunLost { reason: text, .. }
            | Self::Alert { what: text } => text.len(),
            Self::HookFinished { effect, stdout, stderr, .. } => {
                effect.len() + stdout.len() + stderr.len()
            }
            Self::McpServer { server, error, .. } => {
                server.len() + error.as_ref().map_or(0, |it| it.len())
            }
            Self::Agent { event, .. } => event.n_bytes(),
            Self::RunStarted { .. }
            | Self::TurnStarted { .. }
            | Self::StepStarted { .. }
            | Self::ContextAssembled { .. }
            | Self::ShaperApplied { .. }
            | Self::TokensUsed { .. }
            | Self::Withdrawn { .. }
            | Self::ToolRequested { .. }
            | Self::ModeChanged { .. }
            | Self::PermissionSettled { .. }
            | Self::ToolStarted { .. }
            | Self::RecoveryTaken { .. }
            | Self::PromptCacheDropped { .. }
            | Self::Parked { .. }
            | Self::Unparked { .. }
            | Self::TurnFinished { .. }
            | Self::RunFinished { .. }
            | Self::Lagged { .. } => 0,
        }
    }
}
