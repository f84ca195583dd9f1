//! An event as a listener receives it: with its place among the others.

use serde::Serialize;

use super::Event;

/// An event with its place in the session's sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Numbered {
    /// From 1, without gaps, per session: that of the last event that this one represents.
    pub seq: u64,
    /// That of the first. Events of a listener come in the order of these.
    pub first_seq: u64,
    /// Events that this one represents, itself included. 1, unless the listener was slow and some
    /// were joined or overtaken ([`Event::weight`]). The sum over what a listener got is the number
    /// of events that were sent.
    pub stands_for: u64,
    /// The event that happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Numbered {
    /// Makes the number of an event that represents `stands_for` events from `first_seq` to `seq`.
    pub fn new(first_seq: u64, seq: u64, stands_for: u64, event: Event) -> Self {
        Self { seq, first_seq, stands_for, event }
    }
}
