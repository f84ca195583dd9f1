//! Answers to what a session waits for.

use std::sync::Arc;

use super::{
    checks::append,
    world::{Owed, SessionWorld},
};
use crate::{
    digest::Digest,
    lease::{MaxCost, Price},
    permission::PermissionMode,
    ports::agents::AgentPlacement,
    run::{RunEnd, conversation::TurnMemory, outcome::RunError},
    session::{OpenedTranscript, SessionInput, names::CallName, names::TurnKey},
    step1_settings_resolution::AgentLimits,
    tokens::{Tokens, Usage},
    transcript::entry::{Line, ModeChange, RecordKind},
    turn::effect::TurnReport,
};

impl SessionWorld {
    /// Answers one of the things that are waited for.
    pub(super) fn answer(&mut self, choice: u64) {
        if self.owed.is_empty() {
            return;
        }
        let n_owed = self.owed.len() as u64;
        let (at, how) = (choice % n_owed, choice / n_owed);
        let owed = self.owed.remove(at as usize);
        match owed {
            Owed::Open => self.opens(how),
            Owed::Earlier(earlier) => self.reads_earlier(*earlier, how),
            Owed::Written(ticket) => self.writer_answers(ticket, how),
            Owed::Turn(key) => self.turn_does(key, how),
            Owed::Quiet(key) => {
                self.input(SessionInput::TurnQuiet { key, late: how.is_multiple_of(4) });
            }
            Owed::Mode(key, mut mode) => {
                // A turn takes them in the order in which they came.
                for it in self.owed[..at as usize].iter_mut().rev() {
                    if let Owed::Mode(of, earlier) = it
                        && *of == key
                    {
                        std::mem::swap(earlier, &mut mode);
                    }
                }
                self.record_mode(key, ModeChange { mode, call: None });
            }
            Owed::Settings => self.input(SessionInput::SettingsRead(match how % 2 {
                0 => None,
                _ => Some(Arc::new(self.machine.merge_order().merge())),
            })),
            Owed::Agent(agent) => self.agent_ends(agent, how),
            Owed::AgentCloses(agent) => self.agent_is_over(&agent, Err(RunError::Ended)),
            Owed::Delivery(spawn) => self.is_delivered(spawn, how),
            Owed::GoesOn(spawn, agent) => self.goes_on(spawn, &agent),
            Owed::NotBegun(spawn) => self.did_not_go_on(spawn, how),
            Owed::Shell(shell) => self.shell_ends(&shell),
            Owed::Hook => self.hook_ends(how),
            Owed::Top(answer) => self.top_answers(answer),
            Owed::Time(run, deadline) => self.input(SessionInput::TimeIsUp { run, deadline }),
        }
    }

    fn opens(&mut self, how: u64) {
        let opened = match how % 8 {
            0 => {
                (self.is_not_open, self.tallies.is_writer_gone) = (true, true);
                OpenedTranscript::Failed("no".into())
            }
            _ if self.earlier.is_some() => OpenedTranscript::Existing,
            _ => OpenedTranscript::New,
        };
        self.input(SessionInput::Opened(opened));
    }

    fn writer_answers(&mut self, mut ticket: crate::session::WriteTicket, how: u64) {
        // A writer answers in order.
        for it in &mut self.owed {
            if let Owed::Written(other) = it
                && *other < ticket
            {
                std::mem::swap(other, &mut ticket);
            }
        }
        if how.is_multiple_of(16) && !self.is_ending {
            // What was handed over by then is lost with it.
            self.lost_up_to = self.lines.keys().copied().max().unwrap_or_default();
        }
        let result = if ticket <= self.lost_up_to {
            self.tallies.has_lost = true;
            Err("the disk is full".into())
        } else {
            self.tallies.safe.insert(ticket);
            Ok(Digest::of(&ticket.0.to_le_bytes()))
        };
        self.input(SessionInput::Written { ticket, result });
    }

    /// The writer crashes: another one follows, or none can be had. Answers of the first may still come.
    pub(super) fn writer_crashes(&mut self, how: u64) {
        let is_open = self.lines.keys().next().is_some() && !self.tallies.is_writer_gone;
        if !is_open || self.n_closed != 0 {
            return;
        }
        let is_gone = how.is_multiple_of(8);
        if is_gone || how.is_multiple_of(2) {
            self.owed.retain(|it| !matches!(it, Owed::Written(_)));
        }
        // What was not read by then is not taken over any more.
        self.is_not_open |= is_gone && self.owed.iter().any(|it| matches!(it, Owed::Earlier(_)));
        self.tallies.has_lost |= is_gone;
        self.tallies.is_writer_gone = is_gone;
        self.input(SessionInput::Opened(match is_gone {
            true => OpenedTranscript::Failed("no writer can be had".into()),
            false => OpenedTranscript::Restarted,
        }));
    }

    fn turn_does(&mut self, key: TurnKey, how: u64) {
        // Messages of a turn that was ended may still be on their way.
        if how % 17 < 13 {
            self.owed.push(Owed::Turn(key));
        }
        match how % 17 {
            0..=2 => {
                let append = Box::new(append(how.is_multiple_of(2)));
                self.input(SessionInput::Append { key, append });
            }
            3 => self.input(SessionInput::Flush),
            4 => self.spawn(key),
            5 => self.spawn_in(key, AgentPlacement::Background),
            6 => self.asks_for_call(key),
            7 => self.show_end(key),
            8 => self.sends_message(key, how / 17),
            9 => self.gives_up_call(how / 17),
            10 => self.keeps_shell(),
            11 => self.watches(how / 17),
            12 => self.changes_mode(key, how / 17),
            13 => self.input(SessionInput::TurnFailed { key, why: "no settings".into() }),
            14 => self.input(SessionInput::TurnCrashed { key }),
            15 => self.done(key, None),
            _ => self.done(key, Some(RunEnd::NoPendingTools)),
        }
    }

    fn asks_for_call(&mut self, key: TurnKey) {
        self.n_attempts += 1;
        let limits = AgentLimits { max_tree_tokens: Some(900), ..AgentLimits::default() };
        let max_cost = MaxCost { tokens: Tokens(300), price: Price::Unknown("m".into()) };
        let name = CallName { turn: key, attempt: self.n_attempts };
        self.tallies.calls.insert(super::tallies::Tallies::call(name), 0);
        self.input(SessionInput::CallWaits { name, limits, max_cost });
    }

    /// A call of the turn puts the session into another mode.
    fn changes_mode(&mut self, key: TurnKey, how: u64) {
        let mode = [PermissionMode::Default, PermissionMode::AcceptEdits][(how % 2) as usize];
        let call = Some("toolu_mode".into());
        self.record_mode(key, ModeChange { mode, call });
    }

    /// The turn records a mode. What somebody asked for and it has not recorded yet comes after that.
    fn record_mode(&mut self, key: TurnKey, change: ModeChange) {
        if !self.machine.is_in_flight(key) {
            return;
        }
        let is_due = |it: &Owed| matches!(it, Owed::Mode(of, _) if *of == key);
        let is_last = change.call.is_some() && self.machine.modes_due.is_empty();
        if is_last && !self.owed.iter().any(is_due) {
            self.tallies.mode = Some(change.mode);
        }
        let run = self.machine.summary().run;
        let mut append = append(false);
        let record =
            crate::transcript::entry::Record::new(self.now.at, run, 1, RecordKind::Mode(change));
        append.lines.push(Line::Harness(Box::new(record)));
        self.input(SessionInput::Append { key, append: Box::new(append) });
    }

    pub(super) fn done(&mut self, key: TurnKey, end: Option<RunEnd>) {
        // The turn hands on what it was given and what it has recorded since.
        let overrides = self.machine.conversation().memory.overrides.clone();
        let report = TurnReport {
            append: Some(Box::new(append(false))),
            end,
            usage: Usage::default(),
            memory: TurnMemory { overrides, ..TurnMemory::default() },
            error: None,
            fallback: None,
        };
        self.input(SessionInput::TurnDone { key, report: Box::new(report) });
    }
}
