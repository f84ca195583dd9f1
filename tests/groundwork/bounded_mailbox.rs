//! A flood before a bounded mailbox: what gets in, what comes back, and when a place is free again.

use std::{num::NonZeroU32, pin::pin, sync::Arc};

use ennead::internal::{Admitted, Mailbox, Refused, Slot};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::JoinHandle,
};

use crate::support::until::within;

/// Who keeps the slot of a piece of work.
enum Keep {
    /// It is dropped when the work is done: a window.
    UntilDone,
    /// It stays in the worker's state: a quota.
    UntilTheEnd,
    /// It goes to somebody else along with the work.
    Elsewhere(mpsc::UnboundedSender<Slot>),
}

enum WorkerMsg {
    Work(Admitted<u32>),
    /// Steers: carries no slot.
    Status(oneshot::Sender<usize>),
    Crash,
}

/// Does a piece of work per permit of `gate`, and says so when it has let go of the slot.
struct Worker {
    gate: Arc<Semaphore>,
    keep: Keep,
    done: mpsc::UnboundedSender<u32>,
}

impl Actor for Worker {
    type Msg = WorkerMsg;
    type State = Vec<Slot>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<WorkerMsg>,
        (): (),
    ) -> Result<Vec<Slot>, ActorProcessingErr> {
        Ok(Vec::new())
    }

    async fn handle(
        &self,
        _: ActorRef<WorkerMsg>,
        message: WorkerMsg,
        kept: &mut Vec<Slot>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            WorkerMsg::Work(Admitted { work, slot }) => {
                self.gate.acquire().await?.forget();
                match &self.keep {
                    Keep::UntilDone => drop(slot),
                    Keep::UntilTheEnd => kept.push(slot),
                    Keep::Elsewhere(to) => to.send(slot)?,
                }
                self.done.send(work)?;
            }
            WorkerMsg::Status(answer) => answer.send(kept.len()).map_err(|_| "nobody asked")?,
            WorkerMsg::Crash => panic!("asked to"),
        }
        Ok(())
    }
}

struct WorkerRig {
    mailbox: Mailbox<u32, WorkerMsg>,
    gate: Arc<Semaphore>,
    done: mpsc::UnboundedReceiver<u32>,
    /// Ends when the worker and its state are gone.
    ended: JoinHandle<()>,
}

/// The next piece of work that is done.
async fn next(done: &mut mpsc::UnboundedReceiver<u32>) -> Option<u32> {
    within("a piece of work", done.recv()).await
}

/// A worker after a mailbox of `capacity`, which may do `open` pieces of work at once.
async fn rig(capacity: u32, open: usize, keep: Keep) -> WorkerRig {
    let gate = Arc::new(Semaphore::new(open));
    let (tell_done, done) = mpsc::unbounded_channel();
    let worker = Worker { gate: Arc::clone(&gate), keep, done: tell_done };
    let (actor, ended) = Actor::spawn(None, worker, ()).await.unwrap();
    let capacity = NonZeroU32::new(capacity).unwrap();
    WorkerRig { mailbox: Mailbox::new(actor, capacity, WorkerMsg::Work), gate, done, ended }
}

// REQ: RUN-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_from_four_senders_lets_in_exactly_the_capacity() {
    let rig = rig(64, 0, Keep::UntilDone).await;
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let mailbox = rig.mailbox.clone();
            tokio::spawn(
                async move { (0..10_000).filter(|n| mailbox.try_send(*n).is_ok()).count() },
            )
        })
        .collect();
    let mut admitted = 0;
    for sender in senders {
        admitted += sender.await.unwrap();
    }
    assert_eq!((admitted, rig.mailbox.free()), (64, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_waits_for_a_place_is_done_once_and_in_its_senders_order() {
    let mut rig = rig(8, Semaphore::MAX_PERMITS, Keep::UntilDone).await;
    for sender in 0..4 {
        let mailbox = rig.mailbox.clone();
        tokio::spawn(async move {
            for n in 0..500 {
                mailbox.send(sender * 500 + n).await.unwrap();
            }
        });
    }
    let mut expected = [0; 4];
    for _ in 0..4 * 500 {
        let work = next(&mut rig.done).await.unwrap();
        let sender = usize::try_from(work / 500).unwrap();
        assert_eq!(work % 500, expected[sender]);
        expected[sender] += 1;
    }
    assert_eq!((expected, rig.mailbox.free()), ([500; 4], 8));
}

#[tokio::test]
async fn window_refuses_one_past_its_capacity_until_a_piece_is_done() {
    let mut rig = rig(2, 0, Keep::UntilDone).await;
    rig.mailbox.try_send(1).unwrap();
    rig.mailbox.try_send(2).unwrap();
    assert_eq!(rig.mailbox.try_send(3), Err(Refused::Full(3)));
    rig.gate.add_permits(1);
    assert_eq!(next(&mut rig.done).await, Some(1));
    rig.mailbox.try_send(3).unwrap();
}

// REQ: TOL-3
#[tokio::test]
async fn quota_of_25_refuses_the_26th_though_all_are_done() {
    let mut rig = rig(25, 100, Keep::UntilTheEnd).await;
    for n in 1..=25 {
        rig.mailbox.try_send(n).unwrap();
        assert_eq!(next(&mut rig.done).await, Some(n));
    }
    assert_eq!(rig.mailbox.try_send(26), Err(Refused::Full(26)));
}

#[tokio::test]
async fn steering_gets_through_a_full_mailbox() {
    let mut rig = rig(1, 1, Keep::UntilTheEnd).await;
    rig.mailbox.try_send(1).unwrap();
    assert_eq!(next(&mut rig.done).await, Some(1));
    assert_eq!(rig.mailbox.try_send(2), Err(Refused::Full(2)));
    let (ask, answer) = oneshot::channel();
    rig.mailbox.actor().cast(WorkerMsg::Status(ask)).unwrap();
    assert_eq!(within("the count", answer).await, Ok(1));
}

#[tokio::test]
async fn senders_that_wait_get_places_in_the_order_they_came() {
    let mut rig = rig(1, 0, Keep::UntilDone).await;
    rig.mailbox.try_send(1).unwrap();
    let mut second = pin!(rig.mailbox.send(2));
    let mut third = pin!(rig.mailbox.send(3));
    assert!(futures::poll!(&mut second).is_pending());
    assert!(futures::poll!(&mut third).is_pending());
    rig.gate.add_permits(3);
    assert_eq!(futures::join!(third, second), (Ok(()), Ok(())));
    assert_eq!((next(&mut rig.done).await, next(&mut rig.done).await), (Some(1), Some(2)));
    assert_eq!(next(&mut rig.done).await, Some(3));
}

#[tokio::test]
async fn sender_that_gives_up_waiting_takes_no_place() {
    let mut rig = rig(1, 0, Keep::UntilDone).await;
    rig.mailbox.try_send(1).unwrap();
    {
        let mut waiting = pin!(rig.mailbox.send(2));
        assert!(futures::poll!(&mut waiting).is_pending());
    }
    rig.gate.add_permits(2);
    assert_eq!(next(&mut rig.done).await, Some(1));
    assert_eq!(rig.mailbox.free(), 1);
}

// REQ: RUN-2
#[tokio::test]
async fn killed_actor_frees_the_places_of_what_was_queued_and_what_was_being_done() {
    let rig = rig(3, 0, Keep::UntilTheEnd).await;
    for n in 0..3 {
        rig.mailbox.try_send(n).unwrap();
    }
    rig.mailbox.actor().kill();
    within("the end of the worker", rig.ended).await.unwrap();
    assert_eq!(rig.mailbox.free(), 3);
}

// REQ: RUN-2
#[tokio::test]
async fn panicking_actor_frees_its_places() {
    let mut rig = rig(2, 1, Keep::UntilTheEnd).await;
    rig.mailbox.try_send(1).unwrap();
    assert_eq!(next(&mut rig.done).await, Some(1));
    rig.mailbox.actor().cast(WorkerMsg::Crash).unwrap();
    rig.mailbox.try_send(2).unwrap();
    within("the end of the worker", rig.ended).await.unwrap();
    assert_eq!(rig.mailbox.free(), 2);
}

#[tokio::test]
async fn stopped_actor_hands_the_work_back() {
    let rig = rig(1, 0, Keep::UntilDone).await;
    rig.mailbox.actor().stop(None);
    within("the end of the worker", rig.ended).await.unwrap();
    assert_eq!(rig.mailbox.try_send(1), Err(Refused::Stopped(Some(1))));
    assert_eq!(rig.mailbox.send(2).await, Err(Refused::Stopped(Some(2))));
}

#[tokio::test]
async fn waiting_sender_is_told_when_the_actor_dies_though_the_slot_lives_on() {
    let (to, mut elsewhere) = mpsc::unbounded_channel();
    let mut rig = rig(1, 1, Keep::Elsewhere(to)).await;
    rig.mailbox.try_send(1).unwrap();
    assert_eq!(next(&mut rig.done).await, Some(1));
    let slot = within("the slot", elsewhere.recv()).await.unwrap();
    let mut waiting = pin!(rig.mailbox.send(2));
    assert!(futures::poll!(&mut waiting).is_pending());
    rig.mailbox.actor().kill();
    assert_eq!(waiting.await, Err(Refused::Stopped(Some(2))));
    assert_eq!(rig.mailbox.free(), 0);
    drop(slot);
    assert_eq!(rig.mailbox.free(), 1);
}

/// Passes the events of its children on, with whatever is in them.
struct Keeper(mpsc::UnboundedSender<SupervisionEvent>);

impl Actor for Keeper {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(self.0.send(event).map_err(|_| "the test is over")?)
    }
}

#[tokio::test]
async fn slots_in_a_stopped_actors_state_are_free_when_its_supervisor_drops_the_event() {
    let (tell_done, mut done) = mpsc::unbounded_channel();
    let (to_events, mut events) = mpsc::unbounded_channel();
    let (keeper, _) = Actor::spawn(None, Keeper(to_events), ()).await.unwrap();
    let gate = Arc::new(Semaphore::new(1));
    let worker = Worker { gate, keep: Keep::UntilTheEnd, done: tell_done };
    let (actor, ended) = Actor::spawn_linked(None, worker, (), keeper.get_cell()).await.unwrap();
    let mailbox = Mailbox::new(actor.clone(), NonZeroU32::MIN, WorkerMsg::Work);
    mailbox.try_send(1).unwrap();
    assert_eq!(next(&mut done).await, Some(1));
    actor.stop(None);
    within("the end of the worker", ended).await.unwrap();
    let event = loop {
        match within("the end of the worker", events.recv()).await.unwrap() {
            SupervisionEvent::ActorStarted(_) => {}
            event => break event,
        }
    };
    assert!(matches!(event, SupervisionEvent::ActorTerminated(_, Some(_), _)));
    assert_eq!(mailbox.free(), 0);
    drop(event);
    assert_eq!(mailbox.free(), 1);
}
