//! Work with child processes in an actor of its own.
//!
//! Each of two sides may end without notice:
//! the call that waits, and the actor that owns the processes.

use std::future::Future;

use ennead_runtime::ports::{BoxFuture, ToolContext, WorkGuard, shells::Detached};
use tokio::sync::oneshot;

/// What came of hosted work, and what goes on in the background.
pub(crate) struct Worked<T> {
    pub(crate) result: T,
    /// Belongs to the session and no more to the call. It holds nothing of the call's context.
    pub(crate) rest: Option<BoxFuture<'static, ()>>,
}

/// Runs the work on the host of `context`, if there is one, and waits for the result. `None` when the host died:
/// nothing of the work is left then. Dropping the future ends the work, too.
pub(crate) async fn hosted<T, F>(
    context: ToolContext,
    work: impl FnOnce(ToolContext) -> F,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let whole = |context| {
        let work = work(context);
        async move { Worked { result: work.await, rest: None } }
    };
    hosted_with_rest(context, whole).await
}

/// Runs work of which a part may go on after the call. Without a host nothing goes on.
pub(crate) async fn hosted_with_rest<T, F>(
    mut context: ToolContext,
    work: impl FnOnce(ToolContext) -> F,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = Worked<T>> + Send + 'static,
{
    let Some(host) = context.processes.clone() else { return Some(work(context).await.result) };
    // Goes with the last clone of the hold, and so after the last process.
    let (kept, gone) = oneshot::channel::<()>();
    context.guard = WorkGuard::new((context.guard, kept));
    let work = work(context);
    let (mut reply, result) = oneshot::channel();
    let detached = Detached::default();
    let detach = detached.clone();
    let work = async move {
        let Worked { result, rest } = tokio::select! {
            biased;
            () = reply.closed() => return,
            worked = work => worked,
        };
        if rest.is_some() {
            detach.detach();
        }
        let is_awaited = reply.send(result).is_ok();
        // The one that waited may have gone just now: then what would go on has no owner.
        if let Some(rest) = rest.filter(|_| is_awaited) {
            rest.await;
        }
    };
    host.host(Box::pin(work), detached);
    // Or the work would keep what hosts it.
    drop(host);
    if let Ok(result) = result.await {
        return Some(result);
    }
    // Nothing is ever sent: the end of it is the message.
    let _over = gone.await;
    None
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ennead_runtime::ports::{HostProcess, shells::KeepShells};

    use super::*;
    use crate::test_support::{TestShells, World, block_on};

    /// Keeps the work for the test to run.
    #[derive(Default)]
    struct KeptWork(Mutex<Option<BoxFuture<'static, ()>>>, TestShells);

    impl std::fmt::Debug for KeptWork {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Kept")
        }
    }

    impl HostProcess for KeptWork {
        fn host(&self, work: BoxFuture<'static, ()>, _: Detached) {
            *self.0.lock().unwrap() = Some(work);
        }

        fn shells(&self) -> &dyn KeepShells {
            &self.1
        }
    }

    /// A call in a task of its own, and its work once it was handed over. The second channel ends
    /// with the call's hold.
    async fn call<F>(
        work: impl FnOnce(ToolContext) -> F + Send + 'static,
    ) -> (
        tokio::task::JoinHandle<Option<&'static str>>,
        BoxFuture<'static, ()>,
        oneshot::Receiver<()>,
    )
    where
        F: Future<Output = &'static str> + Send + 'static,
    {
        let (host, mut context) = (Arc::new(KeptWork::default()), World::new().context);
        let (kept, gone) = oneshot::channel();
        context.guard = WorkGuard::new(kept);
        let hosting = host.clone();
        #[expect(clippy::disallowed_methods, reason = "stands for the executor of the call")]
        let waiting = tokio::spawn(async move {
            context.processes = Some(hosting);
            hosted(context, work).await
        });
        loop {
            tokio::task::yield_now().await;
            if let Some(work) = host.0.lock().unwrap().take() {
                return (waiting, work, gone);
            }
        }
    }

    #[test]
    fn outcome_of_hosted_work_is_the_outcome_of_the_call() {
        block_on(async {
            let (waiting, work, gone) = call(|_| async { "done" }).await;
            work.await;
            assert_eq!(waiting.await.unwrap(), Some("done"));
            assert!(gone.await.is_err());
        });
    }

    // REQ: TOL-4
    #[test]
    fn call_whose_host_dies_fails_once_nothing_holds_it_any_more() {
        block_on(async {
            let (hold, held) = oneshot::channel();
            let (waiting, mut work, gone) = call(|context| async move {
                assert!(hold.send(context.guard).is_ok());
                std::future::pending().await
            })
            .await;
            let hold = tokio::select! {
                biased;
                () = &mut work => panic!("the work has no end"),
                hold = held => hold.unwrap(),
            };
            drop(work);
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished(), "a process may be left");
            drop(hold);
            assert_eq!(waiting.await.unwrap(), None);
            assert!(gone.await.is_err());
        });
    }

    // REQ: TOL-8
    #[test]
    fn work_ends_when_nobody_waits_for_it() {
        block_on(async {
            let (waiting, work, gone) = call(|context| async move {
                let _hold = context.guard;
                std::future::pending().await
            })
            .await;
            waiting.abort();
            work.await;
            assert!(gone.await.is_err());
        });
    }
}
