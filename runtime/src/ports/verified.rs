//! Turns the report of an agent that verified into the output of its hook handler.

use super::{AgentReport, AgentStatus};
use crate::hook::{HandlerEnd, HandlerOutput};

/// Makes the output of a hook handler from the report of its agent, which took `duration_ms`. Only an agent that ended by
/// itself and in time has answered.
pub fn output_of_verifier(report: AgentReport, is_late: bool, duration_ms: u64) -> HandlerOutput {
    let AgentReport { status, agent, text, head, .. } = report;
    let why = match status {
        Some(AgentStatus::Completed) => "",
        Some(AgentStatus::Cut) => "the agent reached a limit before it answered",
        Some(AgentStatus::Stalled) => "the agent made no progress",
        Some(AgentStatus::Cancelled) => "the agent was stopped before it answered",
        Some(AgentStatus::Refused) => "the agent was not started",
        Some(AgentStatus::Failed) | None => "the agent ended with an error",
    };
    let ended = match status {
        _ if is_late => HandlerEnd::TimedOut,
        Some(AgentStatus::Completed) => HandlerEnd::Exited(0),
        // A guard that was not asked lets no call through.
        Some(AgentStatus::Refused) => HandlerEnd::Refused,
        _ => HandlerEnd::Unusable,
    };
    let said_why = matches!(status, Some(AgentStatus::Failed | AgentStatus::Refused));
    let (stdout, stderr) = match text.trim() {
        text if said_why && !text.is_empty() => (String::new(), format!("{why}: {text}")),
        text => (text.to_owned(), why.to_owned()),
    };
    HandlerOutput {
        sidechain: agent.zip(head),
        ..HandlerOutput::new(ended, stdout, stderr, duration_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: HKS-1
    #[test]
    fn only_an_agent_that_has_ended_by_itself_and_in_time_has_answered() {
        let ended = |status: AgentStatus, is_late| {
            let report = AgentReport::new(status, Some("a".into()), "{\"ok\":true}");
            output_of_verifier(report, is_late, 10).ended
        };
        for status in
            [AgentStatus::Cut, AgentStatus::Failed, AgentStatus::Stalled, AgentStatus::Cancelled]
        {
            assert_eq!(ended(status, false), HandlerEnd::Unusable, "{status:?}");
            assert_eq!(ended(status, true), HandlerEnd::TimedOut, "{status:?}");
        }
        assert_eq!(ended(AgentStatus::Refused, false), HandlerEnd::Refused);
        assert_eq!(ended(AgentStatus::Completed, false), HandlerEnd::Exited(0));
        assert_eq!(ended(AgentStatus::Completed, true), HandlerEnd::TimedOut);
    }
}
