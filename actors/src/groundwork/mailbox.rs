//! A mailbox that can be full.
//!
//! Mailboxes of ractor have no bound. Here a piece of work needs a [`Slot`] before it is sent, and
//! the one that does the work keeps the slot until it is done. What is queued and what is being
//! worked on together never exceed the capacity, no matter who sends and however fast.
//!
//! Only work is bounded. An actor puts [`Admitted<M>`] into the variants of its message enum that
//! mean work; since only [`Mailbox`] can make a slot, no sender goes round the bound. Variants that
//! steer (interrupt, answer, close, status) carry no slot, are cast on the actor itself and always
//! get through.
//!
//! Who keeps the slot decides what the bound means. Passed on to the work's execution, it comes
//! back when that ends: the capacity is a **window**. Kept by the actor until it ends, it never
//! comes back: the capacity is a **quota**.
//!
//! Every bounded actor uses it, and it knows none of them.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{Arc, Weak},
};

use ractor::{ActorRef, ActorStatus, Message};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use ennead_runtime::saturating::Saturating as _;

/// A place in a mailbox. It is free again when this is dropped.
///
/// A slot kept in an actor's state is freed with the state. After a stop or a kill, ractor hands
/// the state to the supervisor inside its event, so the slot is free once the supervisor has
/// handled that event.
#[derive(Debug)]
#[must_use = "dropping a slot says that its work is done"]
pub struct Slot(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

/// Work that was let in, with the slot it holds.
#[derive(Debug)]
pub struct Admitted<M> {
    /// The message that was sent.
    pub work: M,
    /// Moves along with the work and is dropped when the work is done.
    pub slot: Slot,
}

/// Why work was not let in.
///
/// What to answer is a rule of the sender: a refused tool call is an error result, a refused
/// prompt is the embedder's to see.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Refused<M> {
    /// All slots are taken. The work comes back.
    #[error("the mailbox is full")]
    Full(M),
    /// The actor is stopping or gone. The work comes back, except when the actor ended in the very
    /// moment of handing it over: then it went with the mailbox, as everything queued there.
    #[error("the actor has stopped")]
    Stopped(Option<M>),
}

/// The sending end of a bounded mailbox in front of an actor with messages `A`.
///
/// Clones share the slots. `Ok` from a send means queued, not done: an actor that is killed takes
/// its queue along, and says so to its supervisor, not to the sender.
pub struct Mailbox<M, A> {
    actor: ActorRef<A>,
    wrap: fn(Admitted<M>) -> A,
    slots: Arc<Semaphore>,
    capacity: NonZeroU32,
}

impl<M, A: Message> Mailbox<M, A> {
    /// Makes a mailbox that lets at most `capacity` pieces of work be with `actor` at a time. `wrap` is the variant of
    /// its message enum that takes them.
    ///
    /// Two mailboxes before one actor count apart, which is how an actor bounds two kinds of work.
    pub fn new(actor: ActorRef<A>, capacity: NonZeroU32, wrap: fn(Admitted<M>) -> A) -> Self {
        // A semaphore holds a little less than a machine word; more slots than that cannot be used.
        let permits = usize::try_from(capacity.get())
            .map_or(Semaphore::MAX_PERMITS, |capacity| capacity.min(Semaphore::MAX_PERMITS));
        Self { actor, wrap, slots: Arc::new(Semaphore::new(permits)), capacity }
    }

    /// Sends now or refuses now. This is the one for supervisors, which never wait.
    ///
    /// Order is kept per sender.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] when no slot is free, [`Refused::Stopped`] when the actor is gone.
    pub fn try_send(&self, work: M) -> Result<(), Refused<M>> {
        if self.has_stopped() {
            return Err(Refused::Stopped(Some(work)));
        }
        match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => self.deliver(work, Slot(permit)),
            Err(_) => Err(Refused::Full(work)),
        }
    }

    /// Takes a slot now, for work that is sent later with [`Mailbox::send_with`]; `None` when all
    /// are taken or the actor is gone. So a piece of work is let in before it is known whether
    /// there will be something to do.
    pub fn reserve(&self) -> Option<Slot> {
        if self.has_stopped() {
            return None;
        }
        Arc::clone(&self.slots).try_acquire_owned().ok().map(Slot)
    }

    /// Sends work that was let in before.
    ///
    /// # Errors
    ///
    /// [`Refused::Stopped`] when the actor is gone.
    pub(crate) fn send_with(&self, slot: Slot, work: M) -> Result<(), Refused<M>> {
        self.deliver(work, slot)
    }

    /// Waits for a slot, then sends. For leaves, which this slows down, and for callers outside the
    /// tree.
    ///
    /// Senders that wait are served in the order they came. The wait ends with the actor, also when
    /// the slots are held elsewhere. Dropping the future sends nothing and drops the work.
    ///
    /// # Errors
    ///
    /// [`Refused::Stopped`] when the actor is gone or ends meanwhile.
    pub async fn send(&self, work: M) -> Result<(), Refused<M>> {
        if self.has_stopped() {
            return Err(Refused::Stopped(Some(work)));
        }
        let permit = tokio::select! {
            biased;
            _ = self.actor.wait(None) => None,
            permit = Arc::clone(&self.slots).acquire_owned() => permit.ok(),
        };
        match permit {
            Some(permit) => self.deliver(work, Slot(permit)),
            None => Err(Refused::Stopped(Some(work))),
        }
    }

    /// Returns the actor itself, for the messages that steer.
    pub fn actor(&self) -> &ActorRef<A> {
        &self.actor
    }

    /// Returns how many pieces of work may be queued or in progress at once.
    pub fn capacity(&self) -> NonZeroU32 {
        self.capacity
    }

    /// Returns a gauge of the work in the mailbox, for readers that decide nothing by it.
    pub(crate) fn gauge(&self) -> Gauge {
        Gauge { slots: Arc::downgrade(&self.slots), capacity: self.capacity }
    }

    /// Returns how many slots are free at this moment. It may have changed by the time it is read.
    pub fn free(&self) -> usize {
        self.slots.available_permits()
    }

    fn has_stopped(&self) -> bool {
        // From `Draining` on ractor takes no more messages.
        ActorStatus::Draining <= self.actor.get_status()
    }

    fn deliver(&self, work: M, slot: Slot) -> Result<(), Refused<M>> {
        if self.has_stopped() {
            return Err(Refused::Stopped(Some(work)));
        }
        let message = (self.wrap)(Admitted { work, slot });
        self.actor.cast(message).map_err(|_| Refused::Stopped(None))
    }
}

/// Shows how much work a mailbox has. Keeps nothing alive.
#[derive(Clone, Debug)]
pub struct Gauge {
    slots: Weak<Semaphore>,
    capacity: NonZeroU32,
}

impl Gauge {
    /// Returns how many pieces of work are queued or in progress. It may have changed by the time it is read.
    pub fn depth(&self) -> usize {
        let free = self.slots.upgrade().map(|it| it.available_permits());
        // More slots than a semaphore holds cannot be used.
        free.map_or(0, |it| self.capacity().min(Semaphore::MAX_PERMITS).saturating_sub(it))
    }

    /// Returns how many pieces of work may be there at once.
    pub fn capacity(&self) -> usize {
        usize::saturating(self.capacity.get())
    }
}

impl<M, A> Clone for Mailbox<M, A> {
    fn clone(&self) -> Self {
        Self {
            actor: self.actor.clone(),
            wrap: self.wrap,
            slots: Arc::clone(&self.slots),
            capacity: self.capacity,
        }
    }
}

impl<M, A> fmt::Debug for Mailbox<M, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("actor", &self.actor.get_id())
            .field("capacity", &self.capacity)
            .field("free", &self.slots.available_permits())
            .finish()
    }
}
