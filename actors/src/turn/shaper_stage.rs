//! Runs one shaper stage. A leaf of the turn supervisor, spawned when the stage's trigger holds;
//! the stages of a turn run one after another.

use std::sync::Arc;

use crate::session::context::SessionContext;
use ennead_runtime::{
    ports::BoxFuture,
    step4_context_shapers::{StageResult, apply_summary, run_stage},
    tokens::Tokens,
    turn::{TurnInput, effect::ShapeOrder, input::Crashed},
};

/// Above this a stage may take longer than a millisecond and goes to the blocking pool.
const LARGE: Tokens = Tokens(100_000);

/// Runs the stage and returns what the turn is to be given.
pub(crate) fn run(shared: Arc<SessionContext>, order: ShapeOrder) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let clock = &shared.world.clock;
        let (stage, started) = (order.stage, clock.elapsed());
        let result = if order.context.tokens < LARGE {
            Ok(shape(&order))
        } else {
            tokio::task::spawn_blocking(move || shape(&order)).await.map_err(|_| Crashed)
        };
        let took = clock.elapsed().saturating_sub(started).as_micros();
        let elapsed_us = u64::try_from(took).unwrap_or(u64::MAX);
        TurnInput::Shaped { stage, result, elapsed_us }
    })
}

fn shape(order: &ShapeOrder) -> Box<StageResult> {
    Box::new(match &order.summary {
        None => run_stage(order.stage, &order.context, &order.setup),
        Some((request, summary, id)) => apply_summary(&order.context, request, summary, id.clone()),
    })
}
