//! Carries out what the ledger decides about a failed model call.
//!
//! The other half of step 5, after asking and accepting: what is taken back, what is tried next, and
//! how a turn ends for which nothing is left.

use std::sync::Arc;

use super::{Effect, Turn};
use crate::{
    block::Block,
    event::Event,
    message::Message,
    recovery::{
        Remedy, Situation,
        chain::{ChainModel, model_limits},
        path1_output_escalation::WHOLE_MAX_TOKENS,
        table::most_retries,
    },
    run::{RunEnd, derived_settings::DerivedSettings},
    step::Step,
    step1_settings_resolution::Merged,
    step2_state_initialization::RequestParams,
    step4_context_shapers::Stage,
    step5_model_call::{FailureClass, ModelFailure, named_limits::NamedLimits},
    transcript::entry::StepDetail,
    turn::effect::{FallbackUsed, Purpose},
};

impl Turn {
    /// Returns whether the first model of the chain is in use.
    pub(super) fn is_primary(&self) -> bool {
        self.state.model.ledger.model() == 0
    }

    /// Returns the model in use.
    pub(super) fn link(&self) -> ChainModel {
        let at = self.state.model.ledger.model();
        let first = || ChainModel { provider: 0, model: self.settings().model.as_str().into() };
        self.state.model.chain.get(at).cloned().unwrap_or_else(first)
    }

    /// Returns the model in use; `None` if it is the first of the chain.
    pub(super) fn fallback_used(&self) -> Option<FallbackUsed> {
        if self.is_primary() {
            return None;
        }
        let link = self.link();
        let provider = self.facts.providers.get(link.provider).map(|it| it.name.clone());
        Some(FallbackUsed { provider: provider.unwrap_or_default(), model: link.model })
    }

    /// Begins to ask the model in use as the settings demand.
    pub(super) fn begin_asking(&mut self) {
        let settings = self.settings();
        let most = if self.is_primary() {
            u32::MAX
        } else {
            model_limits(&settings, &self.link().model).max_output
        };
        let streamed = self.facts.streams;
        let most = if streamed { most } else { most.min(WHOLE_MAX_TOKENS) };
        let max_tokens = settings.max_output_tokens.min(most);
        let asking = RequestParams { max_tokens, streamed };
        (self.state.model.answering, self.state.model.summarising) = (asking, asking);
    }

    /// The provider of each model of the chain.
    fn providers(&self) -> Vec<usize> {
        self.state.model.chain.iter().map(|it| it.provider).collect()
    }

    /// Returns whether another provider is asked when the one in use is away.
    pub(super) fn has_other_provider(&self) -> bool {
        self.state.model.ledger.has_other_provider(&self.providers())
    }

    /// Decides about a failure of a call that took this many milliseconds, and had begun to show
    /// its answer or not.
    pub(super) fn decide(
        &mut self,
        purpose: Purpose,
        failure: &ModelFailure,
        took_ms: u64,
        has_begun: bool,
    ) -> Remedy {
        if self.leaves_media_out(purpose, failure) {
            return Remedy::AskAgain;
        }
        let fits = self.learn_limits(failure);
        let draw = self
            .stream
            .draw("backoff", u64::from(self.number) << 32 | u64::from(self.state.model.attempt));
        let settings = self.settings();
        let RequestParams { max_tokens, streamed } = *self.state.model.parameters_for(purpose);
        let providers = self.providers();
        let situation = Situation {
            purpose,
            max_tokens,
            model_max_tokens: model_limits(&settings, &self.link().model).max_output,
            streamed,
            streams: self.facts.streams,
            providers: &providers,
            can_reduce: self.can_reduce(),
            max_retries: settings.max_retries,
            jitter_draw: draw as u64,
            took_ms,
            has_begun,
            fits,
        };
        self.state.model.ledger.decide(failure, &situation)
    }

    pub(super) fn apply(&mut self, purpose: Purpose, remedy: Remedy, failure: ModelFailure) {
        let cause = failure.class.code();
        // The text of a summary is never shown.
        if purpose == Purpose::Turn {
            self.withdraw();
        }
        let model = matches!(remedy, Remedy::SwitchModel { .. }).then(|| self.link().model);
        self.publish(Event::RecoveryTaken { cause, remedy: remedy.code(), model });
        match remedy {
            Remedy::RetryAfter { delay_ms, streamed, max_tokens } => {
                *self.state.model.parameters_for(purpose) = RequestParams { max_tokens, streamed };
                self.wait(purpose, delay_ms, &failure);
            }
            Remedy::EscalateOutput { max_tokens } => {
                let streamed = self.facts.streams;
                *self.state.model.parameters_for(purpose) = RequestParams { max_tokens, streamed };
                self.ask(purpose, cause);
            }
            Remedy::ReduceOutput { max_tokens } => {
                self.state.model.parameters_for(purpose).max_tokens = max_tokens;
                self.ask(purpose, cause);
            }
            Remedy::AskAgain | Remedy::Continue => self.ask(purpose, cause),
            Remedy::SwitchModel { .. } => {
                self.drop_paused();
                self.begin_asking();
                self.ask(purpose, cause);
            }
            Remedy::CollapseContext => self.shape_again(Stage::ContextCollapse, failure),
            Remedy::CompactReactively => self.shape_again(Stage::AutoCompact, failure),
            Remedy::ReduceContext => self.shape_again(Stage::OverflowReduction, failure),
            Remedy::ShrinkSummary => self.shrink_summary(cause),
            Remedy::Surface => match purpose {
                Purpose::Turn => {
                    self.drop_paused();
                    self.fail(&failure);
                }
                Purpose::Compaction => {
                    let lasts = failure.class.is_of_answer();
                    self.no_summary(&format!("no summary: {cause}"), lasts);
                }
                // Its failure is the next handler's to make up for, and no remedy is looked for.
                Purpose::Classification | Purpose::Hook | Purpose::Synthesis => {}
            },
        }
    }

    /// Takes in what the failure names of the model's limits, for this turn and all later ones; gives
    /// the output ceiling that fits.
    ///
    /// It goes by the recorded words and becomes a part of the catalogue, so a replay comes to the same.
    fn learn_limits(&mut self, failure: &ModelFailure) -> Option<u32> {
        if !matches!(failure.class, FailureClass::OutputOverflow | FailureClass::ContextOverflow) {
            return None;
        }
        let named = NamedLimits::read(&failure.message);
        if let Some(learned) = named.apply_to(&self.memory.catalogue, &self.link().model) {
            self.memory.catalogue = Arc::new(learned);
            if let Some(merged) = self.memory.merged.take() {
                let merged = Arc::new(Merged::new(merged.layers.to_vec(), &self.memory.catalogue));
                let resolved = Arc::clone(&merged.resolved);
                let derived_settings = Arc::new(DerivedSettings::new(&resolved, &self.facts));
                self.state.settings = Some(Arc::clone(derived_settings.settings()));
                self.memory.derived_settings = Some(derived_settings);
                self.memory.resolved = Some(resolved);
                self.memory.merged = Some(merged);
                self.memory.has_learned = true;
                self.set_context_budget();
            }
        }
        named.fitting_output()
    }

    fn ask(&mut self, purpose: Purpose, cause: &'static str) {
        match purpose {
            Purpose::Turn => self.ask_model(Some(cause)),
            Purpose::Compaction => self.ask_for_summary(Some(cause)),
            Purpose::Classification | Purpose::Hook | Purpose::Synthesis => {}
        }
    }

    fn wait(&mut self, purpose: Purpose, delay_ms: u64, failure: &ModelFailure) {
        let model = &mut self.state.model;
        model.cause = Some(failure.class.code());
        model.waiting = Some(purpose);
        let (attempt, n_retries) = (model.attempt, model.ledger.n_retries(purpose));
        self.publish(Event::ModelRetry {
            attempt: n_retries,
            max_retries: most_retries(failure.class, self.settings().max_retries),
            delay_ms,
            status: failure.status,
            error: failure.class.code(),
            cause: failure.message.as_str().into(),
        });
        self.effects.push(Effect::Wait { attempt, ms: delay_ms });
    }

    pub(super) fn timer_fired(&mut self, attempt: u32) {
        if attempt != self.state.model.attempt {
            return;
        }
        if let Some((purpose, cause)) = self.state.model.waiting.take().zip(self.state.model.cause)
        {
            self.ask(purpose, cause);
        }
    }

    /// Takes back what the last attempt may have shown, once. Whether it had shown anything is not
    /// in the transcript, so it is published in any case.
    pub(super) fn withdraw(&mut self) {
        let attempt = self.state.model.attempt;
        if self.state.model.withdrawn != attempt {
            self.state.model.withdrawn = attempt;
            self.publish(Event::Withdrawn { attempt });
        }
    }

    /// What was begun is not gone on with: another model cannot, and after the last failure none is
    /// asked.
    fn drop_paused(&mut self) {
        self.state.model.paused = None;
        for attempt in std::mem::take(&mut self.state.model.paused_attempts) {
            self.publish(Event::Withdrawn { attempt });
        }
    }

    /// Notes that a remedy changed nothing: the same failure again, for the next remedy.
    pub(super) fn remedy_was_fruitless(&mut self, failure: ModelFailure) {
        let remedy = self.decide(Purpose::Turn, &failure, 0, false);
        self.apply(Purpose::Turn, remedy, failure);
    }

    /// Fails the model call of the turn, since no remedy is left. Steps 6 to 8 have nothing to do, and step 9 reads the
    /// recorded error.
    pub(super) fn fail(&mut self, failure: &ModelFailure) {
        let id = self.journal.next_id(self.now);
        let text = format!("{}: {}", failure.class.code(), failure.message);
        self.remember(Message::mark(id, Block::error(&text)));
        let overflow = [FailureClass::ContextOverflow, FailureClass::OutputOverflow];
        let end =
            if overflow.contains(&failure.class) { RunEnd::PromptTooLong } else { RunEnd::Error };
        self.end_with(end, Some(text));
        self.state.model.failed = Some(failure.class);
        let attempts = self.state.model.turn_attempts;
        let outcome = failure.class.code().to_owned();
        self.record_step_of(
            Step::ModelCall,
            StepDetail::Model { attempts, outcome, estimated: None, anchor: None },
        );
        for step in [Step::ToolDispatch, Step::PermissionGate, Step::ToolExecution] {
            let nothing = "there is no answer".into();
            self.record_step_of(step, StepDetail::Nothing { nothing });
        }
        self.next(Step::StopCheck);
    }
}
