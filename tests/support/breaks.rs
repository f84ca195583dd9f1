//! Holds turns at steps.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

use ennead::{SessionId, data::Step, internal::GoOn, testing::Breakpoints};
use tokio::sync::Semaphore;

use super::until::within_real_time;

/// Breakpoints of a test. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Breaks(Arc<Inner>);

struct Inner {
    held: Mutex<BTreeSet<(SessionId, Step)>>,
    waiting: Mutex<Vec<GoOn>>,
    reached: Semaphore,
}

impl Default for Inner {
    fn default() -> Self {
        let (held, waiting) = (Mutex::default(), Mutex::default());
        Self { held, waiting, reached: Semaphore::new(0) }
    }
}

impl fmt::Debug for Breaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Breaks({:?})", self.0.held.lock().unwrap())
    }
}

impl Breaks {
    /// The next turn of this session stands still at this step.
    pub(crate) fn hold(&self, session: &SessionId, step: Step) {
        self.0.held.lock().unwrap().insert((session.clone(), step));
    }

    /// Waits until one more turn waits.
    pub(crate) async fn reached(&self) {
        let reached = self.0.reached.acquire();
        within_real_time("a turn at a step", reached).await.unwrap().forget();
    }

    /// Lets all go on that wait, and holds no more.
    pub(crate) fn let_go(&self) {
        self.0.held.lock().unwrap().clear();
        let waiting = std::mem::take(&mut *self.0.waiting.lock().unwrap());
        waiting.into_iter().for_each(|go_on| go_on());
    }
}

impl Breakpoints for Breaks {
    fn reached(&self, session: &SessionId, step: Step, go_on: GoOn) -> Option<GoOn> {
        if !self.0.held.lock().unwrap().remove(&(session.clone(), step)) {
            return Some(go_on);
        }
        self.0.waiting.lock().unwrap().push(go_on);
        self.0.reached.add_permits(1);
        None
    }
}
