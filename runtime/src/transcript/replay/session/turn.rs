//! A turn of a session, walked again, and what the session makes of its end.

use std::{mem, sync::Arc};

use super::{Session, mode_at};
use crate::{
    ids::ToolUseId,
    lease::{LeaseRefused, MaxCost, Price},
    ports::agents::AgentPlacement,
    run::RunEnd,
    session::{AgentRequest, CallName, SessionInput, SpawnId, TreeAnswer, TurnKey, TurnRemains},
    step1_settings_resolution::AgentLimits,
    step9_stop_check::RunBudget,
    time::Timestamp,
    tokens::{Tokens, Usage},
    transcript::{
        entry::{Line, Record, RecordKind},
        load::UsageTotals,
        replay::{
            ReplayError, StoredTexts, background,
            line::{SealedLine, excerpt},
            rerun::{Rerun, Walked, catalogue, joined_tools},
            window::{TurnLines, closed_outcomes, record},
        },
    },
    turn::{
        TurnSetup,
        effect::{Append, HistoryUpdate, TurnReport},
    },
};

/// Who had a sub-agent of a run started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentStarter {
    Call(ToolUseId),
    /// A hook that has one verify, of which no record names the call.
    Hook,
}

impl Session {
    /// Walks a turn again. `lines` are all lines of the file, `is_last` says that no run of this
    /// opening follows.
    pub(in crate::transcript::replay) fn turn(
        &mut self,
        window: &TurnLines<'_>,
        lines: &[SealedLine<'_>],
        is_last: bool,
        stored: StoredTexts<'_>,
    ) -> Result<(), ReplayError> {
        self.run.turns = window.turn;
        let stream = self.machine.conversation().stream.child(self.run.id.as_str());
        let closing = window.closing(stream, self.run.turns);
        let end = closing.and_then(|_| window.end_reason());
        // The process that resumes a session whose process was killed closes it with keys of its own.
        let is_followed = match end {
            Some((_, RunEnd::NotRecorded)) => false,
            Some((_, RunEnd::Crashed)) => !is_last,
            _ => true,
        };
        let (recorded, torn) = window.recorded(closing);
        let started = self.started(window)?;
        if !recorded.is_empty() {
            self.nothing_unexplained(lines)?;
        }
        let report =
            if recorded.is_empty() { None } else { self.walk(&started, recorded, stored)? };
        // A mode that was set meanwhile holds, whatever of the turn is lost.
        let overrides = &mut self.machine.conversation_mut().memory.overrides;
        torn.iter().filter_map(|it| record(it)).for_each(|it| overrides.note(&it.what));
        self.note_kept(window, lines, stored)?;
        let Some((key, _)) = started else {
            return self.finish_unfollowed(window, closing, report);
        };
        if !is_followed {
            self.lose_track(lines);
            return self.finish_unfollowed(window, closing, report);
        }
        let next = lines.get(window.end..).unwrap_or_default();
        match (closing, end, report) {
            (Some(first), Some((at, end)), _) => {
                self.count_agents(key, at, next, Usage::default());
                self.end_turn(key, at, end, window, first);
                let unexplained = self.decisions.as_mut().map(|it| mem::take(&mut it.unexplained));
                let before = unexplained.unwrap_or_default().into_iter().map(|it| &lines[it]);
                let closed = window.lines.iter().skip(first).copied();
                before.chain(closed).try_for_each(|line| self.compare(line))?;
            }
            (_, _, Some(report)) => {
                let at = self.handed_on_at(next).or(window.lines.last().map(|it| it.timestamp()));
                let at = at.unwrap_or_default();
                self.count_agents(key, at, next, report.usage);
                for ended in background::ended(lines, window.end, &self.run.id) {
                    self.feed(at, ended);
                }
                if let Some(RecordKind::Mode(set)) = mode_at(lines, window.end) {
                    self.feed(at, SessionInput::SetMode(set.mode));
                }
                self.feed(at, SessionInput::TurnDone { key, report: Box::new(report) });
                self.feed(at, SessionInput::Flush);
            }
            // The file ends here.
            _ => {}
        }
        Ok(())
    }

    /// The turn that the machine started, where it is followed.
    fn started(
        &mut self,
        window: &TurnLines<'_>,
    ) -> Result<Option<(TurnKey, Box<TurnSetup>)>, ReplayError> {
        let Some(decisions) = &mut self.decisions else { return Ok(None) };
        let turn = decisions.turn.take().filter(|(_, setup)| setup.number == window.turn);
        if turn.is_none() || !decisions.made.is_empty() {
            let first = window.lines.first();
            let expected = decisions.made.front().map(excerpt).unwrap_or_default();
            let (line, found) =
                first.map(|it| (it.number, excerpt(&it.line()))).unwrap_or_default();
            return Err(ReplayError::Decided { line, expected, found });
        }
        Ok(turn)
    }

    fn walk(
        &mut self,
        started: &Option<(TurnKey, Box<TurnSetup>)>,
        recorded: &[&SealedLine<'_>],
        stored: StoredTexts<'_>,
    ) -> Result<Option<TurnReport>, ReplayError> {
        let models = catalogue(recorded, stored)?.map(Arc::new);
        if let Some(models) = &models {
            self.machine.conversation_mut().memory.catalogue = Arc::clone(models);
        }
        if let Some(tools) = joined_tools(recorded, stored)? {
            self.machine.conversation_mut().join_tools(tools);
        }
        let budget = RunBudget { used: 0, max: None };
        let mut setup = match started {
            Some((_, setup)) => (**setup).clone(),
            None => self.machine.conversation_mut().turn(&self.run, budget),
        };
        if let Some(models) = models {
            setup.memory.catalogue = models;
        }
        // The machine started the turn before it was known what had joined.
        let conversation = self.machine.conversation_mut();
        setup.facts = Arc::clone(&conversation.facts);
        setup.memory.joined.clone_from(&conversation.memory.joined);
        let Walked { report, appends, has_verified } =
            Rerun::new(setup, recorded, stored).walk()?;
        if let Some(decisions) = self.decisions.as_mut().filter(|_| has_verified) {
            decisions.starter.get_or_insert(AgentStarter::Hook);
        }
        for (at, append) in appends {
            let Some((key, _)) = started else {
                let conversation = self.machine.conversation_mut();
                append.lines.iter().for_each(|it| conversation.note(it));
                append.updates.into_iter().for_each(|it| self.machine.conversation_mut().apply(it));
                continue;
            };
            if append.updates.iter().any(HistoryUpdate::is_stop_request) {
                self.feed(at, SessionInput::Stop);
            }
            if let Some(decisions) = &mut self.decisions {
                decisions.starter = starter(&append).or(decisions.starter.take());
            }
            self.feed(at, SessionInput::Append { key: *key, append: Box::new(append) });
        }
        Ok(report)
    }

    /// Takes in how a turn ended whose machine is not followed.
    fn finish_unfollowed(
        &mut self,
        window: &TurnLines<'_>,
        closing: Option<usize>,
        report: Option<TurnReport>,
    ) -> Result<(), ReplayError> {
        match (closing, report) {
            (Some(first), _) => window.close(first, self.machine.conversation_mut(), &self.run),
            // Of a turn that was ended from outside, nothing is handed on.
            (None, Some(report)) => {
                self.machine.conversation_mut().hand_on(report.memory);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Commands and agents that went on in the background while a turn was under way, and messages that came.
    fn note_kept(
        &mut self,
        window: &TurnLines<'_>,
        lines: &[SealedLine<'_>],
        stored: StoredTexts<'_>,
    ) -> Result<(), ReplayError> {
        let mut between = window.first..window.end;
        between.try_for_each(|place| match lines.get(place).and_then(record) {
            Some(it) if it.turn == 0 => self.noted(lines, place, false, stored),
            _ => Ok(()),
        })
    }

    /// When what comes after a turn was decided, as its first line says.
    fn handed_on_at(&self, next: &[SealedLine<'_>]) -> Option<Timestamp> {
        let of_run = |it: &&Record| it.run.as_ref() == Some(&self.run.id);
        let found = next.first().and_then(record).filter(of_run)?;
        (found.turn == 0).then_some(found.at)
    }

    /// Takes in what sub-agents of the run used: what its end has in addition to its own turns.
    fn count_agents(
        &mut self,
        key: TurnKey,
        at: Timestamp,
        next: &[SealedLine<'_>],
        of_turn: Usage,
    ) {
        let of_run = |it: &&Record| it.run.as_ref() == Some(&self.run.id);
        let end = next.iter().map_while(record).filter(of_run).find(|it| it.turn == 0);
        let Some(RecordKind::RunEnd { usage, .. }) = end.map(|it| &it.what) else { return };
        let own = self.machine.run_usage() + of_turn;
        let starter = self.decisions.as_mut().and_then(|it| it.starter.take());
        let (Some(used), Some(starter)) = (usage.checked_sub(own), starter) else { return };
        let (call, verifies) = match starter {
            AgentStarter::Call(call) => (call, false),
            // Whatever its id is.
            AgentStarter::Hook => ("hook".into(), true),
        };
        let limits = AgentLimits::default();
        let wanted = AgentRequest {
            spawn: SpawnId::default(),
            key,
            limits,
            call,
            part: None,
            agent_type: None,
            placement: AgentPlacement::Foreground,
            description: "".into(),
            verifies,
        };
        self.feed(at, SessionInput::SpawnAgent(wanted));
        let Some(agent) = self.decisions.as_mut().and_then(|it| it.asks_for.take()) else { return };
        let admitted = TreeAnswer::Admitted { agent: agent.clone(), result: Ok(()) };
        self.feed(at, SessionInput::TreeAnswer(admitted));
        let mut totals = UsageTotals::default();
        totals.usage = used;
        let used = vec![(agent.clone(), totals)];
        self.feed(at, SessionInput::AgentCrashed { agent, used });
    }

    /// Ends a turn from outside, as its closing says.
    fn end_turn(
        &mut self,
        key: TurnKey,
        at: Timestamp,
        end: RunEnd,
        window: &TurnLines<'_>,
        first: usize,
    ) {
        let limit = self.decisions.as_ref().and_then(|it| it.limit);
        match end {
            RunEnd::TimedOut => {
                // Without a limit nothing comes of it.
                let (run, deadline) = limit.unwrap_or_default();
                self.feed(at, SessionInput::TimeIsUp { run, deadline });
            }
            RunEnd::TreeLimit => {
                let (name, limits) = (CallName { turn: key, attempt: 0 }, AgentLimits::default());
                let max_cost = MaxCost { tokens: Tokens(0), price: Price::Unknown("".into()) };
                self.feed(at, SessionInput::CallWaits { name, limits, max_cost });
                let result = Err(LeaseRefused::TimeUsedUp);
                let refused = TreeAnswer::Debited { call: name, result };
                self.feed(at, SessionInput::TreeAnswer(refused));
            }
            RunEnd::Crashed => self.feed(at, SessionInput::TurnCrashed { key }),
            RunEnd::Error => {
                self.feed(at, SessionInput::TurnFailed { key, why: String::new() });
            }
            _ => self.feed(at, SessionInput::Interrupt),
        }
        self.feed(at, SessionInput::TurnQuiet { key, late: false });
        let committed = closed_outcomes(window.lines.get(first..).unwrap_or_default());
        let left = TurnRemains { committed, was_sent: false };
        self.feed(at, SessionInput::TurnLeft { key, left });
    }
}

/// A call in these lines that starts a sub-agent.
fn starter(append: &Append) -> Option<AgentStarter> {
    append.lines.iter().find_map(|line| match line {
        Line::Harness(record) => match &record.what {
            RecordKind::ToolIntent { call, tool, .. } if tool.as_str() == "Agent" => {
                Some(AgentStarter::Call(call.clone()))
            }
            _ => None,
        },
        Line::Conversation(_) => None,
    })
}
