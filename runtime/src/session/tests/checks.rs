//! What holds of every session that has ended, whatever happened to it.

use std::collections::{BTreeMap, BTreeSet};

use super::world::SessionWorld;
use crate::{
    ids::AgentId,
    transcript::{
        entry::{BackgroundRecord, Line, RecordKind},
        load::BackgroundTasks,
    },
    turn::effect::Append,
};

impl SessionWorld {
    /// What holds of every session that has ended.
    pub(super) fn check(&self) {
        let answered: Vec<_> = self.replies.iter().map(|(prompt, n)| (*prompt, *n)).collect();
        let expected: Vec<_> = (1..=self.n_prompts).map(|it| (it, 1)).collect();
        assert_eq!(answered, expected, "prompts and how often each was answered");
        assert_eq!(self.turn, None, "a turn was never ended");
        assert!(1 <= self.n_closed, "the transcript was never closed");
        assert!(self.requests.is_empty(), "requests without an answer: {:?}", self.requests);
        let twice = self.reported.iter().find(|(_, n)| 1 < **n);
        assert_eq!(twice, None, "an agent was reported twice");
        self.check_lines();
        self.check_background();
    }

    /// The beginning and the end of each agent in the background is on record once, and the model learns of it
    /// once, or another process knows that it has not.
    fn check_background(&self) {
        let mut tasks: BTreeMap<&AgentId, (usize, usize, usize, usize)> = BTreeMap::new();
        let mut shown = String::new();
        for line in self.written() {
            match line {
                Line::Conversation(line) => shown.push_str(&line.message.text()),
                Line::Harness(record) => {
                    let RecordKind::BackgroundAgent(BackgroundRecord {
                        agent,
                        state,
                        is_unreported,
                        ..
                    }) = &record.what
                    else {
                        continue;
                    };
                    let task = tasks.entry(agent).or_default();
                    task.0 += usize::from(state == "running");
                    task.1 += usize::from(state != "running");
                    task.2 += usize::from(*is_unreported);
                }
            }
        }
        for (agent, task) in &mut tasks {
            task.3 = shown.matches(&format!("The background agent {agent} (")).count();
        }
        assert!(tasks.keys().copied().eq(&self.background), "{tasks:?} of {:?}", self.background);
        for (agent, (begun, ended, unreported, reported)) in tasks {
            let counts = (begun, ended, unreported + reported);
            assert_eq!(counts, (1, 1, 1), "beginnings, ends and reports of {agent}");
        }
        self.check_kills();
    }

    /// Whichever write a killed process made last, the next one knows of each agent that it was begun and not
    /// reported.
    fn check_kills(&self) {
        let (mut tasks, mut begun) = (BackgroundTasks::default(), BTreeSet::new());
        let mut shown = String::new();
        for batch in self.batches() {
            for line in batch.iter() {
                match line {
                    Line::Conversation(line) => shown.push_str(&line.message.text()),
                    Line::Harness(record) => {
                        tasks.note(record);
                        if let RecordKind::BackgroundAgent(BackgroundRecord { agent, .. }) =
                            &record.what
                        {
                            begun.insert(agent);
                        }
                    }
                }
            }
            let is_told = |it: &AgentId| shown.contains(&format!("The background agent {it} ("));
            for agent in &begun {
                assert_eq!(tasks.agents.contains_key(*agent), !is_told(agent), "{agent}");
            }
        }
    }

    /// Runs begin and end in turn.
    fn check_lines(&self) {
        let mut open = None;
        for line in self.written() {
            let Line::Harness(record) = line else { continue };
            match &record.what {
                RecordKind::RunStart { .. } => assert_eq!(open.replace(record.run.clone()), None),
                RecordKind::RunEnd { .. } => assert_eq!(open.take(), Some(record.run.clone())),
                _ => assert_eq!(open.clone().flatten(), record.run, "a line of no run under way"),
            }
        }
        assert_eq!(open, None, "a run has no end");
    }
}

/// Lines of a turn that hold nothing.
pub(super) fn append(is_awaited: bool) -> Append {
    Append {
        lines: Vec::new(),
        stored: Vec::new(),
        title: None,
        ticket: 1,
        sync: false,
        is_awaited,
        updates: Vec::new(),
    }
}
