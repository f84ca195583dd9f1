//! Step 5 of a turn: the model is asked until it answers or the ledger is at its end.

use std::{collections::BTreeSet, sync::Arc};

use super::{Effect, Then, Turn};
use crate::{
    block::Block,
    event::Event,
    ids::ToolUseId,
    message::{Message, tokens_of},
    recovery::{Remedy, Situation},
    run::{RunEnd, conversation::Anchor},
    step::Step,
    step4_context_shapers::Stage,
    step5_model_call::{
        FailureClass, ModelAnswer, ModelFailure, StopReason,
        request::{EncodedHead, EncodedRequest, PrefixChain, RequestHead, encode},
        view::compile,
    },
    tokens::Tokens,
    transcript::entry::{AnswerFields, StepDetail, Unsaid, What, clip},
    turn::{
        effect::{ModelCallOrder, Purpose},
        input::Answered,
    },
};

/// Continuations of a paused answer within one turn (MDL-10).
const MAX_PAUSES: usize = 10;

/// Bytes of what a provider says about a failure, so that its record holds all of it.
const MAX_MESSAGE_BYTES: usize = 1024;

impl Turn {
    pub(super) fn call_model(&mut self) {
        self.ask_model(None);
    }

    /// Sends the present view.
    pub(super) fn ask_model(&mut self, cause: Option<&'static str>) {
        let Some(shaped) = &self.state.shaped else { return };
        let estimate = self.state.model.fixed_estimate + tokens_of(&shaped.messages);
        self.state.model.raw_estimate = estimate;
        self.state.view = compile(&shaped.messages);
        if let Some(paused) = &self.state.model.paused {
            self.state.view.push_answer(paused);
        }
        self.state.model.turn_attempts += 1;
        let attempt = self.begin_attempt(Purpose::Turn, cause);
        let head = self.head();
        let request = encode(&head, &self.state.view, &mut self.carry.prefix);
        self.send(Purpose::Turn, attempt, request);
    }

    /// Asks for a summary.
    pub(super) fn ask_for_summary(&mut self, cause: Option<&'static str>) {
        let Some(summary) = &self.state.shaping.summary else { return };
        let view = compile(&summary.messages);
        let attempt = self.begin_attempt(Purpose::Compaction, cause);
        let request = encode(&self.head(), &view, &mut PrefixChain::default());
        self.send(Purpose::Compaction, attempt, request);
    }

    fn begin_attempt(&mut self, purpose: Purpose, cause: Option<&'static str>) -> u32 {
        let model = &mut self.state.model;
        model.attempt += 1;
        model.purpose = Some(purpose);
        model.cause = cause;
        model.attempt
    }

    fn send(&mut self, purpose: Purpose, attempt: u32, request: EncodedRequest) {
        let streamed = self.state.model.streamed;
        self.state.model.request = (request.digest, request.body.len() as u64);
        let order = ModelCallOrder { purpose, attempt, request, streamed };
        self.effects.push(Effect::CallModel(Box::new(order)));
    }

    /// System prompt and tools, encoded once for the session: both are fixed while it lives.
    fn head(&mut self) -> EncodedHead {
        let settings = self.settings();
        let (max_tokens, stream) = (self.state.model.max_tokens, self.state.model.streamed);
        let kept = self.carry.head.get_or_insert_with(|| {
            let assembled = self.state.assembled.as_ref();
            let tools = assembled.map(|it| &it.tools[..]).unwrap_or_default();
            let head = RequestHead {
                model: settings.model.as_str().into(),
                max_tokens,
                stream,
                system: assembled.map(|it| it.system.to_vec()).unwrap_or_default(),
                tools: tools.to_vec(),
            };
            Arc::new(EncodedHead::new(head))
        });
        kept.with(&settings.model, max_tokens, stream)
    }

    pub(super) fn model_answered(&mut self, mut answered: Answered) {
        if answered.attempt != self.state.model.attempt {
            return;
        }
        let Some(purpose) = self.state.model.purpose.take() else { return };
        match &mut answered.result {
            Ok(answer) => self.drop_second_uses(answer),
            // What is decided and said goes by the words that the record holds.
            Err(failure) => clip(&mut failure.message, MAX_MESSAGE_BYTES),
        }
        self.record_attempt(purpose, &answered);
        if let Ok(answer) = &answered.result {
            self.state.model.usage = self.state.model.usage + answer.usage;
        } else {
            self.count_failure();
        }
        match purpose {
            Purpose::Turn => self.turn_answered(answered.result),
            Purpose::Compaction => self.summary_answered(answered.result),
        }
    }

    fn record_attempt(&mut self, purpose: Purpose, answered: &Answered) {
        let unsaid = answered.result.as_ref().ok().and_then(|it| self.unsaid(purpose, it));
        let model = &self.state.model;
        let failure = answered.result.as_ref().err();
        let what = What::ModelAttempt {
            attempt: answered.attempt,
            purpose: purpose.name().into(),
            cause: model.cause.map(Into::into),
            streamed: model.streamed,
            max_tokens: model.max_tokens,
            request: model.request.0,
            request_bytes: model.request.1,
            outcome: failure.map_or("ok", |it| it.class.code()).into(),
            message: failure.map(|it| it.message.clone()),
            retry_after_ms: failure.and_then(|it| it.retry_after_ms),
            status: failure.and_then(|it| it.status),
            usage: answered.result.as_ref().map(|it| it.usage).unwrap_or_default(),
            first_token_ms: answered.first_token_ms,
            duration_ms: answered.duration_ms,
            unsaid,
        };
        self.journal.record(self.now, what);
    }

    /// What no line of the conversation will hold of an answer.
    fn unsaid(&mut self, purpose: Purpose, answer: &ModelAnswer) -> Option<Unsaid> {
        let is_said = match answer.stop_reason {
            StopReason::MaxTokens | StopReason::Refusal | StopReason::ContextWindowExceeded => {
                false
            }
            StopReason::PauseTurn => MAX_PAUSES <= self.state.model.pauses,
            _ => true,
        };
        if purpose == Purpose::Turn && is_said {
            return None;
        }
        let content = self.journal.stored(&wire_of(&answer.blocks));
        Some(Unsaid { stop_reason: answer.stop_reason.as_wire().into(), content })
    }

    fn count_failure(&mut self) {
        self.carry.retries += 1;
        if self.carry.retries == 10 {
            self.alert("10 model calls of this session have failed");
        }
    }

    fn turn_answered(&mut self, result: Result<ModelAnswer, ModelFailure>) {
        match result {
            Ok(answer) => match answer.stop_reason {
                StopReason::MaxTokens => self.cut(answer),
                StopReason::Refusal => self.remedy(failure_of(FailureClass::Refusal, &answer)),
                StopReason::ContextWindowExceeded => {
                    self.remedy(failure_of(FailureClass::ContextOverflow, &answer));
                }
                StopReason::PauseTurn if self.state.model.pauses < MAX_PAUSES => self.pause(answer),
                _ => self.accept(answer),
            },
            Err(failure) => self.remedy(failure),
        }
    }

    /// The output ceiling cut the answer: more room, or what there is.
    fn cut(&mut self, answer: ModelAnswer) {
        let failure = failure_of(FailureClass::MaxOutput, &answer);
        match self.decide(&failure) {
            Remedy::Surface => {
                // An unfinished message runs nothing.
                let mut blocks = self.state.model.paused.take().unwrap_or_default();
                blocks.extend_from_slice(&answer.blocks);
                blocks.retain(|it| it.as_tool_use().is_none());
                if !blocks.is_empty() {
                    self.say_answer(&ModelAnswer { blocks, ..answer });
                }
                self.fail(&failure);
            }
            remedy => self.apply(remedy, failure),
        }
    }

    /// A server tool needs another request: what there is goes back unchanged.
    fn pause(&mut self, answer: ModelAnswer) {
        self.state.model.pauses += 1;
        self.state.model.paused.get_or_insert_default().extend(answer.blocks);
        self.ask_model(Some("pause_turn"));
    }

    fn accept(&mut self, mut answer: ModelAnswer) {
        if let Some(mut paused) = self.state.model.paused.take() {
            paused.append(&mut answer.blocks);
            answer.blocks = paused;
        }
        let usage = answer.usage;
        let estimate = answer.blocks.iter().map(Block::chars).sum();
        self.carry.anchor = Some(Anchor {
            reported: usage.total(),
            estimated: self.state.model.raw_estimate + Tokens::from_chars(estimate),
        });
        self.carry.last_answer_at = Some(self.now);
        self.say_answer(&answer);
        self.state.model.answer = Some(answer);
        let attempts = self.state.model.turn_attempts;
        self.record_step(StepDetail::Model { attempts, outcome: "ok".into() });
        self.once_recorded(Then::Step(Step::ToolDispatch));
    }

    /// Calls and results are matched by id, so of several calls with one id only the first counts.
    fn drop_second_uses(&mut self, answer: &mut ModelAnswer) {
        let paused = self.state.model.paused.iter().flatten().filter_map(Block::as_tool_use);
        let mut seen: BTreeSet<ToolUseId> = paused.map(|(id, ..)| id.clone()).collect();
        let mut dropped = Vec::new();
        answer.blocks.retain(|block| match block.as_tool_use() {
            Some((id, ..)) if !seen.insert(id.clone()) => {
                dropped.push(id.clone());
                false
            }
            _ => true,
        });
        for id in dropped {
            let what = format!("the model asked twice with the id {id}; the second is left out");
            self.tell(Event::Alert { what: what.into() });
        }
    }

    fn say_answer(&mut self, answer: &ModelAnswer) {
        let id = self.journal.next_id(self.now);
        self.state.model.answer_entry = Some(id.clone());
        let message = Message::answer(id, &answer.message_id, answer.blocks.clone());
        let fields = AnswerFields {
            model: answer.model.clone(),
            stop_reason: answer.stop_reason.as_wire().into(),
            usage: answer.usage,
        };
        let message = self.journal.answer(self.now, message, fields);
        let (text, attempt) = (message.text().into(), self.state.model.attempt);
        self.history.push(message);
        self.tell(Event::MessageCompleted { attempt, text, usage: answer.usage });
    }

    fn remedy(&mut self, failure: ModelFailure) {
        let remedy = self.decide(&failure);
        self.apply(remedy, failure);
    }

    fn decide(&mut self, failure: &ModelFailure) -> Remedy {
        let draw = self
            .stream
            .draw("backoff", u64::from(self.number) << 32 | u64::from(self.state.model.attempt));
        let settings = self.settings();
        let situation = Situation {
            max_tokens: self.state.model.max_tokens,
            model_max_tokens: settings.model_max_output_tokens,
            streamed: self.state.model.streamed,
            n_models: 1,
            jitter_draw: draw as u64,
        };
        self.state.model.ledger.decide(failure, &situation)
    }

    fn apply(&mut self, remedy: Remedy, failure: ModelFailure) {
        let cause = failure.class.code();
        self.tell(Event::Withdrawn { attempt: self.state.model.attempt });
        self.tell(Event::RecoveryTaken { cause, remedy: remedy.code() });
        match remedy {
            Remedy::RetryAfter { delay_ms, streamed, max_tokens } => {
                self.state.model.streamed = streamed;
                self.state.model.max_tokens = max_tokens;
                self.state.model.cause = Some(cause);
                let attempt = self.state.model.attempt;
                self.state.model.waiting = true;
                self.effects.push(Effect::Wait { attempt, ms: delay_ms });
            }
            Remedy::EscalateOutput { max_tokens } | Remedy::ReduceOutput { max_tokens } => {
                self.state.model.max_tokens = max_tokens;
                self.ask_model(Some(cause));
            }
            Remedy::CollapseContext => self.shape_again(Stage::ContextCollapse, failure),
            Remedy::CompactReactively => self.shape_again(Stage::AutoCompact, failure),
            Remedy::SwitchModel { .. } | Remedy::Surface => self.fail(&failure),
        }
    }

    pub(super) fn timer_fired(&mut self, attempt: u32) {
        if self.state.model.waiting && attempt == self.state.model.attempt {
            self.state.model.waiting = false;
            let cause = self.state.model.cause;
            self.ask_model(cause);
        }
    }

    /// A remedy changed nothing: the same failure again, for the next remedy.
    pub(super) fn remedy_was_fruitless(&mut self, failure: ModelFailure) {
        self.remedy(failure);
    }

    /// No remedy is left. Steps 6 to 8 have nothing to do, and step 9 reads the recorded error.
    pub(super) fn fail(&mut self, failure: &ModelFailure) {
        let id = self.journal.next_id(self.now);
        let text = format!("{}: {}", failure.class.code(), failure.message);
        self.remember(Message::mark(id, Block::error(&text)));
        if failure.class == FailureClass::ContextOverflow {
            self.end_with(RunEnd::PromptTooLong, Some(text));
        } else {
            self.end_with(RunEnd::Error, Some(text));
        }
        let attempts = self.state.model.turn_attempts;
        let outcome = failure.class.code().to_owned();
        self.record_step_of(Step::ModelCall, StepDetail::Model { attempts, outcome });
        for step in [Step::ToolDispatch, Step::PermissionGate, Step::ToolExecution] {
            let nothing = "there is no answer".into();
            self.record_step_of(step, StepDetail::Nothing { nothing });
        }
        self.once_recorded(Then::Step(Step::StopCheck));
    }
}

/// The blocks as a JSON list.
fn wire_of(blocks: &[Block]) -> String {
    let mut wire = vec![b'['];
    for (i, block) in blocks.iter().enumerate() {
        if 0 < i {
            wire.push(b',');
        }
        block.push_wire(&mut wire);
    }
    wire.push(b']');
    String::from_utf8(wire).unwrap_or_default()
}

pub(super) fn failure_of(class: FailureClass, answer: &ModelAnswer) -> ModelFailure {
    let message = match class {
        FailureClass::MaxOutput => "the output ceiling cut the answer",
        FailureClass::Refusal => "the model refused to answer",
        _ => "the prompt is too long for the model",
    };
    ModelFailure {
        class,
        status: None,
        message: message.into(),
        retry_after_ms: None,
        partial_text: answer.blocks.iter().filter_map(Block::as_text).collect(),
    }
}
