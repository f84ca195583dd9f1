//! Time of each of the nine steps.
//!
//! A breakpoint that lets every turn pass reads the clock where a step begins, inside the turn, so
//! nothing lies between the moment and its reading. The last step ends where the next turn begins;
//! in the last turn, with the event that the turn has finished. Host and listener share one thread.

use std::{fmt, sync::Arc, time::Duration};

use ennead::{Events, Placement, SessionHandle, internal::GoOn, testing::Breakpoints};
use ennead_runtime::{
    event::Event, ids::SessionId, ports::Clock, saturating::Saturating as _, step::Step,
};
use futures::future;
use serde::Serialize;
use tokio::sync::mpsc::{self, UnboundedSender};

use super::{
    BenchError,
    meters::ModelTime,
    samples::{as_us, median},
    stage::{CALLS, RUNS_PER_SESSION, Stage, StageMeters, answered, close},
};

use crate::demo::is_last;

/// What a step costs.
#[derive(Clone, Debug, Serialize)]
pub struct StepCost {
    /// The step that was measured.
    pub step: Step,
    /// Turns that each of the two figures is taken over.
    pub n_turns: u32,
    /// The median in turns with one call. Without the model's own time.
    #[serde(rename = "with_call_us", serialize_with = "as_us")]
    pub with_call: Duration,
    /// The median in turns that answer. Without the model's own time.
    #[serde(rename = "answer_us", serialize_with = "as_us")]
    pub answer: Duration,
}

/// When a step began, and the model's time until then.
#[derive(Clone, Copy, Debug)]
struct Begun {
    step: Step,
    at: Duration,
    model: Duration,
}

/// Records when steps begin.
struct StepClock {
    clock: Arc<dyn Clock>,
    model_time: Arc<ModelTime>,
    begun: UnboundedSender<Begun>,
}

impl fmt::Debug for StepClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepClock")
    }
}

impl Breakpoints for StepClock {
    fn reached(&self, _: &SessionId, step: Step, go_on: GoOn) -> Option<GoOn> {
        let (at, model) = (self.clock.elapsed(), self.model_time.wall());
        // The measurement may be over.
        let _gone = self.begun.send(Begun { step, at, model });
        Some(go_on)
    }
}

type StepSamples = [Vec<Duration>; 9];

pub(super) async fn measure(n_turns: u32) -> Result<Vec<StepCost>, BenchError> {
    // A thread of its own with a runtime of its own; it ends with the measurement.
    let measured = tokio::task::spawn_blocking(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build()?.block_on(measure_here(n_turns))
    });
    measured.await.map_err(|_| BenchError::Gone)?
}

async fn measure_here(n_turns: u32) -> Result<Vec<StepCost>, BenchError> {
    let (sender, mut begun) = mpsc::unbounded_channel();
    let stage = Stage::with(Placement::Ambient, |StageMeters { clock, model_time }| {
        Some(Arc::new(StepClock { clock, model_time, begun: sender }))
    })
    .await?;
    let mut samples: [StepSamples; 2] = Default::default();
    // The first run touches all code and is not counted.
    let mut session = stage.open(1).await?;
    for run in 0..=n_turns.div_ceil(2) {
        if run % RUNS_PER_SESSION == 0 {
            close(&session).await;
            session = stage.open(1).await?;
        }
        let finished = one(&session, stage.clock.as_ref()).await?;
        let walked: Vec<Begun> = std::iter::from_fn(|| begun.try_recv().ok()).collect();
        if 0 < run {
            let mut left = walked.as_slice();
            for samples in &mut samples {
                let (turn, next) = left.split_at(left.len().min(Step::ALL.len()));
                sample(turn, next.first().map_or(finished, |it| it.at), samples);
                left = next;
            }
        }
    }
    close(&session).await;
    stage.end().await;
    let [mut with_call, mut answer] = samples;
    let costs = Step::ALL.into_iter().zip(&mut with_call).zip(&mut answer);
    let costs = costs.map(|((step, with_call), answer)| StepCost {
        step,
        n_turns: u32::saturating(answer.len()),
        with_call: median(with_call),
        answer: median(answer),
    });
    Ok(costs.collect())
}

/// Adds the steps of one turn, which ended then.
fn sample(turn: &[Begun], end: Duration, samples: &mut StepSamples) {
    for (at, begun) in turn.iter().enumerate() {
        let next = turn.get(at + 1);
        let model = next.map_or(Duration::ZERO, |it| it.model.saturating_sub(begun.model));
        let took = next.map_or(end, |it| it.at).saturating_sub(begun.at).saturating_sub(model);
        samples[usize::from(begun.step.number() - 1)].push(took);
    }
}

/// One run of two turns; says when the event of the last end came.
async fn one(session: &[SessionHandle], clock: &dyn Clock) -> Result<Duration, BenchError> {
    let session = session.first().ok_or(BenchError::Gone)?;
    let end = end_of_turns(session.events(), clock);
    let (turns, end) = future::join(answered(session, CALLS), end).await;
    turns.map(|_| end)
}

async fn end_of_turns(mut events: Events, clock: &dyn Clock) -> Duration {
    let mut end = Duration::ZERO;
    while let Some(event) = events.next().await {
        if matches!(event.event, Event::TurnFinished { .. }) {
            end = clock.elapsed();
        }
        if is_last(&event) {
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-3
    #[test]
    fn a_step_lasts_until_the_next_one_without_the_model() {
        let ms = Duration::from_millis;
        let begun = |at: u64, model: u64, step| Begun { step, at: ms(at), model: ms(model) };
        let turn: Vec<Begun> = Step::ALL
            .into_iter()
            .zip([0, 1, 3, 6, 10, 50, 51, 52, 60])
            .map(|(step, at)| begun(at, if step <= Step::ModelCall { 5 } else { 35 }, step))
            .collect();
        let mut samples = StepSamples::default();
        sample(&turn, ms(70), &mut samples);
        let took: Vec<Vec<Duration>> = samples.into();
        let expected = [1, 2, 3, 4, 10, 1, 1, 8, 10].map(|it| vec![ms(it)]);
        assert_eq!(took, expected);
    }
}
