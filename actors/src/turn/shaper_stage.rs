//! Runs one shaper stage. A leaf of the turn supervisor, spawned when the stage's trigger holds;
//! the stages of a turn run one after another.

use std::sync::Arc;

use crate::session::context::SessionContext;
use ennead_runtime::{
    ports::BoxFuture,
    saturating::Saturating as _,
    tokens::Tokens,
    turn::{TurnInput, effect::ShapeOrder, input::Crashed},
};

/// Above this a stage may take longer than a millisecond and goes to the blocking pool.
const LARGE: Tokens = Tokens(100_000);

/// Runs the stage and returns what the turn is to be given.
pub(crate) fn run(
    session_context: Arc<SessionContext>,
    order: ShapeOrder,
) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let clock = &session_context.world.clock;
        let (stage, started) = (order.stage, clock.elapsed());
        let result = if order.context.tokens < LARGE {
            Ok(Box::new(order.run()))
        } else {
            tokio::task::spawn_blocking(move || Box::new(order.run())).await.map_err(|_| Crashed)
        };
        let took = clock.elapsed().saturating_sub(started).as_micros();
        let elapsed_us = u64::saturating(took);
        TurnInput::Shaped { stage, result, elapsed_us }
    })
}
