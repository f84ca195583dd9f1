//! What holds of every session that has ended, whatever happened to it.

use std::collections::{BTreeMap, BTreeSet};

use super::world::SessionWorld;
use crate::{
    event::Event,
    ids::{AgentId, EntryId, ToolUseId},
    tokens::Tokens,
    transcript::{
        entry::{BackgroundRecord, Line, RecordKind},
        load::BackgroundTasks,
    },
    turn::effect::Append,
};

impl SessionWorld {
    /// What holds of every session that has ended.
    pub(super) fn check(&mut self) {
        let answered: Vec<_> = self.replies.iter().map(|(prompt, n)| (*prompt, *n)).collect();
        let expected: Vec<_> = (1..=self.n_prompts).map(|it| (it, 1)).collect();
        assert_eq!(answered, expected, "prompts and how often each was answered");
        assert_eq!(self.turn, None, "a turn was never ended");
        assert!(1 <= self.n_closed, "the transcript was never closed");
        assert!(self.requests.is_empty(), "requests without an answer: {:?}", self.requests);
        let twice = self.reported.iter().find(|(agent, n)| {
            let n_lives = self.tallies.beginnings.get(*agent).map_or(1, |it| (*it).max(1));
            // An agent that was to go on and did not is reported, too, to nobody.
            self.tallies.sends.is_empty() && n_lives < **n
        });
        assert_eq!(twice, None, "an agent was reported twice");
        let unanswered = self.tallies.sends.iter().find(|(_, n)| **n != 1);
        assert_eq!(unanswered, None, "a message of a call and how often it was answered");
        self.check_tree_is_free();
        self.check_so_far();
        if self.is_not_open {
            return;
        }
        self.check_lines(true);
        self.check_mode();
        self.check_shells();
        self.check_hooks();
        self.check_messages();
        self.check_notes();
        self.check_background();
    }

    /// What holds at any time.
    pub(super) fn check_so_far(&self) {
        let twice = self.replies.iter().find(|(_, n)| 1 < **n);
        assert_eq!(twice, None, "a prompt was answered twice");
        let twice = self.tallies.begun.iter().find(|(_, n)| 1 < **n);
        assert_eq!(twice, None, "the beginning of a run was reported twice");
        let twice = self.tallies.messages.iter().find(|(_, n)| 1 < **n);
        assert_eq!(twice, None, "a message was answered twice");
        let twice = self.tallies.sends.iter().find(|(_, n)| 1 < **n);
        assert_eq!(twice, None, "a call was answered twice");
        self.tallies.check_calls();
        if !self.is_not_open {
            self.check_lines(false);
        }
    }

    /// All places and shares are given back.
    fn check_tree_is_free(&mut self) {
        assert_eq!(self.machine.agents.n_places_taken(), 0, "a place was not given back");
        if let Some(tree) = self.machine.agents.tree() {
            assert_eq!(tree.reserved().0, Tokens(0), "a share was not given back");
        }
        let admitted = &self.tallies.admitted;
        assert!(admitted.is_empty(), "the top does not know that they are over: {admitted:?}");
    }

    /// Runs begin and end in turn.
    fn check_lines(&self, is_over: bool) {
        let mut open = None;
        for line in self.written() {
            let Line::Harness(record) = line else { continue };
            match &record.what {
                RecordKind::RunStart { .. } => assert_eq!(open.replace(record.run.clone()), None),
                RecordKind::RunEnd { .. } => assert_eq!(open.take(), Some(record.run.clone())),
                // These are of the session, whatever run is under way.
                RecordKind::Hook { .. } | RecordKind::Mode(_) if record.run.is_none() => {}
                RecordKind::Shell(_) | RecordKind::BackgroundAgent(_) => {}
                _ => assert_eq!(
                    open.clone().flatten(),
                    record.run,
                    "of no run under way: {record:?}"
                ),
            }
        }
        if is_over {
            assert_eq!(open, None, "a run has no end");
        }
    }

    /// The mode is the one that was asked for last in this process, and is on record.
    fn check_mode(&self) {
        let mode = self.machine.conversation().memory.overrides.mode;
        assert_eq!(mode, self.tallies.mode, "the mode that was asked for last");
        let recorded = self.written().into_iter().filter_map(Line::record).rev();
        let recorded = recorded.filter_map(|it| match &it.what {
            RecordKind::Mode(change) => Some(change.mode),
            _ => None,
        });
        if mode.is_some() && self.machine.conversation().has_begun {
            assert_eq!(recorded.into_iter().next(), mode, "the mode on record");
        }
    }

    /// The beginning of each command is on record once, and its end once with a report, or for the next process.
    fn check_shells(&self) {
        let (mut begun, mut reported) = (BTreeMap::new(), BTreeMap::new());
        let mut tasks = BackgroundTasks::default();
        for record in self.written().into_iter().filter_map(Line::record) {
            tasks.note(record);
            let RecordKind::Shell(it) = &record.what else { continue };
            let counts = if it.state == "running" { &mut begun } else { &mut reported };
            *counts.entry(&it.shell).or_insert(0) += usize::from(!it.is_unreported);
        }
        let text = self.shown_text();
        for shell in &self.tallies.all_shells {
            let n_reported = reported.get(shell).copied().unwrap_or_default();
            let n_open = usize::from(tasks.shells.contains_key(shell));
            assert_eq!(begun.get(shell), Some(&1), "beginnings of {shell}");
            assert_eq!(n_reported + n_open, 1, "reports of {shell}, or its end is open");
            assert_eq!(text.contains(&format!("{shell} ")), n_reported == 1, "{shell}: {text}");
        }
    }

    fn shown_text(&self) -> String {
        let texts = self.written().into_iter().filter_map(|it| match it {
            Line::Conversation(line) => Some(line.message.text()),
            Line::Harness(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// How often each message is shown.
    fn n_shown(&self, id: &EntryId) -> usize {
        let is_meant = |it: &&Line| matches!(it, Line::Conversation(it) if it.message.id == *id);
        self.written().into_iter().filter(is_meant).count()
    }

    /// What each hook adds is on record once, and shown once or kept for the next turn.
    fn check_hooks(&mut self) {
        let waiting: Vec<EntryId> =
            self.machine.hooks.take_heard().into_iter().filter_map(|it| it.shows).collect();
        let records = self.written().into_iter().filter_map(Line::record);
        let shows = records.filter_map(|it| match &it.what {
            RecordKind::Hook { shows, .. } => shows.clone(),
            _ => None,
        });
        let shows: Vec<EntryId> = shows.collect();
        let dropped = "what a hook adds is dropped";
        let n_dropped = self.log.iter().filter(|it| it.contains(dropped)).count();
        assert!(self.tallies.n_hooks <= shows.len() + n_dropped, "the end of a hook is lost");
        for id in &shows {
            let n_waiting = waiting.iter().filter(|it| *it == id).count();
            assert_eq!(self.n_shown(id) + n_waiting, 1, "what the hook of {id} adds");
        }
    }

    /// Each message of the session above is on record once if it was taken, and shown once or kept.
    fn check_messages(&self) {
        let unanswered = self.tallies.messages.iter().find(|(_, n)| **n == 0);
        assert!(unanswered.is_none() || self.tallies.has_lost, "no answer: {unanswered:?}");
        let records = self.written().into_iter().filter_map(Line::record);
        let recorded = records.filter_map(|it| match &it.what {
            RecordKind::AgentMessage(it) => Some(it.message.clone()),
            _ => None,
        });
        let mut all = BTreeSet::new();
        for id in recorded {
            let n_unread = self.machine.unread.iter().filter(|it| it.0 == id).count();
            assert_eq!(self.n_shown(&id) + n_unread, 1, "{id} is shown once or kept");
            assert!(all.insert(id), "a message is on record twice");
        }
        let taken = &self.tallies.taken;
        assert!(taken.is_subset(&all), "taken and not on record: {taken:?} of {all:?}");
    }

    /// What is said about servers is published once and on record once, or waits for the next run.
    fn check_notes(&self) {
        for note in &self.tallies.notes {
            let n_waiting = self.machine.alerts.iter().filter(|it| ***it == **note).count();
            let is_record = |it: &&Line| {
                let what = it.record().map(|it| &it.what);
                matches!(what, Some(RecordKind::Alert { what }) if **what == **note)
            };
            let n_records = self.written().into_iter().filter(is_record).count();
            let published = format!("Publish({:?})", Event::Alert { what: note.as_str().into() });
            let n_published = self.log.iter().filter(|it| **it == published).count();
            assert_eq!((n_records, n_published), (1 - n_waiting, 1 - n_waiting), "{note}");
        }
    }

    /// The beginning of each agent in the background is on record once each time, and its end once with a report, or for
    /// the next process.
    fn check_background(&self) {
        let mut lives: BTreeMap<(&AgentId, &ToolUseId), usize> = BTreeMap::new();
        let mut begun: BTreeMap<AgentId, usize> = BTreeMap::new();
        let mut last = BTreeMap::new();
        let mut tasks = BackgroundTasks::default();
        for record in self.written().into_iter().filter_map(Line::record) {
            tasks.note(record);
            let RecordKind::BackgroundAgent(it) = &record.what else { continue };
            let BackgroundRecord { agent, call, state, is_unreported, .. } = it;
            let n_reports = lives.entry((agent, call)).or_default();
            if state == "running" {
                *begun.entry(agent.clone()).or_default() += 1;
                last.insert(agent, call);
            } else {
                *n_reports += usize::from(!is_unreported);
            }
        }
        assert_eq!(begun, self.tallies.beginnings, "beginnings on record");
        let text = self.shown_text();
        for (agent, call) in last {
            let n_open = usize::from(tasks.agents.contains_key(agent));
            let n_reports = lives.get(&(agent, call)).copied().unwrap_or_default();
            assert_eq!(n_reports + n_open, 1, "reports of {agent}, or its end is open");
            let of_agent = lives.iter().filter(|it| it.0.0 == agent);
            let n_reports: usize = of_agent.map(|it| *it.1).sum();
            let n_shown = text.matches(&format!("The background agent {agent} (")).count();
            assert_eq!(n_shown, n_reports, "ends of {agent} that the model is shown");
        }
        let twice = lives.iter().find(|(_, n)| 1 < **n);
        assert_eq!(twice, None, "an end is reported twice");
        self.check_kills();
    }

    /// Whichever write a killed process made last, the next one knows of each agent that it was begun and not
    /// reported.
    fn check_kills(&self) {
        let mut tasks = BackgroundTasks::default();
        let mut last: BTreeMap<&AgentId, (&ToolUseId, bool)> = BTreeMap::new();
        for batch in self.batches() {
            for record in batch.iter().filter_map(Line::record) {
                tasks.note(record);
                let RecordKind::BackgroundAgent(it) = &record.what else { continue };
                if it.state == "running" {
                    last.insert(&it.agent, (&it.call, false));
                } else if let Some((call, is_reported)) = last.get_mut(&it.agent)
                    && **call == it.call
                {
                    *is_reported |= !it.is_unreported;
                }
            }
            for (agent, (_, is_reported)) in &last {
                assert_eq!(tasks.agents.contains_key(*agent), !is_reported, "{agent}");
            }
        }
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
