//! Transcripts of played sessions are walked again.

use std::sync::Arc;

use super::*;
use crate::{
    transcript::{entry::Line, load::LoadAs},
    turn::tests::play::Play,
};

mod joined;
mod long;
mod random;
mod sessions;

/// Replays what was played, given the texts next to it.
#[track_caller]
fn check(play: &Play) -> Replayed {
    match replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned()) {
        Ok(replayed) => replayed,
        Err(error) => panic!("{error}\nbehind: {}", play.log()),
    }
}
