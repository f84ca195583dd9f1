//! What a session knows between turns.
//!
//! The session's actor owns one of these, and so does a replay: both feed turns from it and take
//! in what the turns did, in the same way.

mod resumed;
mod shaped_view;

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::Arc,
};

use crate::{
    approval::PermissionOverrides,
    block::Block,
    catalogue::{Catalogue, Money},
    digest::Digest,
    entropy::EntropyStream,
    ids::{EntryId, ToolName},
    message::{Message, MessageKind},
    recovery::path1_output_escalation::REDUCTION_FLOOR,
    run::{
        InvalidRequest,
        derived_settings::DerivedSettings,
        facts::{ESTIMATES_BY_CLASS, REMEMBERS_FRUITLESS, SessionFacts},
        history::{History, HistoryUpdate},
        no_progress::{DenialWatch, NoProgressWatch},
    },
    step1_settings_resolution::{LayerText, Merged, Resolved, ShaperSettings},
    step3_context_assembly::{
        CountedMessages, KeepSources, SourceMarks, Sources, SourcesSeen, appended::ShownParts,
        loaded_skills::LoadedSkills,
    },
    step4_context_shapers::{cap_watch::CapWatch, fruitless::CompactionWatch},
    step5_model_call::{
        adaptation::Change,
        cache_watch::CacheWatch,
        model_name::is_same,
        request::{EncodedHead, PrefixChain},
        view::CarriedView,
        wire_format::WireFormat,
    },
    step9_stop_check::RunBudget,
    time::Timestamp,
    tokens::{Anchor, Counting, Estimate, Learned, Usage},
    tool::{ToolMemory, ToolSpec},
    transcript::{
        entry::{Repeated, Stored},
        load::RecordedState,
    },
};

pub use shaped_view::ShapedView;

/// Tokens of output that a request leaves room for at least; no ceiling is lowered further (MDL-9).
const SHORTEST_ANSWER: u64 = REDUCTION_FLOOR as u64;

/// Files that were changed and that are shown again after a compaction.
pub(crate) const MAX_EDITED: usize = 5;

/// A conversation and what goes with it from turn to turn.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// Fixed when the session was opened, but for tools that have joined since.
    pub facts: Arc<SessionFacts>,
    /// The key of all draws of the session.
    pub stream: EntropyStream,
    /// The messages since the last compaction, oldest first.
    pub history: History,
    /// The last conversation line.
    pub last_entry: Option<EntryId>,
    /// What the last turn handed on.
    pub memory: TurnMemory,
    /// What the lines say that the memory holds.
    pub(crate) state: RecordedState,
    /// Whether lines were taken in since the memory was handed on.
    is_ahead: bool,
    /// Whether a run was recorded, and with it the facts.
    pub has_begun: bool,
    /// The facts, where they lie next to the transcript.
    pub setup: Option<Digest>,
}

/// What one turn hands on to the next.
#[derive(Clone, Debug, Default)]
pub struct TurnMemory {
    /// What is known about models.
    pub catalogue: Arc<Catalogue>,
    /// Whether a server has named limits that are not recorded yet as a part of the catalogue.
    pub has_learned: bool,
    /// What was recorded of it last.
    pub models: Option<Stored>,
    /// The settings that held.
    pub resolved: Option<Arc<Resolved>>,
    /// The shapers' gates as they were when the session began; no later change moves them.
    pub shapers: Option<Arc<ShaperSettings>>,
    /// The nine sources' part that is fixed for the session.
    pub sources: Option<Arc<Sources>>,
    /// Sources that other sessions have made; none are shared without it.
    pub kept_sources: Option<Arc<dyn KeepSources>>,
    /// What the sources held when they were looked at last.
    pub seen: Option<Arc<SourcesSeen>>,
    /// The state of the files at that look.
    pub marks: Option<SourceMarks>,
    /// What of the sources the model has been shown.
    pub shown: ShownParts,
    /// Files that were read or written since the last compaction, by absolute path.
    pub touched: Arc<BTreeSet<String>>,
    /// Files that were changed, the latest last; `MAX_EDITED` at most.
    pub edited: Vec<String>,
    /// Skills that the model has loaded.
    pub skills: Arc<LoadedSkills>,
    /// What the tools know.
    pub tools: Arc<ToolMemory>,
    /// What was changed of permissions since the session was opened.
    pub overrides: PermissionOverrides,
    /// What follows from the settings that held.
    pub derived_settings: Option<Arc<DerivedSettings>>,
    /// Tools that have joined since the last turn; the next one records them.
    pub joined: Vec<Arc<ToolSpec>>,
    /// What the shapers left of the history.
    pub view: Option<ShapedView>,
    /// The last reported size of a request.
    pub anchor: Option<Anchor>,
    /// How far off estimates are for the models that were asked.
    pub(crate) learned: Learned,
    /// Money spent since the last compaction.
    pub spent: Money,
    /// When the model last answered.
    pub last_answer_at: Option<Timestamp>,
    /// The watch for repetition; of the run.
    pub progress: NoProgressWatch,
    /// The watch for denials; of the run.
    pub denials: DenialWatch,
    /// The watch for compactions that do not help; of the run, but for how long the next one waits.
    pub compactions: CompactionWatch,
    /// Whether a run began since the session was opened.
    pub has_run: bool,
    /// The settings by which the first one began, should its turn leave none.
    pub begun_by: Option<Arc<DerivedSettings>>,
    /// What a hook has called the session last.
    pub title: Option<Arc<str>>,
    /// Whether hooks wait for changes of files.
    pub watches: bool,
    /// Stop hooks that held the run open, in a row.
    pub stop_blocks: u32,
    /// Model calls that failed, in the whole session (MDL-6).
    pub retries: u32,
    /// The settings layers as they were read, merged; a sub-agent has its parent's layers. The one
    /// that opens a session may put in what equal layers gave before.
    pub merged: Option<Arc<Merged>>,
    /// Changes of settings files that hooks refused: the file, and what it holds, if it is there.
    pub refused: Vec<(LayerText, Option<Digest>)>,
    /// The settings layers, as the transcript holds them.
    pub layers: Option<Repeated>,
    /// The source texts, as the transcript holds them.
    pub texts: Option<Repeated>,
    /// System prompt and tools, encoded for each wire format that was spoken.
    pub heads: BTreeMap<WireFormat, Arc<EncodedHead>>,
    /// The same for a run that has a system prompt of its own.
    pub run_heads: BTreeMap<WireFormat, Arc<EncodedHead>>,
    /// Messages whose pictures and documents a provider refused: texts are sent in their place.
    pub refused_media: BTreeSet<EntryId>,
    /// Digests of the repairs of the view that an alert named.
    pub reported_repairs: BTreeSet<Digest>,
    /// What was changed for which model, as far as an alert named it.
    pub reported_changes: BTreeSet<(Arc<str>, Change)>,
    /// Digests of the messages that were sent before, for each model that was asked. Boxed, because a
    /// map sets aside room for eleven entries.
    pub prefixes: BTreeMap<(usize, Arc<str>), Box<PrefixChain>>,
    /// The sizes of the conversation's messages.
    pub counted: CountedMessages,
    /// Results that were found within their caps.
    pub caps: CapWatch,
    /// What of the last view the next one goes on from.
    pub carried: CarriedView,
    /// The watch for cached tokens that are lost.
    pub cache: CacheWatch,
}

impl TurnMemory {
    /// Returns how tokens are estimated for this model.
    pub(crate) fn counting(&self, revision: u32, model: &str) -> Counting {
        match revision {
            ..ESTIMATES_BY_CLASS => Counting::Chars,
            _ => Counting::Classes(self.learned.factor(|it| is_same(model, it))),
        }
    }

    /// Notes that a file was read, or changed.
    pub(crate) fn touch(&mut self, path: &str, is_changed: bool) {
        if !self.touched.contains(path) {
            Arc::make_mut(&mut self.touched).insert(path.to_owned());
        }
        if is_changed {
            self.edited.retain(|it| it != path);
            self.edited.push(path.to_owned());
            let n_more = self.edited.len().saturating_sub(MAX_EDITED);
            self.edited.drain(..n_more);
        }
    }
}

impl Conversation {
    /// Makes a conversation without messages.
    pub fn new(facts: Arc<SessionFacts>, stream: EntropyStream) -> Self {
        Self {
            facts,
            stream,
            history: History::default(),
            last_entry: None,
            memory: TurnMemory::default(),
            state: RecordedState::default(),
            is_ahead: false,
            has_begun: false,
            setup: None,
        }
    }

    /// Sets what is known about models.
    #[must_use]
    pub fn with_catalogue(mut self, catalogue: Arc<Catalogue>) -> Self {
        self.memory.catalogue = catalogue;
        self
    }

    /// Sets settings that were merged before; they are used if their layers are equal to those of the conversation.
    #[must_use]
    pub fn with_merged(mut self, merged: Arc<Merged>) -> Self {
        self.memory.merged = Some(merged);
        self
    }

    /// Shares sources that others have made, which it uses where they are equal to its own.
    #[must_use]
    pub fn sharing(mut self, kept_sources: Option<Arc<dyn KeepSources>>) -> Self {
        self.memory.kept_sources = kept_sources;
        self
    }

    /// Makes the prompt of a new run, to be recorded before its first turn.
    pub fn prompt(&self, at: Timestamp, run: &str, content: Vec<Block>) -> Message {
        let id = self.stream.entry_id(at, "prompt", Digest::of(run.as_bytes()).low());
        Message::user(id, MessageKind::Prompt, content)
    }

    /// Adds tools of servers that have answered since the session was opened; between turns. One
    /// whose name is taken is left out.
    pub(crate) fn join_tools(&mut self, tools: Vec<Arc<ToolSpec>>) {
        if tools.is_empty() {
            return;
        }
        let mut taken: BTreeSet<ToolName> =
            self.facts.tools.iter().map(|it| it.name.clone()).collect();
        let joined: Vec<_> = tools.into_iter().filter(|it| taken.insert(it.name.clone())).collect();
        if joined.is_empty() {
            return;
        }
        Arc::make_mut(&mut self.facts).tools.extend(joined.iter().cloned());
        // What the next run starts from is not what the one before it did.
        self.setup = None;
        self.memory.joined.extend(joined);
    }

    /// Refuses a prompt that alone is more than the window holds, as far as settings are known: those
    /// of the last turn, else those that layers were merged to before.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::PromptTooLong`] with the estimate and the limit.
    pub(crate) fn check_prompt(&self, content: &[Block]) -> Result<(), InvalidRequest> {
        let merged = || self.memory.merged.as_ref().map(|it| &it.resolved);
        let Some(resolved) = self.memory.resolved.as_ref().or_else(merged) else { return Ok(()) };
        let window = resolved.settings.context_window;
        let limit = window.saturating_sub(SHORTEST_ANSWER.min(window / 4));
        let estimate = content.iter().map(|it| Estimate::of(it.size())).sum();
        let counting = self.memory.counting(self.facts.revision, &resolved.settings.model);
        let tokens = counting.tokens(estimate).0;
        if tokens <= limit { Ok(()) } else { Err(InvalidRequest::PromptTooLong { tokens, limit }) }
    }

    /// Adds the prompt of a new run. What is counted per run is counted anew.
    pub fn begin_run(&mut self, prompt: Arc<Message>) {
        self.memory.progress = NoProgressWatch::default();
        self.memory.denials = DenialWatch::default();
        self.memory.compactions = match self.facts.revision {
            ..REMEMBERS_FRUITLESS => CompactionWatch::default(),
            _ => self.memory.compactions.for_next_run(),
        };
        self.memory.stop_blocks = 0;
        self.memory.run_heads.clear();
        self.apply(HistoryUpdate::Message(prompt));
    }

    /// Applies an update to the history.
    pub fn apply(&mut self, update: HistoryUpdate) {
        match update {
            HistoryUpdate::Message(message) => {
                self.last_entry = Some(message.id.clone());
                self.history.push(message);
            }
            HistoryUpdate::Compacted { summary, preserved } => {
                self.last_entry = Some(summary.id.clone());
                self.history = iter::once(summary).chain(preserved).collect();
                let there: BTreeSet<&EntryId> = self.history.iter().map(|it| &it.id).collect();
                self.memory.shown.keep(|it| there.contains(it));
                self.memory.touched = Arc::default();
                // Both are about messages that are gone now.
                self.memory.view = None;
                self.memory.anchor = None;
            }
            HistoryUpdate::ContextShown(part) => self.memory.shown.show(part),
            HistoryUpdate::RunBegun(settings) => {
                self.memory.has_run = true;
                self.memory.begun_by = Some(settings);
            }
            HistoryUpdate::Withdrawn(prompt) => {
                let without = self.history.iter().filter(|it| it.id != prompt).cloned();
                self.history = without.collect();
                self.last_entry = self.history.last().map(|it| it.id.clone());
            }
        }
    }

    /// Returns what the run may still use.
    pub(crate) fn budget(&self, used: Usage) -> RunBudget {
        let settings = self.memory.resolved.as_ref();
        RunBudget {
            used: used.total().0,
            max: settings.and_then(|it| it.settings.run_token_budget),
        }
    }
}
