//! What an evaluation reads of the transcript of a session.

use std::sync::Arc;

use serde::Serialize;

use super::{StageTotals, place_of};
use crate::{
    catalogue::{Catalogue, ModelFacts},
    message::{Message, MessageKind},
    run::{
        conversation::TurnMemory,
        derived_settings::DerivedSettings,
        facts::{
            APPENDS, ASKS_CACHE, CLEARS_OLD, CLEARS_UNCAPPED, COUNTS_CLEARED, KEEPS_FRAMES,
            SHAPES_CONVERSATION, SessionFacts,
        },
    },
    step1_settings_resolution::{LayerText, Resolved, merge_with},
    step4_context_shapers::{ShaperSetup, Sharing, Stage, shaper5_auto_compact::OPENING},
    time::Timestamp,
    tokens::{Counting, Estimate, Tokens},
    transcript::{
        entry::{ConversationLine, Record, RecordKind, StepDetail, Stored},
        read::{Entry, read_line},
        replay::StoredTexts,
    },
};

/// A message, and when it was recorded.
#[derive(Clone, Debug)]
pub(super) struct TimedMessage {
    pub(super) at: Timestamp,
    pub(super) message: Arc<Message>,
    /// Of an answer: tokens of output, as the provider reported them.
    pub(super) output: u64,
}

/// The messages of a recorded session, and what the shapers went by.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(super) messages: Vec<TimedMessage>,
    /// Summaries that the session made, in order.
    pub(super) summaries: Vec<String>,
    /// What goes with every request in addition to the conversation: system prompt, tools, instructions.
    pub(super) fixed: Tokens,
    pub(super) setup: ShaperSetup,
    pub(super) model: Option<Arc<ModelFacts>>,
    /// Milliseconds for which the provider keeps what it was sent; `None` if it keeps nothing.
    pub(super) keeps_ms: Option<u64>,
    /// Whether the stages ask what the cache holds.
    pub(super) asks_cache: bool,
    logged: LoggedTotals,
}

/// What the lines of a session say that its stages did when it ran. A walk counts anew; this is what was counted then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoggedTotals {
    /// Requests for answers, each time the stages were through.
    pub requests: u64,
    /// Tokens of all requests if no stage had ever changed anything, by estimate.
    pub conversation: Tokens,
    /// Tokens of all requests, as recorded after the stages.
    pub sent: Tokens,
    /// By stage, in their order; the last one is the cut of what does not fit the window.
    pub stages: [StageTotals; 6],
}

impl LoggedTotals {
    /// Returns the tokens that all stages logged as saved, each counted in every later request.
    pub fn saved(&self) -> Tokens {
        Tokens(self.stages.iter().map(|it| it.saved.0).sum())
    }

    /// Returns by how many tokens the requests on record are smaller than the logged savings explain; negative where
    /// more was logged than is missing.
    pub fn gap(&self) -> i128 {
        let measured = i128::from(self.conversation.0) - i128::from(self.sent.0);
        measured - i128::from(self.saved().0)
    }

    /// Adds what the lines of another session say.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        self.conversation = self.conversation + other.conversation;
        self.sent = self.sent + other.sent;
        for (own, other) in self.stages.iter_mut().zip(&other.stages) {
            own.add(other);
        }
        self
    }

    /// Takes in that a stage changed something, which later requests are smaller for.
    fn fired(&mut self, stage: Stage, saved: Tokens) {
        let of_stage = &mut self.stages[place_of(stage)];
        of_stage.fired += 1;
        of_stage.saved_once = of_stage.saved_once + saved;
    }

    /// Takes in a request of this size, which would have had that one.
    fn request(&mut self, sent: Tokens, conversation: Tokens) {
        self.requests += 1;
        self.sent = self.sent + sent;
        self.conversation = self.conversation + conversation;
        for of_stage in &mut self.stages {
            of_stage.saved = of_stage.saved + of_stage.saved_once;
        }
    }
}

/// Why a transcript cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRecording {
    /// It holds no run of a session with its facts and settings.
    #[error("it holds no run with its settings")]
    NoRun,
    /// The model was never asked.
    #[error("no model answered in it")]
    NoAnswer,
}

#[derive(Default)]
struct RecordingReader {
    messages: Vec<TimedMessage>,
    summaries: Vec<String>,
    facts: Option<SessionFacts>,
    layers: Option<Vec<LayerText>>,
    models: Option<Catalogue>,
    fixed: Option<Tokens>,
    /// Of all messages so far.
    estimate: Estimate,
    logged: LoggedTotals,
}

impl Recording {
    /// Returns what the session itself logged.
    pub fn logged(&self) -> &LoggedTotals {
        &self.logged
    }

    /// Reads a transcript; lines that cannot be read are passed over. `stored` has the texts that lie
    /// next to it. The settings are those of the first turn, as the gates of the shapers are.
    ///
    /// # Errors
    ///
    /// [`NoRecording`].
    pub fn read(bytes: &[u8], stored: StoredTexts<'_>) -> Result<Self, NoRecording> {
        let mut reader = RecordingReader::default();
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter_map(|it| std::str::from_utf8(it).ok()) {
            match read_line(line).map(|it| it.entry) {
                Ok(Entry::Conversation { line, sidechain: false, .. }) => reader.add_message(&line),
                Ok(Entry::Harness(records)) => {
                    records.iter().for_each(|it| reader.note(it, stored));
                }
                _ => {}
            }
        }
        reader.end()
    }
}

impl RecordingReader {
    fn add_message(&mut self, line: &ConversationLine) {
        match line.message.kind {
            MessageKind::CompactSummary => {
                let text = line.message.text();
                self.summaries.push(text.strip_prefix(OPENING).unwrap_or(&text).to_owned());
            }
            MessageKind::Mark => {}
            _ if line.boundary.is_some() => {}
            _ => {
                self.estimate = self.estimate + line.message.estimate();
                self.messages.push(TimedMessage {
                    at: line.at,
                    message: Arc::clone(&line.message),
                    output: line.answer.as_ref().map_or(0, |it| it.usage.output_tokens),
                });
            }
        }
    }

    fn note(&mut self, record: &Record, stored: StoredTexts<'_>) {
        let json = |text: &Stored| match text {
            Stored::Text(text) => Some(text.to_string()),
            Stored::At(digest) | Stored::Again(digest) => stored(*digest),
        };
        match &record.what {
            RecordKind::RunStart { setup, .. } if self.facts.is_none() => {
                self.facts = json(setup).and_then(|it| serde_json::from_str(&it).ok());
            }
            RecordKind::TurnStep {
                detail: StepDetail::Settings { layers, models, .. }, ..
            } => {
                if self.layers.is_none() {
                    self.layers = json(layers).and_then(|it| serde_json::from_str(&it).ok());
                }
                let models = models.as_ref().filter(|_| self.models.is_none()).and_then(json);
                self.models = models
                    .and_then(|it| serde_json::from_str(&it).ok())
                    .or_else(|| self.models.take());
            }
            RecordKind::TurnStep { detail: StepDetail::Context { tokens, .. }, .. } => {
                let said = self.tokens();
                self.fixed.get_or_insert_with(|| tokens.saturating_sub(said));
            }
            RecordKind::TurnStep { detail: StepDetail::Shaping { tokens, .. }, .. } => {
                let conversation = self.fixed.unwrap_or_default() + self.tokens();
                self.logged.request(*tokens, conversation);
            }
            RecordKind::Shaper { stage, fired: true, tokens_before, tokens_after, .. } => {
                let mut all = Stage::ALL.into_iter().chain([Stage::OverflowReduction]);
                if let Some(stage) = all.find(|it| it.name() == stage) {
                    self.logged.fired(stage, tokens_before.saturating_sub(*tokens_after));
                }
            }
            _ => {}
        }
    }

    /// All messages so far.
    fn tokens(&self) -> Tokens {
        self.facts.as_ref().map_or(Counting::Chars, counting).tokens(self.estimate)
    }

    fn end(self) -> Result<Recording, NoRecording> {
        let (Some(facts), Some(layers)) = (self.facts, self.layers) else {
            return Err(NoRecording::NoRun);
        };
        if !self.messages.iter().any(|it| it.message.kind == MessageKind::Answer) {
            return Err(NoRecording::NoAnswer);
        }
        let models = Arc::new(self.models.unwrap_or_default());
        let resolved = merge_with(&layers, &models);
        let model = models.find(&resolved.settings.model).cloned();
        let fixed = self.fixed.unwrap_or_default();
        let share = if SHAPES_CONVERSATION <= facts.revision { fixed } else { Tokens(0) };
        Ok(Recording {
            messages: self.messages,
            summaries: self.summaries,
            fixed,
            setup: ShaperSetup { fixed: share, ..setup(&resolved, &facts) },
            model,
            keeps_ms: keeps_ms(&resolved, &facts),
            asks_cache: ASKS_CACHE <= facts.revision,
            logged: self.logged,
        })
    }
}

/// The rule of the session, without what it learned of its models.
fn counting(facts: &SessionFacts) -> Counting {
    TurnMemory::default().counting(facts.revision, "")
}

/// How long the first provider keeps what it was sent.
fn keeps_ms(resolved: &Resolved, facts: &SessionFacts) -> Option<u64> {
    let caching = resolved.settings.prompt_caching_of(facts.agent.is_some());
    caching.keeps_ms(facts.providers.first().map(|it| it.format).unwrap_or_default())
}

/// What the stages go by, but for what changes from request to request.
fn setup(resolved: &Resolved, facts: &SessionFacts) -> ShaperSetup {
    let derived = DerivedSettings::new(resolved, facts);
    let settings = &resolved.settings;
    let output = u64::from(settings.max_output_tokens).min(settings.context_window / 2);
    ShaperSetup {
        settings: Arc::new(settings.shapers.clone()),
        context_budget: Tokens(settings.context_window.saturating_sub(output)),
        trigger_override: None,
        fixed: Tokens(0),
        spent_micro_usd: 0,
        reference_prefix: derived.results_directory,
        idle_ms: 0,
        cold: None,
        exempt_tools: derived.exempt_tools,
        own_caps: derived.own_caps,
        sharing: Sharing::Turn,
        grades: APPENDS <= facts.revision,
        clears: CLEARS_OLD <= facts.revision,
        keeps_frames: KEEPS_FRAMES <= facts.revision,
        counts_cleared: COUNTS_CLEARED <= facts.revision,
        clears_uncapped: CLEARS_UNCAPPED <= facts.revision,
        summary_pause: 0,
        pauses_where_it_fits: true,
        asked: None,
        counting: counting(facts),
    }
}
