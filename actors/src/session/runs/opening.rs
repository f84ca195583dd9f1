//! Before the first run: the transcript is opened and an earlier conversation read.

use std::path::PathBuf;

use ractor::ActorRef;
use tokio::sync::oneshot;

use super::{Done, Earlier};
use crate::{
    archive::{OpenError, Opened},
    directory::ActorKind,
    session::{SessionMsg, State},
    supervision::{Job, spawn_leaf},
};

impl State {
    /// The transcript is open, or not.
    pub(in crate::session) async fn opened(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        opened: Opened,
    ) -> Done {
        match opened {
            Opened::Restarted { handle } => self.recorder.opened(handle),
            Opened::Ready { handle, head, .. } => {
                self.recorder.opened(handle);
                if head.seq == 0 {
                    self.is_ready(Ok(()));
                    self.next_run(myself)?;
                } else {
                    self.load(myself).await?;
                }
            }
            Opened::Failed(error) => {
                let why = error.to_string();
                if self.ready.is_none() {
                    self.is_ready(Err(error));
                }
                self.lose(myself, why)?;
            }
        }
        Ok(())
    }

    /// Reads the earlier conversation, on the blocking pool.
    async fn load(&mut self, myself: &ActorRef<SessionMsg>) -> Done {
        let (file, back) = (self.open.place.file.clone(), myself.clone());
        let sidechain = self.open.frame.agent.is_some();
        let work = Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || read_earlier(&file, sidechain)).await;
            let earlier = read.unwrap_or_else(|error| Err(error.to_string()));
            let _gone = back.cast(SessionMsg::Loaded(Box::new(earlier)));
        });
        let job = Job {
            kind: ActorKind::SourceReader,
            session: self.shared.session.clone(),
            directory: self.shared.directory.clone(),
            work,
        };
        self.loader = Some(spawn_leaf(job, myself.get_cell()).await?.get_id());
        Ok(())
    }

    pub(in crate::session) fn loaded(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        earlier: Earlier,
    ) -> Done {
        self.loader = None;
        match earlier {
            Ok(loaded) => {
                for report in &loaded.report {
                    self.untold.push(format!("the transcript was repaired: {report:?}").into());
                }
                self.n_runs = loaded.tail.head.seq << 16;
                self.spent = loaded.spent;
                self.cost.clone_from(&loaded.cost);
                self.conversation.last_entry.clone_from(&loaded.last);
                self.conversation.history.clone_from(&loaded.recorded);
                self.close_earlier(&loaded);
                self.is_ready(Ok(()));
            }
            Err(why) => {
                let error = std::io::Error::other(why);
                self.is_ready(Err(OpenError::File(error)));
            }
        }
        self.next_run(myself)
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

fn read_earlier(file: &PathBuf, sidechain: bool) -> Earlier {
    use ennead_runtime::transcript::load::{LoadAs, load};
    let bytes = std::fs::read(file).map_err(|it| format!("{}: {it}", file.display()))?;
    Ok(load(&bytes, if sidechain { LoadAs::Sidechain } else { LoadAs::Session }))
}
