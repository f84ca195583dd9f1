//! Before the first run: the transcript is opened and an earlier conversation read.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::AgentId,
    time::Timestamp,
    transcript::load::{LoadAs, Loaded, Report, ReportKind, UsageTotals, load},
};
use ractor::ActorRef;
use tokio::sync::oneshot;

use crate::{
    archive::{Opened, layout},
    directory::ActorKind,
    errors::OpenError,
    session::{
        SessionMsg, SessionState,
        agents::orphans::{Found, find, outcomes},
    },
    supervision::{HandlerResult, spawn_leaf},
};

impl SessionState {
    /// The transcript is open, or not.
    pub(in crate::session) async fn opened(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        opened: Opened,
    ) -> HandlerResult {
        match opened {
            Opened::Restarted { handle } => self.recorder.opened(handle),
            Opened::Ready { handle, is_new, .. } => {
                self.recorder.opened(handle);
                if is_new {
                    self.is_ready(Ok(()));
                    self.next_run(myself)?;
                } else {
                    self.load(myself).await?;
                }
            }
            Opened::Failed(error) => {
                let why = error.to_string();
                match self.ready {
                    None => self.is_ready(Err(error)),
                    // No other writer follows: no further run can be recorded.
                    Some(_) => self.ready = Some(Err(OpenError::Crashed)),
                }
                self.lose(myself, why)?;
            }
        }
        Ok(())
    }

    /// Reads the earlier conversation, on the blocking pool.
    async fn load(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        let (file, back) = (self.open.place.file.clone(), myself.clone());
        let sidechain = self.open.frame.agent.is_some();
        let beside = self.open.place.beside.clone();
        let closer = self.closer();
        let work = Box::pin(async move {
            let read = move || read_earlier(&file, &beside, sidechain);
            let read = tokio::task::spawn_blocking(read).await;
            let mut earlier = read.unwrap_or_else(|error| Err(error.to_string()));
            if let Ok(earlier) = &mut earlier {
                // Before the session says of a call that its agent was cut off.
                earlier.unread.extend(closer.close_all(&earlier.agents).await);
            }
            let _gone = back.cast(SessionMsg::Loaded(Box::new(earlier)));
        });
        let job = self.shared.job(ActorKind::SourceReader, work);
        self.loader = Some(spawn_leaf(job, myself.get_cell()).await?.get_id());
        Ok(())
    }

    pub(in crate::session) fn loaded(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        earlier: Result<Earlier, String>,
    ) -> HandlerResult {
        self.loader = None;
        match earlier {
            Ok(Earlier { loaded, agents, unread }) => {
                self.untold.extend(repairs(&loaded.report));
                self.untold.extend(unread.into_iter().map(Into::into));
                self.n_runs = loaded.tail.head.seq << 16;
                let settled = outcomes(&agents, self.shared.facts.agent.as_ref(), &loaded);
                let used = agents.iter().map(|it| (it.agent.clone(), it.used())).collect();
                self.resume_sums(&loaded.used, used);
                self.conversation.resume(&loaded);
                self.resume_shells(&loaded.shells);
                self.close_earlier(&loaded, settled);
                self.answer_lost_calls();
                self.is_ready(Ok(()));
            }
            Err(why) => {
                let error = std::io::Error::other(why);
                self.is_ready(Err(OpenError::File(error)));
            }
        }
        self.next_run(myself)
    }

    /// Goes on with what was used before, sub-agents included.
    fn resume_sums(&mut self, own: &UsageTotals, agents: Vec<(AgentId, UsageTotals)>) {
        self.spent = own.usage;
        self.cost.clone_from(&own.cost);
        if let Some(tree) = self.agents.tree() {
            tree.resume(None, own.spent());
            tree.add_time(Duration::from_millis(own.worked_ms));
            for (agent, used) in &agents {
                tree.resume(Some(agent), used.spent());
            }
            let clock = &self.shared.world.clock;
            let now = clock.now();
            // One of a clock that was put back since counts as if it were new.
            let age = |at: Timestamp| Duration::from_millis(now.0.saturating_sub(at.0));
            let ages = agents.iter().filter_map(|(_, used)| used.began.map(age));
            tree.resume_rate(clock.elapsed(), ages);
        }
        for (agent, used) in agents {
            self.spent = self.spent + used.usage;
            self.cost.enter(agent, used.ledger());
        }
    }

    fn is_ready(&mut self, ready: Result<(), OpenError>) {
        let is_open = ready.is_ok();
        let mut why = ready.err();
        for waiting in self.waiting_for_ready.drain(..) {
            let answer = match why.take() {
                None if is_open => Ok(()),
                None => Err(OpenError::Crashed),
                Some(error) => Err(error),
            };
            let _gone = waiting.send(answer);
        }
        self.ready = Some(match why {
            None if is_open => Ok(()),
            None => Err(OpenError::Crashed),
            Some(error) => Err(error),
        });
    }

    pub(in crate::session) fn tell_when_ready(
        &mut self,
        reply: oneshot::Sender<Result<(), OpenError>>,
    ) {
        match self.ready.take() {
            None => self.waiting_for_ready.push(reply),
            Some(Ok(())) => {
                self.ready = Some(Ok(()));
                let _gone = reply.send(Ok(()));
            }
            Some(Err(error)) => {
                self.ready = Some(Err(OpenError::Crashed));
                let _gone = reply.send(Err(error));
            }
        }
    }
}

/// Repairs of one kind that are told one by one.
const MAX_TOLD: usize = 20;

/// What was repaired, in words for people; what there is too much of, by its number.
fn repairs(reports: &[Report]) -> Vec<Arc<str>> {
    let mut counts: BTreeMap<ReportKind, usize> = BTreeMap::new();
    let mut told = Vec::new();
    for report in reports {
        let count = counts.entry(report.kind).or_default();
        *count += 1;
        if *count <= MAX_TOLD {
            told.push(format!("the transcript was repaired: {report}").into());
        }
    }
    for (kind, count) in counts.into_iter().filter(|(_, it)| MAX_TOLD < *it) {
        let more = Report { kind, line: None, count: Some((count - MAX_TOLD) as u64) };
        told.push(format!("the transcript was repaired: the same again: {more}").into());
    }
    told
}

/// What a resumed session knows of its earlier conversation.
pub(crate) struct Earlier {
    loaded: Loaded,
    /// Its sub-agents, by their transcripts.
    agents: Vec<Found>,
    /// Transcripts of sub-agents that cannot be read, in words for people.
    unread: Vec<String>,
}

fn read_earlier(file: &Path, beside: &Path, sidechain: bool) -> Result<Earlier, String> {
    let load_as = if sidechain { LoadAs::Sidechain } else { LoadAs::Session };
    let loaded = load(&read(file)?, load_as);
    let all = if sidechain { BTreeMap::new() } else { layout::sidechains(beside) };
    let (agents, unread) = find(all);
    Ok(Earlier { loaded, agents, unread })
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|it| format!("{}: {it}", file.display()))
}
