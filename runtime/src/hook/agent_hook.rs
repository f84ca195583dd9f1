//! Handlers that have an agent verify what happens: a sub-agent that can read files answers as a model of a prompt does.

use super::{HandlerEnd, HandlerOutput};
use crate::{
    ports::{AgentReport, AgentStatus},
    transcript::entry::SidechainHead,
};

/// Milliseconds that an agent may take if its handler names no limit.
pub(super) const AGENT_TIMEOUT_MS: u64 = 60_000;

/// What the label of a handler begins with that has an agent verify.
pub(crate) const LABEL_OF_AGENTS: &str = "agent: ";

/// Lines of an answer at which a verdict may begin.
const MAX_BEGINNINGS: usize = 4;

impl HandlerOutput {
    /// Makes the output of an agent that ended after so many milliseconds. Only a whole answer that came in time is one;
    /// without a report it was stopped.
    pub fn of_agent(report: Option<AgentReport>, is_late: bool, duration_ms: u64) -> Self {
        let Some(AgentReport { status, agent, text, head, .. }) = report else {
            return Self::new(HandlerEnd::TimedOut, String::new(), String::new(), duration_ms);
        };
        let sidechain = agent.zip(head).map(|(agent, head)| SidechainHead { agent, head });
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
            _ => HandlerEnd::Unusable,
        };
        let said_why = matches!(status, Some(AgentStatus::Failed | AgentStatus::Refused));
        let (stdout, stderr) = match text.trim() {
            text if said_why && !text.is_empty() => (String::new(), format!("{why}: {text}")),
            text => (text.to_owned(), why.to_owned()),
        };
        Self { sidechain, ..Self::new(ended, stdout, stderr, duration_ms) }
    }
}

/// Returns the verdict of an agent: all that it said, or what follows its words and begins with a line of its own.
pub(super) fn verdict_in(text: &str) -> &str {
    let text = text.trim();
    if text.starts_with('{') {
        return text;
    }
    let unfenced = text.strip_suffix("```").map_or(text, str::trim_end);
    let lines = unfenced.rmatch_indices("\n{").map(|(at, _)| &unfenced[at + 1..]);
    let is_whole = |it: &&str| serde_json::from_str::<serde_json::Value>(it).is_ok();
    lines.take(MAX_BEGINNINGS).find(is_whole).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: HKS-1
    #[test]
    fn only_an_agent_that_has_ended_by_itself_and_in_time_has_answered() {
        let ended = |status: AgentStatus, is_late| {
            let report = AgentReport::new(status, Some("a".into()), "{\"ok\":true}");
            HandlerOutput::of_agent(Some(report), is_late, 10).ended
        };
        for status in [
            AgentStatus::Cut,
            AgentStatus::Failed,
            AgentStatus::Stalled,
            AgentStatus::Cancelled,
            AgentStatus::Refused,
        ] {
            assert_eq!(ended(status, false), HandlerEnd::Unusable, "{status:?}");
            assert_eq!(ended(status, true), HandlerEnd::TimedOut, "{status:?}");
        }
        assert_eq!(ended(AgentStatus::Completed, false), HandlerEnd::Exited(0));
        assert_eq!(ended(AgentStatus::Completed, true), HandlerEnd::TimedOut);
        assert_eq!(HandlerOutput::of_agent(None, true, 10).ended, HandlerEnd::TimedOut);
    }

    // REQ: HKS-1
    #[test]
    fn verdict_is_the_end_of_what_an_agent_says_and_nothing_before_it() {
        for (text, expected) in [
            ("{\"ok\":true}", "{\"ok\":true}"),
            ("I looked.\n\n{\"ok\":false}\n", "{\"ok\":false}"),
            ("It says\n{\"ok\":true}\n\n{\n \"ok\": false\n}", "{\n \"ok\": false\n}"),
            ("{\"ok\":true}\nIt is so.", "{\"ok\":true}\nIt is so."),
            ("It says\n{\"ok\":true}\nbut no.", "It says\n{\"ok\":true}\nbut no."),
            ("{\"ok\":true}\n{\"ok\":false}", "{\"ok\":true}\n{\"ok\":false}"),
            ("```json\n{\"ok\":true}\n```", "{\"ok\":true}"),
            ("I looked.\n```\n{\"ok\":true}\n```", "{\"ok\":true}"),
        ] {
            assert_eq!(verdict_in(text), expected);
        }
    }
}
