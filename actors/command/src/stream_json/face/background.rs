//! Sub-agents in the background: what a session does by itself when they end, and how long that is waited for.

use std::{collections::VecDeque, future::pending, pin::Pin, time::Duration};

use ennead::{RunError, SessionHandle, tool::BoxFuture};
use futures::FutureExt;
use tokio::time::{Sleep, sleep};

use super::{
    super::{mirror::Mirror, results::RunNotes},
    Face,
    awaited::{EndedRun, Running},
    runs::with_record,
};

/// A run that the session began by itself; `None` once nothing is under way.
pub(super) type NextWoken = Option<Result<EndedRun, RunError>>;

/// What goes on in the background of a session.
#[derive(Default)]
pub(super) struct Background {
    /// Waits for the end of the next run that the session begins by itself; there from the first agent in the background
    /// on until nothing is under way.
    next: Option<BoxFuture<'static, NextWoken>>,
    /// How such runs ended whose events were not all shown.
    ended: VecDeque<Result<EndedRun, RunError>>,
    /// A run that waits until the session has ended one of its own.
    held: Option<Running>,
    /// How long it is waited for once nothing else is to be done; `None`: as long as it takes.
    ceiling: Option<Duration>,
    /// Fires when it was waited for long enough.
    limit: Option<Pin<Box<Sleep>>>,
    /// Whether the program has yet to receive that nothing is under way.
    is_idle_due: bool,
}

/// What happened in the background.
pub(super) enum InBackground {
    Next(Box<NextWoken>),
    /// It was waited for long enough.
    Ceiling,
}

impl Background {
    pub(super) fn new(ceiling: Option<Duration>) -> Self {
        Self { ceiling, ..Self::default() }
    }

    /// Has no agent be waited for any more.
    pub(super) fn give_up(&mut self) {
        (self.ceiling, self.limit) = (Some(Duration::ZERO), None);
    }

    /// Whether anything is owed to the program.
    pub(super) fn is_empty(&self) -> bool {
        self.next.is_none() && self.ended.is_empty() && self.held.is_none()
    }

    /// Waits for what happens next.
    pub(super) async fn next(&mut self) -> InBackground {
        let Self { next, limit, .. } = self;
        let next = async {
            match next {
                Some(next) => next.await,
                None => pending().await,
            }
        };
        let limit = async {
            match limit {
                Some(limit) => limit.await,
                None => pending().await,
            }
        };
        tokio::select! {
            next = next => InBackground::Next(Box::new(next)),
            () = limit => InBackground::Ceiling,
        }
    }
}

impl Face {
    /// Begins to wait for what a session does by itself. An agent works in its background now.
    pub(super) fn watch_background(&mut self) {
        if let (Some(session), None) = (&self.session, &self.background.next) {
            self.background.next = Some(Box::pin(next_woken(session.clone(), self.mirror.clone())));
        }
    }

    /// Takes in what happened in the background. Returns whether the session is to be waited for no longer.
    pub(super) fn in_background(&mut self, happened: InBackground) -> bool {
        self.background.next = None;
        let InBackground::Next(next) = happened else { return true };
        match *next {
            Some(ended) => {
                self.background.ended.push_back(ended);
                self.watch_background();
            }
            // A run of its own that has no outcome by now will have none: the session is gone.
            None if self.background.ended.is_empty() => {
                if let Some(running) = self.running.as_mut().filter(|it| it.notes.is_woken) {
                    (running.ended, running.has_shown_all) = (Some(Err(RunError::Ended)), true);
                }
            }
            None => {}
        }
        false
    }

    /// The session has begun a run by itself. A prompt that was sent to it meanwhile waits.
    pub(super) fn woken(&mut self) {
        self.background.held = self.running.take();
        self.send_state("running");
        self.learn_tools();
        let servers = self.servers();
        let init = self.facts.init(self.translator.frame(), &servers, &self.skills);
        self.output.write(init);
        self.structured.iter().for_each(|it| it.begin());
        self.translator.begin_woken_run();
        self.running = Some(Running {
            run: Box::pin(pending()),
            ended: None,
            has_shown_all: false,
            is_interrupted: false,
            notes: RunNotes::woken(),
        });
        self.watch_background();
    }

    /// Gives a run of the session's own its outcome, once that is known.
    pub(super) fn end_woken(&mut self) {
        let Some(running) = &mut self.running else { return };
        if running.notes.is_woken && running.has_shown_all && running.ended.is_none() {
            running.ended = self.background.ended.pop_front();
        }
    }

    /// Goes on with the prompt that waited for a run of the session's own, if one did.
    pub(super) fn go_on(&mut self) {
        let Some(held) = self.background.held.take() else { return };
        self.structured.iter().for_each(|it| it.begin());
        self.translator.begin_run(held.notes.prompt.clone());
        self.running = Some(held);
    }

    /// Reports, once, that nothing is under way, when that is so.
    pub(super) fn rest(&mut self) {
        while self.is_idle_due() {
            // What has happened is shown first.
            if let Some(event) = self.next_event().now_or_never().flatten() {
                self.event(Some(event));
                continue;
            }
            self.background.is_idle_due = false;
            // One that could not begin has no event of its own to end it.
            let ends = self.translator.end_background();
            ends.into_iter().for_each(|line| self.output.write(line));
            self.send_state("idle");
        }
        let has_nothing = self.has_nothing();
        let only_waits = has_nothing && self.is_at_end && !self.background.is_empty();
        match (only_waits, self.background.ceiling) {
            (true, Some(ceiling)) if self.background.limit.is_none() => {
                self.background.limit = Some(Box::pin(sleep(ceiling)));
            }
            (true, _) => {}
            (false, _) => self.background.limit = None,
        }
    }

    fn has_nothing(&self) -> bool {
        self.queue.is_empty() && self.running.is_none()
    }

    fn is_idle_due(&self) -> bool {
        self.has_nothing() && self.background.is_empty() && self.background.is_idle_due
    }

    /// Notes that the program is to receive a frame when nothing is under way.
    pub(super) fn will_rest(&mut self) {
        self.background.is_idle_due = true;
    }
}

/// Waits for the end of the next run that a session begins by itself.
async fn next_woken(session: SessionHandle, mirror: Option<Mirror>) -> NextWoken {
    let outcome = match session.next_woken_run().await {
        Ok(outcome) => outcome?,
        // A session that has ended begins none.
        Err(RunError::Ended) => return None,
        Err(error) => return Some(Err(error)),
    };
    if let Some(mirror) = mirror {
        mirror.show().await;
    }
    Some(Ok(with_record(session.transcript().to_owned(), 0, outcome).await))
}
