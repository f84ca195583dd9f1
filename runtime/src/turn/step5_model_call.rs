//! Step 5 of a turn: the model is asked until it answers or the ledger is at its end.

use std::sync::Arc;

use super::{Effect, Turn};
use crate::{
    block::Block,
    digest::Digest,
    event::Event,
    ids::EntryId,
    message::{Message, MessageKind},
    permission::PermissionMode,
    recovery::{Remedy, chain::ChainModel},
    run::{
        RunEnd,
        facts::{NAMES_ANSWERS, REBUILDS},
    },
    step::Step,
    step2_state_initialization::RequestParams,
    step5_model_call::{
        FailureClass, ModelAnswer, ModelFailure,
        failure::{is_retry, of_answer},
        model_name,
        request::{CachePlan, EncodedHead, EncodedRequest, PrefixChain, RequestHead},
        view::{ViewTarget, compile_for},
        wire_format::WireFormat,
    },
    tokens::{Anchor, Estimate},
    transcript::entry::{AnswerFields, StepDetail, stored::clip},
    turn::{
        effect::{ModelCallOrder, Purpose},
        input::Answered,
    },
};

/// Failed model calls of a session at which an alert is sent (MDL-6).
const ALERT_AT: u32 = 10;

/// Bytes of what a provider says about a failure, so that its record holds all of it.
const MAX_MESSAGE_BYTES: usize = 1024;

impl Turn {
    pub(super) fn call_model(&mut self) {
        if let Some(answer) = self.carried_answer().cloned() {
            return self.carry_answer(&answer);
        }
        if self.compacts.is_some() {
            return self.call_nobody();
        }
        // Before there was a classifier nothing was asked in its mode.
        if self.facts.revision < 3 && self.mode() == PermissionMode::Auto {
            return self.fail(&ModelFailure {
                class: FailureClass::InvalidRequest,
                status: None,
                message: "the permission mode \"auto\" needs a classifier".into(),
                retry_after_ms: None,
                partial_text: String::new(),
            });
        }
        self.ask_model(None);
    }

    /// A run that sums up the conversation is over with that.
    fn call_nobody(&mut self) {
        let why_not = self.state.shaping.why_not.take();
        self.end_with(RunEnd::Compacted, why_not);
        let nothing = "the run sums up the conversation and answers nothing".into();
        self.record_step(StepDetail::Nothing { nothing });
        self.next(Step::ToolDispatch);
    }

    /// Sends the present view.
    pub(super) fn ask_model(&mut self, cause: Option<&'static str>) {
        let Some(shaped) = &self.state.shaped else { return };
        let messages = match &self.state.assembled {
            Some(assembled) if self.state.shaping.fired == 0 => assembled.estimate,
            _ => self.sent_estimate(&shaped.messages),
        };
        let estimate = self.state.model.fixed_estimate + messages;
        let link = self.link();
        let (front, conversation) = self.accepted(&shaped.messages);
        let target = self.target(&link);
        self.state.view = self.memory.carried.compile(&front, &conversation, target);
        self.state.model.raw_estimate = estimate;
        match &self.state.model.paused {
            Some(paused) => self.state.view.rest.push_answer(paused),
            None if 1 <= self.facts.revision => self.state.view.rest.end_with_user(),
            None => {}
        }
        self.record_repairs();
        self.state.model.turn_attempts += 1;
        let attempt = self.begin_attempt(Purpose::Turn, cause);
        let (head, format) = (self.head(Purpose::Turn), self.format(&link));
        let chain = self.memory.prefixes.entry((link.provider, link.model)).or_default();
        let request = format.encode_grown(&head, &self.state.view, chain, self.writes_bodies);
        self.memory.cache.note_sent(&head, &self.state.view, chain);
        self.send(Purpose::Turn, attempt, request);
    }

    /// Records and publishes what the view differs in from the conversation, each once per session.
    fn record_repairs(&mut self) {
        if self.facts.revision < 1 {
            return;
        }
        for note in std::mem::take(&mut self.state.view.rest.notes) {
            let digest = Digest::of(note.to_string().as_bytes());
            if self.memory.reported_repairs.insert(digest) {
                self.alert(&format!("the model sees the conversation otherwise: {note}"));
            }
        }
    }

    /// Asks for a summary.
    pub(super) fn ask_for_summary(&mut self, cause: Option<&'static str>) {
        let Some(summary) = &self.state.shaping.summary else { return };
        let asked = self.in_front().iter().chain(&summary.messages).cloned().collect();
        let view = compile_for(&self.without_refused(asked), self.target(&self.link()));
        let attempt = self.begin_attempt(Purpose::Compaction, cause);
        let (format, head) = (self.format(&self.link()), self.head(Purpose::Compaction));
        let request = format.encode(&head, &view, &mut PrefixChain::default());
        self.send(Purpose::Compaction, attempt, request);
    }

    pub(super) fn begin_attempt(&mut self, purpose: Purpose, cause: Option<&'static str>) -> u32 {
        let model = &mut self.state.model;
        model.attempt += 1;
        model.purpose = Some(purpose);
        model.cause = cause;
        model.attempt
    }

    fn send(&mut self, purpose: Purpose, attempt: u32, request: EncodedRequest) {
        let streamed = self.state.model.parameters_for(purpose).streamed;
        self.state.model.request = (request.digest, request.n_bytes);
        let link = self.link();
        self.state.model.asked = self.fallback_used();
        let (format, ChainModel { provider, model }) = (self.format(&link), link);
        let is_retry = self.state.model.cause.is_some_and(is_retry);
        let has_other_provider = self.has_other_provider();
        let (http, certificates) = (self.settings().http, self.settings().certificates.clone());
        let order = ModelCallOrder {
            purpose,
            attempt,
            provider,
            format,
            model,
            request,
            is_retry,
            has_other_provider,
            http,
            certificates,
            patience_ms: self.state.model.ledger.patience_ms(),
            limit_ms: None,
            streamed,
        };
        self.effects.push(Effect::CallModel(Box::new(order)));
    }

    /// Returns how a provider is spoken to.
    pub(super) fn format(&self, link: &ChainModel) -> WireFormat {
        let provider = self.facts.providers.get(link.provider);
        provider.map_or_else(WireFormat::default, |it| it.format)
    }

    /// Who is to read the view.
    fn target<'a>(&self, link: &'a ChainModel) -> ViewTarget<'a> {
        ViewTarget { format: self.format(link), model: Some(&link.model) }
    }

    /// System prompt and tools, encoded once for the session and format: both are fixed while it
    /// lives, unless tools join. A run that has a system prompt of its own has its own ones.
    fn head(&mut self, purpose: Purpose) -> EncodedHead {
        let (link, settings) = (self.link(), self.settings());
        let RequestParams { max_tokens, streamed } = *self.state.model.parameters_for(purpose);
        let (parameters, changes) =
            settings.parameters.for_model(&settings.models, &link.model, max_tokens);
        let format = self.format(&link);
        for change in changes {
            // Once per model, however often it is asked.
            if self.memory.reported_changes.insert((Arc::clone(&link.model), change)) {
                let what = change.alert(&link.model).into();
                self.effects.push(Effect::Publish(Event::Alert { what }));
            }
        }
        let heads = match self.system {
            Some(_) => &mut self.memory.run_heads,
            None => &mut self.memory.heads,
        };
        let kept = heads.entry(format).or_insert_with(|| {
            let assembled = self.state.assembled.as_ref();
            let tools = assembled.map(|it| &it.tools[..]).unwrap_or_default();
            let head = RequestHead {
                model: Arc::clone(&link.model),
                max_tokens,
                stream: streamed,
                system: assembled.map(|it| it.system.to_vec()).unwrap_or_default(),
                tools: tools.to_vec(),
                cache: CachePlan {
                    caching: settings.prompt_caching_of(self.facts.agent.is_some()),
                    n_static: assembled.map_or(0, |it| it.n_static),
                },
                parameters: Arc::default(),
            };
            Arc::new(EncodedHead::new(head))
        });
        kept.with(&link.model, max_tokens, streamed).with_parameters(parameters)
    }

    pub(super) fn model_answered(&mut self, mut answered: Answered) {
        if answered.attempt != self.state.model.attempt {
            return;
        }
        if self.state.model.purpose == Some(Purpose::Classification) {
            self.state.model.purpose = None;
            return self.classified(answered);
        }
        if self.state.model.purpose == Some(Purpose::Hook) {
            return self.hook_judged(answered);
        }
        if self.state.model.purpose == Some(Purpose::Synthesis) {
            return self.synthesized(answered);
        }
        let in_doubt = answered.is_in_doubt.then(|| self.worst_case().into());
        let Some(purpose) = self.state.model.purpose.take() else { return };
        let failure = match &mut answered.result {
            Ok(answer) => {
                self.give_calls_own_ids(answer);
                let failure = of_answer(answer, purpose == Purpose::Turn && self.follows_results());
                // Nothing can be added to a summary; what there is, is one.
                let is_summary = purpose == Purpose::Compaction;
                failure.filter(|it| !is_summary || it.class != FailureClass::PauseTurn)
            }
            // Decisions and events go by the words that the record holds.
            Err(failure) => {
                clip(&mut failure.message, MAX_MESSAGE_BYTES);
                Some(failure.clone())
            }
        };
        let (took_ms, has_begun) = (answered.duration_ms, answered.first_token_ms.is_some());
        let decided = failure.map(|failure| {
            let remedy = self.decide(purpose, &failure, took_ms, has_begun);
            (failure, remedy)
        });
        self.record_attempt(purpose, &answered, in_doubt, decided.as_ref());
        self.state.model.usage = self.state.model.usage + answered.usage;
        if answered.result.is_err() {
            self.count_failure();
        }
        match (purpose, answered.result.ok(), decided) {
            (Purpose::Turn, Some(answer), None) => self.accept(answer),
            (Purpose::Turn, Some(answer), Some((failure, remedy))) => {
                self.answer_failed(answer, failure, remedy);
            }
            (Purpose::Compaction, Some(answer), None) => self.summary_answered(&answer),
            (_, _, Some((failure, remedy))) => self.apply(purpose, remedy, failure),
            // Without an answer there is a failure, and what was asked apart from the conversation is not an answer in it.
            (Purpose::Classification | Purpose::Hook | Purpose::Synthesis, ..)
            | (_, None, None) => {}
        }
    }

    /// Whether the model was asked after results of tools.
    fn follows_results(&self) -> bool {
        let new = self.history.iter().rev().take_while(|it| it.kind != MessageKind::Answer);
        new.into_iter().any(|it| it.kind == MessageKind::ToolResults)
    }

    pub(super) fn count_failure(&mut self) {
        self.memory.retries += 1;
        if self.memory.retries == ALERT_AT {
            self.alert(&format!("{ALERT_AT} model calls of this session have failed"));
        }
    }

    /// There is an answer, and it is none to go on with.
    fn answer_failed(&mut self, answer: ModelAnswer, failure: ModelFailure, remedy: Remedy) {
        match (failure.class, remedy) {
            (_, Remedy::Continue) => self.pause(answer),
            (FailureClass::PauseTurn | FailureClass::EmptyAnswer, Remedy::Surface) => {
                self.accept(answer);
            }
            (FailureClass::MaxOutput, Remedy::Surface) => self.keep_cut(answer, &failure),
            _ => self.apply(Purpose::Turn, remedy, failure),
        }
    }

    /// The output ceiling cut the answer, and there is no more room: what there is, is kept.
    fn keep_cut(&mut self, answer: ModelAnswer, failure: &ModelFailure) {
        // An unfinished message runs nothing.
        let mut blocks = self.state.model.paused.take().unwrap_or_default();
        blocks.extend_from_slice(&answer.blocks);
        blocks.retain(|it| it.as_tool_use().is_none());
        if blocks.is_empty() {
            self.withdraw();
        } else {
            self.publish_answer(&ModelAnswer { blocks, ..answer });
        }
        self.fail(failure);
    }

    /// A server tool needs another request: what there is goes back unchanged.
    fn pause(&mut self, answer: ModelAnswer) {
        let model = &mut self.state.model;
        model.paused_attempts.push(model.attempt);
        model.paused.get_or_insert_default().extend(answer.blocks);
        self.ask_model(Some(FailureClass::PauseTurn.code()));
    }

    fn accept(&mut self, mut answer: ModelAnswer) {
        let was_paused = self.state.model.paused.is_some();
        if let Some(mut paused) = self.state.model.paused.take() {
            paused.append(&mut answer.blocks);
            answer.blocks = paused;
        }
        let usage = answer.usage;
        let of_answer = Estimate::of(answer.blocks.iter().map(Block::size).sum());
        let of_both = self.state.model.raw_estimate + of_answer;
        self.memory.anchor =
            Some(Anchor { model: self.link().model, reported: usage.total(), estimated: of_both });
        self.memory.last_answer_at = Some(self.now);
        self.publish_answer(&answer);
        // What was paused was part of the request, and is not among its messages.
        let estimated = if was_paused { None } else { self.learn(&usage) };
        self.state.model.answer = Some(answer);
        let attempts = self.state.model.turn_attempts;
        self.record_step(StepDetail::Model {
            attempts,
            outcome: "ok".into(),
            estimated,
            anchor: (REBUILDS <= self.facts.revision).then(|| of_both.to_record()),
        });
        // A call starts when its intent is recorded, and with it what lies before.
        self.next(Step::ToolDispatch);
    }

    /// The name of an answer that is recorded as this entry. Lines that bear one name are read as pieces
    /// of one answer, so it must be no other answer's: some servers name all answers alike, or none.
    fn api_id(&self, named: &str, id: &EntryId) -> String {
        let is_own = !named.is_empty() && !self.history.has_answer(named);
        if is_own || self.facts.revision < NAMES_ANSWERS { named.into() } else { id.to_string() }
    }

    fn publish_answer(&mut self, answer: &ModelAnswer) {
        let id = self.journal.next_id(self.now);
        self.state.model.answer_entry = Some(id.clone());
        let asked = self.link().model;
        let fields = AnswerFields {
            model: answer.model.clone(),
            asked: (!model_name::is_same(&asked, &answer.model)).then_some(asked),
            stop_reason: answer.stop_reason.as_wire().into(),
            usage: answer.usage,
        };
        let api_id = self.api_id(&answer.message_id, &id);
        let mut message = Message::answer(id, &api_id, answer.blocks.clone());
        message.model = fields.signed_by().cloned();
        let message = self.journal.answer(self.now, message, fields);
        let (text, attempt) = (message.text().into(), self.state.model.attempt);
        self.history.push(message);
        self.publish(Event::MessageCompleted { attempt, text, usage: answer.usage });
    }
}

/// Returns the blocks as a JSON list.
pub(super) fn wire_of(blocks: &[Block]) -> String {
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
