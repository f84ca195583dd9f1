//! Forces files to disk, on a thread of its own.
//!
//! A sync takes milliseconds and the thread that runs actors must not wait for it. All writers that
//! asked while a sync was under way are served together: one sync for each, then all answers.

use std::{
    io,
    sync::{Arc, OnceLock, mpsc},
    thread,
};

use crate::ports::transcript_store::{StoreError, SyncWork};

/// A transcript that is to be brought to disk, and the answer to that.
pub(crate) struct SyncRequest {
    pub(crate) work: SyncWork,
    pub(crate) done: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

impl std::fmt::Debug for SyncRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SyncRequest").finish_non_exhaustive()
    }
}

/// The sending end. The thread begins with the first request and ends when the last clone is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flusher {
    requests: Arc<OnceLock<io::Result<mpsc::Sender<SyncRequest>>>>,
}

impl Flusher {
    /// Answers on the flusher's thread; with an error at once if there is none.
    pub(crate) fn sync(&self, request: SyncRequest) {
        match self.requests.get_or_init(start) {
            Ok(requests) => {
                if let Err(mpsc::SendError(request)) = requests.send(request) {
                    (request.done)(Err(io::Error::other("the flusher has ended").into()));
                }
            }
            Err(error) => {
                (request.done)(Err(io::Error::new(error.kind(), error.to_string()).into()))
            }
        }
    }
}

fn start() -> io::Result<mpsc::Sender<SyncRequest>> {
    let (requests, inbox) = mpsc::channel();
    thread::Builder::new().name("ennead-flusher".into()).spawn(move || serve(&inbox))?;
    Ok(requests)
}

fn serve(inbox: &mpsc::Receiver<SyncRequest>) {
    while let Ok(first) = inbox.recv() {
        let waiting: Vec<SyncRequest> = std::iter::once(first).chain(inbox.try_iter()).collect();
        let answers: Vec<_> = waiting.into_iter().map(|it| (it.done, (it.work)())).collect();
        for (done, synced) in answers {
            done(synced);
        }
    }
}
