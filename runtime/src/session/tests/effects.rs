//! How the world carries out what a session wants done, and what is wrong with an effect whenever it comes.

use super::{
    tallies::Tallies,
    world::{Owed, SessionWorld},
};
use crate::{
    ports::messages::MessageFate,
    session::{
        SessionEffect, SessionInput, SpawnEffect, TreeQuestion, TurnRemains, names::RunOrigin,
    },
    transcript::entry::{Line, RecordKind},
};

impl SessionWorld {
    pub(super) fn carry_out(&mut self, effect: SessionEffect) {
        match effect {
            SessionEffect::Write(batch) => {
                self.lines.insert(batch.ticket, batch.lines);
                if !self.tallies.is_writer_gone {
                    self.owed.push(Owed::Written(batch.ticket));
                }
            }
            SessionEffect::Spawn(effect) => self.spawns(effect),
            // Nobody asked for what a session does by itself.
            SessionEffect::Reply { origin: RunOrigin::Woken | RunOrigin::Resumed, .. } => {}
            SessionEffect::Reply { origin: RunOrigin::Prompt(prompt), .. } => {
                *self.replies.entry(prompt.0).or_default() += 1
            }
            SessionEffect::LeaveTurn { key } => {
                self.turn = None;
                self.owed.retain(|it| !matches!(it, Owed::Turn(of) if *of == key));
                let left = TurnRemains { was_sent: true, ..TurnRemains::default() };
                self.input(SessionInput::TurnLeft { key, left });
            }
            SessionEffect::UnwatchTime => self.owed.retain(|it| !matches!(it, Owed::Time(..))),
            SessionEffect::RefuseAgent { spawn, .. } => {
                // One that was started can be refused once, instead of its report.
                self.requests.remove(&spawn);
            }
            SessionEffect::DropRequest { spawn } => {
                let is_of_agent = self.requests.remove(&spawn);
                let is_of_message = self.tallies.sends.contains_key(&spawn);
                assert!(is_of_agent || is_of_message, "a request is answered twice");
                Tallies::answer(&mut self.tallies.sends, spawn);
            }
            SessionEffect::KeepEnd(end) => self.unshown.push(*end),
            SessionEffect::CloseAgent(agent) => self.owed.push(Owed::AgentCloses(agent)),
            SessionEffect::ReportAgent { agent, .. } => {
                *self.reported.entry(agent).or_default() += 1;
            }
            SessionEffect::SetMode { key, mode } => self.owed.push(Owed::Mode(key, mode)),
            SessionEffect::AdmitCall(name) => {
                Tallies::answer(&mut self.tallies.calls, Tallies::call(name));
            }
            SessionEffect::AskTop(question) => self.asks_top(question),
            SessionEffect::AnswerAgent { agent, answer } => self.answers_below(&agent, &answer),
            SessionEffect::Begun(prompt) => {
                let is_start = |line: &Line| {
                    let what = line.record().map(|it| &it.what);
                    matches!(what, Some(RecordKind::RunStart { .. }))
                };
                let mut safe = self.lines.iter().filter(|(it, _)| self.tallies.safe.contains(*it));
                assert!(safe.any(|(_, it)| it.iter().any(is_start)), "its beginning is not safe");
                Tallies::answer(&mut self.tallies.begun, prompt);
            }
            SessionEffect::MessageTaken { number, fate } => {
                Tallies::answer(&mut self.tallies.messages, number);
                if fate == MessageFate::Taken && self.tallies.messages.contains_key(&number) {
                    self.tallies.taken.insert(format!("message-{}", number.0).as_str().into());
                }
            }
            SessionEffect::DeliverMessage { spawn, .. } => self.owed.push(Owed::Delivery(spawn)),
            SessionEffect::MessageDelivered { spawn, .. }
            | SessionEffect::RefuseMessage { spawn, .. } => {
                Tallies::answer(&mut self.tallies.sends, spawn);
            }
            SessionEffect::Publish(_)
            | SessionEffect::Ready { .. }
            | SessionEffect::TurnRecorded { .. }
            | SessionEffect::SetAgentsMode(_)
            | SessionEffect::StopAfterTurn { .. } => {}
        }
        // A turn whose report was taken is over.
        if self.turn.is_some_and(|key| !self.machine.is_in_flight(key)) {
            self.turn = None;
        }
    }

    fn spawns(&mut self, effect: SpawnEffect) {
        match effect {
            SpawnEffect::ReadSettings => self.owed.push(Owed::Settings),
            SpawnEffect::LoadEarlier => self.owed.extend(self.earlier.take().map(Owed::Earlier)),
            SpawnEffect::StartTurn { key, .. } => {
                assert_eq!(self.turn.replace(key), None, "two turns at once");
                assert_eq!(self.n_closed, 0, "a turn starts after the end");
                self.unshown.clear();
                self.owed.push(Owed::Turn(key));
            }
            SpawnEffect::StopTurn { key } => {
                assert_eq!(self.turn, Some(key), "a turn is ended that is not under way");
                self.owed.push(Owed::Quiet(key));
            }
            SpawnEffect::WatchTime { run, deadline } => {
                self.owed.retain(|it| !matches!(it, Owed::Time(..)));
                self.owed.push(Owed::Time(run, deadline));
            }
            SpawnEffect::StartAgent { spawn, agent, background, again, .. } => {
                assert!(self.running.insert(agent.clone()), "an agent is started twice");
                self.owed.push(Owed::Agent(agent.clone()));
                if again.is_some() {
                    return self.owed.push(Owed::GoesOn(spawn, agent));
                }
                assert!(self.requests.remove(&spawn), "a request is answered twice");
                if let Some(background) = background {
                    *self.tallies.beginnings.entry(agent.clone()).or_default() += 1;
                    self.background.insert(agent);
                    self.input(SessionInput::AgentKept(background));
                }
            }
            SpawnEffect::WatchFiles { files } => self.tallies.watched = files.to_vec(),
            SpawnEffect::FireHooks(_) => self.owed.push(Owed::Hook),
            SpawnEffect::CloseTranscript => self.closes(),
        }
    }

    /// The transcript is closed once the commands in the background have ended.
    fn closes(&mut self) {
        self.n_closed += 1;
        // What reads it ends with the session.
        let n_owed = self.owed.len();
        self.owed.retain(|it| !matches!(it, Owed::Earlier(_)));
        self.is_not_open |= self.owed.len() < n_owed || self.earlier.take().is_some();
        if self.end_shells() {
            self.input(SessionInput::Close);
        }
    }

    fn asks_top(&mut self, question: TreeQuestion) {
        assert!(!self.is_top(), "the top asks itself");
        match question {
            TreeQuestion::Admit { agent, .. } => self.admits(agent),
            TreeQuestion::Debit(debit) => self.asks_for_share(debit.call),
            TreeQuestion::Settle { .. } => {}
            TreeQuestion::Close { agent } => {
                self.tallies.admitted.remove(&agent);
            }
        }
    }
}
