//! A command in an actor of its own.
//!
//! Apart from the command itself, because here are two sides that may each be gone without a word:
//! the call that waits, and the actor that owns the processes.

use std::future::Future;

use ennead_runtime::{
    ports::{Hold, HostProcess, ToolContext},
    tool::{ToolErrorKind, ToolOutcome},
};
use tokio::sync::oneshot;

/// Has `host` run the work and waits for its outcome. Dropping the future ends the work, too.
pub(super) async fn run<F>(
    host: &dyn HostProcess,
    mut context: ToolContext,
    work: impl FnOnce(ToolContext) -> F,
) -> ToolOutcome
where
    F: Future<Output = ToolOutcome> + Send + 'static,
{
    // Goes with the last clone of the hold, and so behind the last process.
    let (kept, gone) = oneshot::channel::<()>();
    context.hold = Hold::new((context.hold, kept));
    let work = work(context);
    let (mut reply, outcome) = oneshot::channel();
    host.host(Box::pin(async move {
        let outcome = tokio::select! {
            biased;
            () = reply.closed() => return,
            outcome = work => outcome,
        };
        // Whoever waited may have gone just now; the command is over anyway.
        let _gone = reply.send(outcome);
    }));
    if let Ok(outcome) = outcome.await {
        return outcome;
    }
    // Nothing is ever sent: the end of it is the message.
    let _over = gone.await;
    let why = "What ran the command crashed. The command was killed with all its processes; what \
        it did until then stays done.";
    ToolOutcome::failed(ToolErrorKind::Crashed, why)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ennead_runtime::ports::BoxFuture;

    use super::*;
    use crate::test_support::{World, block_on};

    /// Keeps the work for the test to run.
    #[derive(Default)]
    struct Kept(Mutex<Option<BoxFuture<'static, ()>>>);

    impl std::fmt::Debug for Kept {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Kept")
        }
    }

    impl HostProcess for Kept {
        fn host(&self, work: BoxFuture<'static, ()>) {
            *self.0.lock().unwrap() = Some(work);
        }
    }

    /// A call in a task of its own, and its work once it was handed over. The second channel ends
    /// with the call's hold.
    async fn call<F>(
        work: impl FnOnce(ToolContext) -> F + Send + 'static,
    ) -> (tokio::task::JoinHandle<ToolOutcome>, BoxFuture<'static, ()>, oneshot::Receiver<()>)
    where
        F: Future<Output = ToolOutcome> + Send + 'static,
    {
        let (host, mut context) = (Arc::new(Kept::default()), World::new().context);
        let (kept, gone) = oneshot::channel();
        context.hold = Hold::new(kept);
        let hosting = host.clone();
        #[expect(clippy::disallowed_methods, reason = "stands for the executor of the call")]
        let waiting = tokio::spawn(async move { run(&*hosting, context, work).await });
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
            let (waiting, work, gone) = call(|_| async { ToolOutcome::ok("done") }).await;
            work.await;
            assert_eq!(waiting.await.unwrap(), ToolOutcome::ok("done"));
            assert!(gone.await.is_err());
        });
    }

    // REQ: TOL-4
    #[test]
    fn call_whose_host_dies_fails_once_nothing_holds_it_any_more() {
        block_on(async {
            let (hold, held) = oneshot::channel();
            let (waiting, mut work, gone) = call(|context| async move {
                assert!(hold.send(context.hold).is_ok());
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
            let outcome = waiting.await.unwrap();
            assert_eq!(outcome.error, Some(ToolErrorKind::Crashed));
            assert!(gone.await.is_err());
        });
    }

    // REQ: TOL-8
    #[test]
    fn work_ends_when_nobody_waits_for_it() {
        block_on(async {
            let (waiting, work, gone) = call(|context| async move {
                let _hold = context.hold;
                std::future::pending().await
            })
            .await;
            waiting.abort();
            work.await;
            assert!(gone.await.is_err());
        });
    }
}
