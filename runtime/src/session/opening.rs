//! Before the first run: the transcript is opened and an earlier conversation is read.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    Machine, Now, Readiness, SessionEffect, SpawnEffect,
    input::{EarlierConversation, OpenedTranscript},
    names::RunNumber,
    recorder::{PendingLines, WriteOrigin},
    run::record,
    signals::CompactionShare,
};
use crate::{
    ids::{AgentId, ToolUseId},
    run::RunEnd,
    time::Timestamp,
    tool::ToolOutcome,
    transcript::{
        entry::RecordKind,
        load::{Loaded, Report, ReportKind, UsageTotals},
    },
    turn::{DenialReason, OpenTurn, answer_lost_calls},
};

/// Repairs of one kind that are reported one by one.
const MAX_REPORTED: usize = 20;

impl Machine {
    /// Handles that the transcript was opened, or cannot be.
    pub(super) fn opened(&mut self, now: Now, opened: OpenedTranscript) {
        match opened {
            OpenedTranscript::Restarted => self.recorder.opened(&mut self.effects),
            OpenedTranscript::New => {
                self.recorder.opened(&mut self.effects);
                self.become_ready(now, Readiness::Ready);
            }
            OpenedTranscript::Existing => {
                self.recorder.opened(&mut self.effects);
                self.effects.push(SpawnEffect::LoadEarlier.into());
            }
            OpenedTranscript::Failed(why) => {
                // Where it was open before, no other writer follows: no further run can be recorded.
                self.become_ready(now, Readiness::Failed);
                self.lose_run(now, why);
            }
        }
    }

    /// Takes the earlier conversation, which was read.
    pub(super) fn loaded(&mut self, now: Now, earlier: Result<EarlierConversation, String>) {
        // Its writer may have been lost meanwhile: then no run can be recorded, whatever was read.
        if self.readiness != Readiness::Pending {
            return;
        }
        let Ok(earlier) = earlier else {
            return self.become_ready(now, Readiness::Failed);
        };
        let EarlierConversation { loaded, committed, agents, ended, hooks, unread, .. } = earlier;
        let EarlierConversation { problems, system, cut, .. } = earlier;
        self.notices.extend(repairs(&loaded.report));
        self.notices.extend(problems.into_iter().map(Into::into));
        self.last_run = RunNumber(loaded.tail.head.seq << 16);
        // What a run waited for is not waited for where the session goes back.
        let open = self.run_to_resume(now, &loaded).filter(|_| cut.is_none());
        self.resume_totals(now, loaded.used(), agents);
        self.conversation.resume(&loaded);
        self.resume_background(&loaded.background, ended);
        self.resume_hooks(hooks);
        self.resume_messages(unread);
        match open {
            Some(open) => {
                // It is counted when it has ended.
                self.spent = self.spent - open.usage;
                self.resume_run(now, open, system);
            }
            None => {
                self.close_earlier(now, &loaded, committed);
                if let Some(cut) = &cut {
                    self.conversation.go_back(cut, &loaded);
                }
                self.answer_lost_calls(now);
            }
        }
        self.become_ready(now, Readiness::Ready);
    }

    fn become_ready(&mut self, now: Now, readiness: Readiness) {
        let was_pending = self.readiness == Readiness::Pending;
        self.readiness = readiness;
        if was_pending {
            let is_open = readiness == Readiness::Ready;
            self.effects.push(SessionEffect::Ready { is_open });
        }
        self.next_run(now);
    }

    /// Goes on with what was used before, sub-agents included.
    fn resume_totals(&mut self, now: Now, own: &UsageTotals, agents: Vec<(AgentId, UsageTotals)>) {
        self.spent = own.usage;
        self.compaction_share = CompactionShare::of(own.turns, own.compactions);
        self.cost.clone_from(&own.cost);
        if let Some(tree) = self.agents.tree() {
            tree.resume(None, own.spent());
            tree.add_time(Duration::from_millis(own.worked_ms));
            for (agent, used) in &agents {
                tree.resume(Some(agent), used.spent());
            }
            // One of a clock that was put back since counts as if it were new.
            let age = |at: Timestamp| Duration::from_millis(now.at.0.saturating_sub(at.0));
            let ages = agents.iter().filter_map(|(_, used)| used.began.map(age));
            tree.resume_rate(now.elapsed, ages);
        }
        for (agent, used) in agents {
            self.spent = self.spent + used.usage;
            self.cost.enter(agent, used.ledger());
        }
    }

    /// Closes the run that a killed process left open. `committed`: what became of its sub-agents.
    fn close_earlier(
        &mut self,
        now: Now,
        loaded: &Loaded,
        committed: BTreeMap<ToolUseId, ToolOutcome>,
    ) {
        let Some(open_run) = &loaded.open_run else { return };
        let open = OpenTurn {
            run: open_run.run.clone(),
            number: open_run.turn,
            stream: self.conversation.stream.child(open_run.run.as_str()),
            at_step: open_run.step,
            history: self.conversation.history.clone(),
            last_entry: self.conversation.last_entry.clone(),
            committed,
            ended: open_run.ended.clone(),
            asked: open_run.asked.as_ref().map(|it| it.0.clone()),
            denial: match &open_run.asked {
                Some((_, expires)) if *expires <= now.at => DenialReason::Expired,
                _ => DenialReason::NobodyLeft,
            },
            // What was under way was known to the killed process alone.
            in_doubt: None,
        };
        self.write_closing(now, open, RunEnd::Crashed);
        let what = RecordKind::RunEnd {
            reason: RunEnd::Crashed.code().into(),
            turns: open_run.turn,
            usage: loaded.used().usage,
            head: None,
        };
        let line = record(now.at, &open_run.run, what);
        self.recorder.append(WriteOrigin::Unawaited, PendingLines::synced(line), &mut self.effects);
    }

    /// Records results for calls of earlier runs whose results are lost.
    fn answer_lost_calls(&mut self, now: Now) {
        let history = &self.conversation.history;
        let last = self.conversation.last_entry.clone();
        // The number of lines distinguishes one opening from the next.
        let stream = self.conversation.stream.child(&self.last_run.0.to_string());
        let Some(mut append) = answer_lost_calls(history.iter(), last, stream, now.at) else {
            return;
        };
        for update in append.updates.drain(..) {
            self.conversation.apply(update);
        }
        self.recorder.append(WriteOrigin::Unawaited, (*append).into(), &mut self.effects);
    }
}

/// Returns what was repaired, in words for people; of each kind the first ones, then a count.
fn repairs(reports: &[Report]) -> Vec<Arc<str>> {
    let mut counts: BTreeMap<ReportKind, usize> = BTreeMap::new();
    let mut notices = Vec::new();
    for report in reports {
        let count = counts.entry(report.kind).or_default();
        *count += 1;
        if *count <= MAX_REPORTED {
            notices.push(format!("the transcript was repaired: {report}").into());
        }
    }
    for (kind, count) in counts.into_iter().filter(|(_, it)| MAX_REPORTED < *it) {
        let more = Report { kind, line: None, count: Some((count - MAX_REPORTED) as u64) };
        notices.push(format!("the transcript was repaired: the same again: {more}").into());
    }
    notices
}
