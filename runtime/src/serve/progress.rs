//! Where the run of a session is, as its events show it.

use std::sync::Arc;

use crate::{
    event::Event,
    governor::ParkReason,
    ids::{ApprovalId, RunId},
    step::Step,
    time::Timestamp,
};

/// Where the run under way is. Without a run all is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// The run under way.
    pub run: Option<RunId>,
    /// The turn of the run, from 1.
    pub turn: u32,
    /// The step of the turn; `None` before the first.
    pub step: Option<Step>,
    /// When the run came to where it is.
    pub since: Timestamp,
    /// Questions that are open, the oldest first.
    pub asked: Vec<ApprovalId>,
    /// Number of sub-agents at work.
    pub n_agents: u32,
    /// Why the provider may not be called, while it may not.
    parked: Option<ParkReason>,
    /// The code of the failure that a model call is repeated after.
    retry: Option<&'static str>,
    /// Calls of tools that run, by the names of the tools.
    tools: Vec<Arc<str>>,
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunWait {
    /// An answer to this question, the oldest of several.
    Approval(ApprovalId),
    /// A provider whose limits are used up.
    Provider(ParkReason),
    /// The next attempt of a model call, after a failure with this code.
    Retry(&'static str),
    /// An answer of the model.
    Model,
    /// The number of sub-agents that run.
    Agents(u32),
    /// Tools with these names, in the order in which they began.
    Tools(Vec<Arc<str>>),
}

impl RunProgress {
    /// Notes an event of the session, in the order of their numbers.
    pub fn observe(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::RunStarted { run, .. } => {
                *self = Self { run: Some(run.clone()), since: at, ..Self::default() };
            }
            Event::RunFinished { .. } | Event::RunLost { .. } => *self = Self::default(),
            Event::TurnStarted { turn } => (self.turn, self.step, self.since) = (*turn, None, at),
            Event::StepStarted { turn, step } => {
                (self.turn, self.step, self.since) = (*turn, Some(*step), at);
                self.retry = None;
            }
            Event::ModelRetry { error, .. } => self.retry = Some(error),
            Event::TextDelta { .. } | Event::ReasoningDelta { .. } => self.retry = None,
            Event::Parked { reason, .. } => self.parked = Some(*reason),
            Event::Unparked { .. } => self.parked = None,
            Event::ToolStarted { tool, .. } => self.tools.push(tool.to_string().into()),
            Event::ToolFinished { tool, .. } => {
                let index = self.tools.iter().position(|it| **it == *tool.as_str());
                index.map(|it| self.tools.remove(it));
            }
            Event::AgentStarted { .. } => self.n_agents += 1,
            Event::PermissionAsked { .. } | Event::PermissionSettled { .. } => self.asked(event),
            Event::Agent { event, .. } => match &**event {
                Event::RunFinished { .. } | Event::RunLost { .. } => {
                    self.n_agents = self.n_agents.saturating_sub(1);
                }
                event => self.asked(event),
            },
            _ => {}
        }
    }

    /// Returns what the run waits for; `None` while it works, and without a run.
    pub fn waits_for(&self) -> Option<RunWait> {
        if let Some(id) = self.asked.first() {
            return Some(RunWait::Approval(id.clone()));
        }
        if let Some(reason) = self.parked {
            return Some(RunWait::Provider(reason));
        }
        if let Some(code) = self.retry {
            return Some(RunWait::Retry(code));
        }
        match self.step? {
            Step::ModelCall => Some(RunWait::Model),
            Step::ToolExecution if 0 < self.n_agents => Some(RunWait::Agents(self.n_agents)),
            Step::ToolExecution => Some(RunWait::Tools(self.tools.clone())),
            _ => None,
        }
    }

    /// Takes in a question of the session or, however deep, of one of its sub-agents.
    fn asked(&mut self, event: &Event) {
        match event {
            Event::PermissionAsked { key, .. } if !self.asked.contains(&key.id) => {
                self.asked.push(key.id.clone());
            }
            Event::PermissionSettled { id, .. } => self.asked.retain(|it| it != id),
            Event::Agent { event, .. } => self.asked(event),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-5
    #[test]
    fn run_waits_for_what_its_last_events_name_and_for_nothing_once_it_has_ended() {
        let mut progress = RunProgress::default();
        let mut after = |event: Event| {
            progress.observe(&event, Timestamp(7));
            progress.waits_for()
        };
        let run = RunId::from("r");
        assert_eq!(after(Event::RunStarted { run: run.clone(), woken: false }), None);
        assert_eq!(after(Event::TurnStarted { turn: 1 }), None);
        let step = |step| Event::StepStarted { turn: 1, step };
        assert_eq!(after(step(Step::ModelCall)), Some(RunWait::Model));
        let retry = Event::ModelRetry {
            attempt: 1,
            max_retries: 10,
            delay_ms: 5,
            status: None,
            error: "overloaded",
            cause: "busy".into(),
        };
        assert_eq!(after(retry), Some(RunWait::Retry("overloaded")));
        let text = Event::TextDelta { attempt: 1, text: "a".into() };
        assert_eq!(after(text), Some(RunWait::Model), "it answers again");
        assert_eq!(after(step(Step::ToolExecution)), Some(RunWait::Tools(Vec::new())));
        let started = |call: &str| Event::ToolStarted { call: call.into(), tool: "Bash".into() };
        let bash = || Arc::<str>::from("Bash");
        assert_eq!(after(started("a")), Some(RunWait::Tools(vec![bash()])));
        assert_eq!(after(started("b")), Some(RunWait::Tools(vec![bash(), bash()])));
        let finished = Event::ToolFinished {
            call: "a".into(),
            tool: "Bash".into(),
            is_error: false,
            text: "".into(),
        };
        assert_eq!(after(finished), Some(RunWait::Tools(vec![bash()])));
        assert_eq!((progress.run.as_ref(), progress.turn), (Some(&run), 1));
        assert_eq!(progress.since, Timestamp(7));
        progress.observe(&Event::RunLost { run, reason: "x".into() }, Timestamp(8));
        assert_eq!(progress, RunProgress::default());
    }
}
