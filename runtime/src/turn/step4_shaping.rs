//! Step 4 of a turn, and its repetition inside step 5: the chain of shapers.
//!
//! The step is walked stage by stage, and the stage auto_compact has hooks and
//! a model call in its middle.

use std::{num::NonZeroUsize, sync::Arc};

use super::{Awaits, Effect, Then, Turn};
use crate::{
    event::Event,
    hook::Firing,
    message::{Message, Messages, SharedMessages, estimate_of},
    run::{
        conversation::ShapedView,
        facts::{
            ASKS_CACHE, CLEARS_OLD, CLEARS_UNCAPPED, COUNTS_CLEARED, KEEPS_FRAMES,
            PAUSES_WITHIN_WINDOW, REBUILDS, REMEMBERS_FRUITLESS, SHAPES_CONVERSATION,
        },
    },
    step::Step,
    step2_state_initialization::FiringReason,
    step4_context_shapers::{
        ColdCache, Due, ShaperSetup, Sharing, Stage, StageResult, overflow_reduction::can_shrink,
        recorded_view::changes, trigger,
    },
    step5_model_call::{ModelFailure, model_name::is_same},
    tokens::{Estimate, Tokens},
    transcript::entry::{PassedStage, RecordKind, StepDetail, StoredText, TextFolder},
    turn::{effect::ShapeOrder, input::Crashed},
};

impl Turn {
    pub(super) fn shape_context(&mut self) {
        if self.carried_answer().is_some() {
            return self.shape_nothing();
        }
        let budget = self.context_budget();
        let Some(derived_settings) = &self.memory.derived_settings else { return };
        self.state.shaper_setup = Some(Arc::new(ShaperSetup {
            settings: self.shapers(),
            context_budget: budget,
            trigger_override: None,
            fixed: self.fixed_tokens(),
            spent_micro_usd: self.memory.spent.micro_usd(),
            reference_prefix: Arc::clone(&derived_settings.results_directory),
            idle_ms: self.state.idle_ms,
            cold: self.cold_cache(),
            exempt_tools: Arc::clone(&derived_settings.exempt_tools),
            own_caps: Arc::clone(&derived_settings.own_caps),
            sharing: if self.facts.revision < 1 { Sharing::Message } else { Sharing::Turn },
            grades: self.appends(),
            clears: CLEARS_OLD <= self.facts.revision,
            keeps_frames: KEEPS_FRAMES <= self.facts.revision,
            counts_cleared: COUNTS_CLEARED <= self.facts.revision,
            clears_uncapped: CLEARS_UNCAPPED <= self.facts.revision,
            summary_pause: self.memory.compactions.pause(),
            pauses_where_it_fits: PAUSES_WITHIN_WINDOW <= self.facts.revision,
            asked: self.compacts.clone(),
            counting: self.counting(),
        }));
        self.shape_from(0);
    }

    /// Why the provider's cache holds nothing of the conversation, as far as the session can know.
    fn cold_cache(&self) -> Option<ColdCache> {
        if self.facts.revision < ASKS_CACHE {
            return None;
        }
        let link = self.link();
        let caching = self.settings().prompt_caching_of(self.facts.agent.is_some());
        let Some(lasts_ms) = caching.keeps_ms(self.format(&link)) else {
            return Some(ColdCache::Off);
        };
        let answered = self.memory.anchor.as_ref().map(|it| &it.model);
        if answered.is_some_and(|it| !is_same(it, &link.model)) {
            return Some(ColdCache::OtherModel);
        }
        (lasts_ms < self.state.idle_ms).then_some(ColdCache::Expired)
    }

    /// What a request may hold in addition to the answer. A ceiling that is not smaller than half
    /// of the window is lowered when the model is asked, so it takes no more than that half.
    fn context_budget(&self) -> Tokens {
        let settings = self.settings();
        let (window, output) = (settings.context_window, u64::from(settings.max_output_tokens));
        let output = if self.facts.revision < 1 { output } else { output.min(window / 2) };
        Tokens(window.saturating_sub(output))
    }

    /// What no stage can free.
    fn fixed_tokens(&self) -> Tokens {
        let Some(assembled) = self.state.assembled.as_ref().filter(|_| self.shapes_conversation())
        else {
            return Tokens(0);
        };
        self.counting().tokens(self.state.model.fixed_estimate + estimate_of(&assembled.context))
    }

    /// Returns whether the stages are given the conversation alone.
    pub(super) fn shapes_conversation(&self) -> bool {
        SHAPES_CONVERSATION <= self.facts.revision
    }

    /// Returns the harness's own messages that are sent in front of what the stages left of the conversation.
    pub(super) fn in_front(&self) -> &[Arc<Message>] {
        let assembled = self.state.assembled.as_ref().filter(|_| self.shapes_conversation());
        assembled.map_or(&[], |it| &it.context)
    }

    /// Estimates what is sent in addition to system prompt and tools.
    pub(super) fn sent_estimate(&self, conversation: &SharedMessages) -> Estimate {
        estimate_of(self.in_front().iter().chain(conversation.walk()))
    }

    /// Sets the limits of the model, which have become known.
    pub(super) fn set_context_budget(&mut self) {
        let budget = self.context_budget();
        if let Some(setup) = &mut self.state.shaper_setup {
            Arc::make_mut(setup).context_budget = budget;
        }
    }

    /// Goes on with the chain: passes over the stages whose trigger does not hold, and asks for
    /// the first whose does.
    fn shape_from(&mut self, first: usize) {
        let mut passed = Vec::with_capacity(Stage::ALL.len());
        for stage in Stage::ALL.into_iter().skip(first) {
            let (Some(context), Some(setup)) = (&self.state.shaped, &self.state.shaper_setup)
            else {
                return;
            };
            let due = match stage {
                Stage::BudgetReduction => self.memory.caps.trigger(context, setup).map(|()| None),
                _ => trigger(stage, context, setup).map(Some),
            };
            match due {
                Ok(due) => {
                    self.log_passed(passed);
                    return self.order_due_stage(stage, None, due);
                }
                Err(why) => {
                    if stage == Stage::AutoCompact {
                        self.state.shaping.why_not = Some(why.into());
                    }
                    passed.push((stage, why));
                }
            }
        }
        self.log_passed(passed);
        self.shaped_all();
    }

    /// One line for the stages that were passed over since the last that ran.
    fn log_passed(&mut self, passed: Vec<(Stage, &'static str)>) {
        let Some(tokens) = self.state.shaped.as_ref().map(|it| it.tokens) else { return };
        if passed.is_empty() {
            return;
        }
        let stages = passed
            .into_iter()
            .map(|(stage, why)| {
                let (stage, fired) = (stage.name(), false);
                self.publish(Event::ShaperApplied {
                    stage,
                    fired,
                    tokens_before: tokens,
                    tokens_after: tokens,
                });
                PassedStage { stage: stage.into(), why: why.into() }
            })
            .collect();
        self.journal.record(self.now, RecordKind::ShapersPassed { tokens, stages });
    }

    pub(super) fn order_stage(&mut self, stage: Stage, summary: Option<String>) {
        self.order_due_stage(stage, summary, None);
    }

    fn order_due_stage(&mut self, stage: Stage, summary: Option<String>, due: Option<Due>) {
        let (Some(context), Some(setup)) = (&self.state.shaped, &self.state.shaper_setup) else {
            return;
        };
        let summary = summary.and_then(|text| {
            let request = self.state.shaping.summary.clone()?;
            Some((request, text, self.stream.entry_id(self.now, "summary", self.number.into())))
        });
        self.awaits = Some(Awaits::Stage(stage));
        let order =
            ShapeOrder { stage, context: context.clone(), setup: Arc::clone(setup), summary, due };
        self.effects.push(Effect::Shape(Box::new(order)));
    }

    pub(super) fn log_stage(
        &mut self,
        stage: Stage,
        fired: bool,
        before: Tokens,
        elapsed_us: u64,
        why: &str,
    ) {
        if stage == Stage::AutoCompact {
            self.state.shaping.why_not = (!fired).then(|| why.to_owned());
        }
        let after = self.state.shaped.as_ref().map_or(before, |it| it.tokens);
        let cause = self.state.shaping.failure.as_ref().map(|it| it.class.code().to_owned());
        let attempt = cause.as_ref().map(|_| self.state.model.attempt);
        // Other stages change nothing about it.
        let may_wait = matches!(stage, Stage::AutoCompact | Stage::OverflowReduction)
            && REMEMBERS_FRUITLESS <= self.facts.revision;
        let pause = self.memory.compactions.lasting_pause();
        let what = RecordKind::Shaper {
            stage: stage.name().into(),
            fired,
            tokens_before: before,
            tokens_after: after,
            elapsed_us,
            why: why.into(),
            attempt,
            cause,
            waits: NonZeroUsize::new(pause).filter(|_| may_wait),
        };
        self.journal.record(self.now, what);
        let (tokens_before, tokens_after) = (before, after);
        self.publish(Event::ShaperApplied {
            stage: stage.name(),
            fired,
            tokens_before,
            tokens_after,
        });
    }

    pub(super) fn shaped(
        &mut self,
        stage: Stage,
        result: Result<Box<StageResult>, Crashed>,
        elapsed_us: u64,
    ) {
        if !self.was_awaited(Awaits::Stage(stage)) {
            return;
        }
        let Some(context) = &self.state.shaped else { return };
        let before = context.tokens;
        match result.map(|it| *it) {
            Ok(StageResult::Changed { mut context, stored, why }) => {
                for (_, text) in stored {
                    self.journal.keep(StoredText::new(text, TextFolder::ToolResults));
                }
                self.memory.cache.shaped(stage == Stage::AutoCompact);
                if stage == Stage::AutoCompact {
                    self.compacted(&context, before);
                    self.show_context_again(&mut context);
                    self.state.shaping.freed = before.saturating_sub(context.tokens);
                }
                if stage == Stage::OverflowReduction {
                    let waits = self.shapes_conversation().then_some(context.messages.len());
                    self.memory.compactions.note_fit(waits);
                }
                self.state.shaped = Some(context);
                self.state.shaping.fired += 1;
                if stage == Stage::AutoCompact {
                    self.watch_compaction(before, &why, true);
                }
                self.log_stage(stage, true, before, elapsed_us, &why);
                if stage == Stage::AutoCompact {
                    if !self.begin_restoration() {
                        self.compaction_over();
                    }
                    return;
                }
                self.after_stage(stage, true);
            }
            Ok(StageResult::Unchanged { why }) => {
                if stage == Stage::AutoCompact {
                    self.watch_compaction(before, &why, true);
                }
                self.log_stage(stage, false, before, elapsed_us, &why);
                self.after_stage(stage, false);
            }
            Ok(StageResult::NeedsSummary(request)) => {
                self.state.shaping.summary = Some(*request);
                let focus = self.compacts.clone();
                let custom_instructions = focus.as_deref().unwrap_or_default().into();
                let trigger = self.compaction_trigger().into();
                let firing = Firing::PreCompact { trigger, custom_instructions };
                let fired = self.fire(firing, None, FiringReason::PreCompact);
                if !fired {
                    self.ask_for_summary(None);
                }
            }
            Err(Crashed) => {
                self.log_stage(stage, false, before, elapsed_us, "the stage crashed");
                self.after_stage(stage, false);
            }
        }
    }

    pub(super) fn after_stage(&mut self, stage: Stage, changed: bool) {
        match self.state.shaping.failure.take() {
            None => {
                let next = Stage::ALL.iter().position(|it| *it == stage).map_or(5, |it| it + 1);
                self.shape_from(next);
            }
            Some(failure) if changed => {
                self.keep_view();
                self.state.model.cause = Some(failure.class.code());
                // What was cut must be kept before a reference to it is shown.
                self.once_recorded(Then::AskModel);
            }
            Some(failure) => {
                self.state.shaping.is_spent |= stage == Stage::OverflowReduction;
                self.remedy_was_fruitless(failure);
            }
        }
    }

    /// Runs a remedy of step 5: one stage, whatever its trigger returns.
    pub(super) fn shape_again(&mut self, stage: Stage, failure: ModelFailure) {
        let is_halving = stage == Stage::OverflowReduction;
        if is_halving && let Some(shaped) = &self.state.shaped {
            let estimate = self.sent_estimate(&shaped.messages);
            let whole = self.counting().tokens(self.state.model.fixed_estimate + estimate);
            // What was reported before counts for nothing when the provider says otherwise now.
            if let Some(shaped) = &mut self.state.shaped {
                shaped.tokens = shaped.tokens.max(whole);
            }
        }
        let tokens = self.state.shaped.as_ref().map_or(Tokens(0), |it| it.tokens);
        let forced = self.state.shaper_setup.as_ref().map(|setup| {
            let mut setup = ShaperSetup::clone(setup);
            // How much too much it is, the provider alone knows: half of what can go goes at a time.
            let half = setup.fixed + Tokens(tokens.saturating_sub(setup.fixed).0 / 2);
            setup.trigger_override = Some(if is_halving { half } else { Tokens(0) });
            Arc::new(setup)
        });
        self.state.shaper_setup = forced;
        self.state.shaping.failure = Some(failure);
        self.order_stage(stage, None);
    }

    /// Returns whether the provider's refusal of the context can be met by cutting what no stage touches.
    pub(super) fn can_reduce(&self) -> bool {
        let context = self.state.shaped.as_ref().zip(self.state.shaper_setup.as_ref());
        let may = 1 <= self.facts.revision && !self.state.shaping.is_spent;
        may && context.is_some_and(|(it, setup)| can_shrink(it, setup))
    }

    /// Cuts what the stages left, once, where it is more than the window holds. Gives whether it does.
    fn reduces_overflow(&mut self) -> bool {
        let stage = Stage::OverflowReduction;
        let context = self.state.shaped.as_ref().zip(self.state.shaper_setup.as_ref());
        let is_due = 1 <= self.facts.revision
            && !std::mem::replace(&mut self.state.shaping.is_reduced, true)
            && context.is_some_and(|(it, setup)| trigger(stage, it, setup).is_ok());
        if is_due {
            self.order_stage(stage, None);
        }
        is_due
    }

    fn shaped_all(&mut self) {
        if self.reduces_overflow() {
            return;
        }
        let Some(shaped) = &self.state.shaped else { return };
        let tokens = shaped.tokens;
        let budget = self.state.shaper_setup.as_ref().map_or(Tokens(0), |it| it.context_budget);
        let (fired, remaining) = (self.state.shaping.fired, budget.saturating_sub(tokens));
        if 0 < fired {
            self.keep_view();
        }
        self.record_step(StepDetail::Shaping { tokens, fired, remaining });
        // Without a cut nothing waits.
        if 0 < fired {
            self.once_recorded(Then::Step(Step::ModelCall));
        } else {
            self.next(Step::ModelCall);
        }
    }

    /// Later turns go on from what the shapers left, so that cuts do not move from turn to turn
    /// and with them the provider's cache.
    fn keep_view(&mut self) {
        let (Some(shaped), Some(assembled)) = (&self.state.shaped, &self.state.assembled) else {
            return;
        };
        let made_up = &assembled.context;
        let is_said = |it: &Arc<Message>| made_up.iter().all(|made_up| made_up.id != it.id);
        let messages: Messages = shaped.messages.walk().filter(|it| is_said(it)).cloned().collect();
        if REBUILDS <= self.facts.revision {
            for change in changes(&self.view_so_far(), &messages) {
                self.journal.record(self.now, RecordKind::View(change));
            }
        }
        self.memory.view = Some(ShapedView::new(messages.into(), self.history.len()));
        self.forget_unseen();
    }
}
