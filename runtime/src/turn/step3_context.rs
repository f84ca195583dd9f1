//! Step 3 of a turn: the nine sources become the messages that the model is shown.

use std::sync::Arc;

use super::{Awaits, Effect, Turn};
use crate::{
    event::Event,
    message::SharedMessages,
    run::facts::{OFFERS_ANEW, REBUILDS},
    step3_context_assembly::{
        PromptFacts, SourceTexts, Sources, SystemPromptParts, assemble_grown,
    },
    step4_context_shapers::ShapedContext,
    tokens::{Estimate, Tokens},
    transcript::entry::{Repeated, StepDetail, Stored},
};

impl Turn {
    pub(super) fn assemble_context(&mut self) {
        if let Some(sources) = &self.memory.sources {
            let joined = self.state.tools_joined;
            if joined || self.state.settings_changed && OFFERS_ANEW <= self.facts.revision {
                let tools = self.offered_tools();
                if joined || !sources.offers(&tools) {
                    self.memory.sources = Some(Arc::new(sources.offering(tools)));
                    // What is sent in front of every message is encoded anew.
                    self.memory.heads.clear();
                    self.memory.run_heads.clear();
                }
            }
            if !self.appends() {
                return self.assemble();
            }
            self.awaits = Some(Awaits::Sources);
            self.onward = Some(self.look_at_sources(Vec::new(), false));
        } else {
            self.awaits = Some(Awaits::Sources);
            self.onward = Some(Effect::ReadSources);
        }
    }

    pub(super) fn sources_read(&mut self, texts: SourceTexts) {
        if self.memory.sources.is_some() || !self.was_awaited(Awaits::Sources) {
            return;
        }
        let text = serde_json::to_string(&texts).unwrap_or_default();
        self.state.texts = Some(self.journal.stored(&text));
        let id = self.stream.entry_id(self.now, "context", 0);
        let tools = self.offered_tools();
        let (settings, day) = (self.settings(), self.now.day());
        let facts = settings.models.find(&settings.model);
        let parts = SystemPromptParts {
            adaptation: facts.map_or("", |it| &it.style),
            directory: &self.facts.workspace,
            additional_directories: &settings.permissions.additional_directories,
            memory: self.facts.memory.as_deref().filter(|_| settings.instructions.has_memory),
            now: self.appends().then_some(PromptFacts {
                day: &day,
                model: &settings.model,
                knowledge: facts.map_or("", |it| &it.knowledge),
            }),
            window: self.shapes_conversation().then_some(settings.context_window),
        };
        let has_memory = settings.instructions.has_memory || !self.appends();
        let shown = SourceTexts {
            instructions: self.with_managed(&texts.instructions),
            auto_memory: texts.auto_memory.clone().filter(|_| has_memory),
            ..texts.clone()
        };
        let mut sources =
            Sources::shared(self.memory.kept_sources.as_deref(), &shown, &parts, tools, id);
        if let Some(isolation) = self.facts.isolation() {
            sources = sources.in_worktree(isolation);
        }
        self.memory.sources = Some(Arc::new(sources));
        self.note_loaded(&shown.instructions);
        self.begin_parts(&texts);
        if REBUILDS <= self.facts.revision && !self.memory.touched.is_empty() {
            // An earlier process has read files: what there is for these is looked for as in any later turn.
            self.awaits = Some(Awaits::Sources);
            let look = self.look_at_sources(Vec::new(), false);
            return self.effects.push(look);
        }
        self.append_due();
        self.assemble();
    }

    pub(super) fn assemble(&mut self) {
        let (view, appends) = (self.view_so_far(), self.appends());
        let Some(sources) = &mut self.memory.sources else { return };
        if !appends {
            let id = || self.stream.entry_id(self.now, "path_rules", self.number.into());
            sources.files_read(&self.memory.tools, id);
        }
        let mut assembled = assemble_grown(sources, &view, &mut self.memory.counted);
        assembled.count_appended(self.memory.shown.sizes());
        if let Some(text) = &self.system {
            assembled.append_system(text);
        }
        // System prompt and tools; the rest of the sizes is in the messages.
        let fixed = assembled.sizes[0] + assembled.sizes[5];
        let fixed = Estimate::of(assembled.fixed).with_chars(Tokens::from_chars(fixed));
        self.state.model.fixed_estimate = fixed;
        let (estimate, counting) = (fixed + assembled.estimate, self.counting());
        let anchor = self.memory.anchor.as_ref();
        let whole = || counting.tokens(estimate);
        let tokens = anchor.map_or_else(whole, |it| it.corrected(estimate, counting));
        let (texts, is_known) = match (self.state.texts.take(), self.memory.texts.take()) {
            (None, Some(kept)) => (kept, self.number != 1),
            (read, _) => {
                let read = read.unwrap_or_else(|| Stored::Text("".into()));
                (Repeated::new(read), false)
            }
        };
        let to_record = texts.to_record(is_known);
        self.memory.texts = Some(texts);
        self.record_step(StepDetail::Context { texts: to_record, sizes: assembled.sizes, tokens });
        // For display, where the kinds of the characters are not known any more.
        let sources = assembled.sizes.map(Tokens::from_chars);
        self.publish(Event::ContextAssembled { tokens, sources });
        // The cache is as cold as it was when the context was put together, so that the record of
        // this step records when that was.
        let answered_at = self.memory.last_answer_at;
        self.state.idle_ms = answered_at.map_or(0, |it| self.now.millis_since(it));
        // What is not part of the conversation is asked for again; the rest is what is shaped.
        let messages = if self.shapes_conversation() {
            assembled.conversation.clone()
        } else {
            assembled.context.iter().chain(assembled.conversation.walk()).cloned().collect()
        };
        self.state.shaped = Some(ShapedContext { messages, tokens });
        self.state.assembled = Some(assembled);
        self.fire_loaded();
    }

    /// What earlier turns left of the history, and the messages since.
    pub(super) fn view_so_far(&mut self) -> SharedMessages {
        match &mut self.memory.view {
            Some(view) if view.covered <= self.history.len() => view.grown(&self.history),
            _ => self.history.to_shared(),
        }
    }
}
