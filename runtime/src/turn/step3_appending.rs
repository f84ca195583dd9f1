//! What becomes due while a session lives: it is looked for in step 3 and appended to the conversation.
//!
//! After a compaction the same is done before the model is asked, since what was appended before is gone,
//! and the work under way is shown again from what is known of it, not from the summary.

use std::{collections::BTreeSet, sync::Arc};

use super::{Awaits, Effect, Turn};
use crate::{
    block::Block,
    ids::EntryId,
    message::{Message, MessageKind},
    permission::{PermissionMode, Scope},
    run::facts::{APPENDS, SHOWS_SKILLS, SHOWS_TASKS},
    step3_context_assembly::{
        InstructionFile, SourceTexts, SourcesLook, SourcesOrder, SourcesSeen,
        appended::{self, DuePart},
        loaded_skills,
        look::nested_directories,
        plan_mode,
        restored::restored,
    },
    tool::ToolCall,
    transcript::entry::{RecordKind, ShownPart},
};

/// The tool that asks for approval of a plan.
const EXIT_PLAN_MODE: &str = "ExitPlanMode";

/// What part of the context budget the work under way may take after a compaction: an eighth.
const RESTORED_SHARE: u64 = 8;

impl Turn {
    /// Returns whether what becomes due is appended.
    pub(super) fn appends(&self) -> bool {
        APPENDS <= self.facts.revision
    }

    /// Asks for a look at the sources. `files` are those whose content is wanted.
    pub(super) fn look_at_sources(&self, files: Vec<String>, restores: bool) -> Effect {
        let real = self.facts.real.get(&*self.facts.workspace);
        let workspace: Vec<&str> = [Some(&*self.facts.workspace), real.map(String::as_str)]
            .into_iter()
            .flatten()
            .collect();
        Effect::LookAtSources(Box::new(SourcesOrder {
            directories: nested_directories(&workspace, &*self.memory.touched),
            marks: self.memory.marks.clone().filter(|_| !restores),
            files,
            restores,
            excludes: self.excludes(),
        }))
    }

    pub(super) fn sources_seen(&mut self, look: SourcesLook) {
        let is_restoration = self.awaits == Some(Awaits::Restoration);
        let awaited = if is_restoration { Awaits::Restoration } else { Awaits::Sources };
        // The first reading of a session is answered by its texts.
        if self.memory.sources.is_none() || !self.was_awaited(awaited) {
            return;
        }
        let mut work = SourcesSeen::default();
        if let SourcesLook::Found(seen, marks) = look {
            // A look for the contents of files has looked at more than the next one will.
            self.memory.marks = Some(marks).filter(|_| !is_restoration);
            work = self.take_seen(*seen);
        }
        if is_restoration {
            return self.restore(&work);
        }
        self.append_due();
        self.assemble();
    }

    /// Takes in what a look found; gives what of it is about the work under way, which is not kept.
    fn take_seen(&mut self, mut seen: SourcesSeen) -> SourcesSeen {
        let text = serde_json::to_string(&seen).unwrap_or_default();
        let work = SourcesSeen {
            contents: std::mem::take(&mut seen.contents),
            background: std::mem::take(&mut seen.background),
            ..SourcesSeen::default()
        };
        if self.memory.seen.as_deref() == Some(&seen) && work == SourcesSeen::default() {
            return work;
        }
        let record = RecordKind::SourcesSeen { seen: self.journal.stored(&text) };
        self.journal.record(self.now, record);
        let has_new_rules =
            self.memory.seen.as_ref().is_none_or(|it| it.path_rules != seen.path_rules);
        if let Some(sources) = self.memory.sources.as_ref().filter(|_| has_new_rules) {
            self.memory.sources = Some(Arc::new(sources.with_rules(&seen.path_rules)));
        }
        self.memory.seen = Some(Arc::new(seen));
        work
    }

    /// Notes what the first reading shows in front of the conversation.
    pub(super) fn begin_parts(&mut self, texts: &SourceTexts) {
        if !self.appends() {
            return;
        }
        self.memory.seen = Some(Arc::new(SourcesSeen {
            instructions: texts.instructions.clone(),
            path_rules: texts.path_rules.clone(),
            ..SourcesSeen::default()
        }));
        let (day, model) = (self.now.day(), &self.settings().model);
        let mut parts = vec![appended::date(&day), appended::model(model, &self.knowledge(), &day)];
        // Rules for certain files never precede the conversation.
        parts.extend(self.file_parts(&BTreeSet::new(), &day));
        self.memory.shown.begin(&parts);
    }

    /// What the model does not know as it is now.
    fn due(&self) -> Vec<DuePart> {
        let (day, shown) = (self.now.day(), &self.memory.shown);
        // In front of the conversation there is no list of tasks.
        let mut parts: Vec<DuePart> = self.tasks(&day).into_iter().collect();
        parts.extend(shown.due_facts(&self.settings().model, || self.knowledge(), &day));
        parts.extend(self.file_parts(&self.memory.touched, &day));
        parts.extend(self.skills(&day));
        parts.extend(self.plan_mode(&day));
        shown.due(parts, &day)
    }

    /// The month that the knowledge of the model reaches to; empty when not known.
    fn knowledge(&self) -> String {
        let settings = self.settings();
        settings.models.find(&settings.model).map(|it| it.knowledge.clone()).unwrap_or_default()
    }

    /// The files whose first state precedes the conversation, as they are now, and the rules for these files.
    fn file_parts(&self, touched: &BTreeSet<String>, day: &str) -> Vec<DuePart> {
        let Some((seen, sources)) = self.memory.seen.as_ref().zip(self.memory.sources.as_ref())
        else {
            return Vec::new();
        };
        let rules = sources.rules_for(touched.iter());
        let instructions = self.with_managed(&seen.instructions);
        if instructions.is_empty() && seen.nested.is_empty() && rules.is_empty() {
            return Vec::new();
        }
        let nested = seen.nested.clone();
        appended::files(
            &SourcesSeen { instructions, nested, ..SourcesSeen::default() },
            &rules,
            day,
        )
    }

    /// That the mode `plan` holds, where the session has a file for its plan, or that it is over.
    fn plan_mode(&self, day: &str) -> Option<DuePart> {
        if self.mode() != PermissionMode::Plan {
            return self.memory.shown.shows(plan_mode::NAME).then(|| plan_mode::end_notice(day));
        }
        let file = self.plan_file()?;
        let asks = self.offered_tools().iter().any(|it| it.name.as_str() == EXIT_PLAN_MODE);
        Some(plan_mode::begun(&file, asks, day))
    }

    /// The list of tasks, where it is shown again.
    fn tasks(&self, day: &str) -> Option<DuePart> {
        let shows = SHOWS_TASKS <= self.facts.revision;
        appended::tasks(&self.memory.tools.todos, day).filter(|_| shows)
    }

    /// The skills that the model has loaded, where they are shown again.
    fn skills(&self, day: &str) -> Vec<DuePart> {
        if SHOWS_SKILLS <= self.facts.revision {
            self.memory.skills.parts(self.settings().context_window, day)
        } else {
            Vec::new()
        }
    }

    /// Notes that a call has loaded a skill, which the model knows as long as it sees the call's result, this message.
    pub(super) fn loaded_skill(&mut self, call: &ToolCall, text: &str, result: &EntryId) {
        let shows =
            SHOWS_SKILLS <= self.facts.revision && call.name.as_str() == loaded_skills::TOOL;
        let Some(skill) = shows.then(|| loaded_skills::named_in(&call.input)).flatten() else {
            return;
        };
        Arc::make_mut(&mut self.memory.skills).note(&skill, text);
        // It is the one that was loaded last.
        if let Some(part) = self.skills(&self.now.day()).pop() {
            self.shown_by(part, result);
        }
    }

    /// The model sees a part in a message that is not a part itself.
    fn shown_by(&mut self, part: DuePart, entry: &EntryId) {
        let DuePart { name, source, state, .. } = part;
        let part = ShownPart { entry: entry.clone(), part: name, source, state, chars: 0 };
        self.journal.record_shown(self.now, &part);
        self.memory.shown.show(part);
    }

    /// Notes that a call has replaced the list of tasks, which the model sees in its own call as long as it sees the
    /// call's result, this message.
    pub(super) fn wrote_tasks(&mut self, result: &EntryId) {
        if let Some(part) = self.tasks(&self.now.day()) {
            self.shown_by(part, result);
        }
    }

    /// Returns the instruction files, those that settings of the organisation hold before them.
    pub(super) fn with_managed(&self, files: &[InstructionFile]) -> Vec<InstructionFile> {
        let managed = self.settings().instructions.managed.clone().filter(|_| self.appends());
        let managed = managed.map(|text| InstructionFile {
            scope: Scope::Policy,
            path: "the settings of the organisation".into(),
            text: text.to_string(),
        });
        managed.into_iter().chain(files.iter().cloned()).collect()
    }

    /// Appends what the model does not know.
    pub(super) fn append_due(&mut self) {
        // Between calls and their results there is no place for anything.
        if !self.appends() || self.carried_answer().is_some() {
            return;
        }
        let due = self.due();
        if !due.is_empty() {
            self.append(due, None);
        }
    }

    fn append(&mut self, due: Vec<DuePart>, more: Option<String>) -> Arc<Message> {
        let entry = self.journal.next_id(self.now);
        let mut blocks = Vec::with_capacity(due.len() + 1);
        for DuePart { name, source, state, text } in due {
            self.note_part(&name, state);
            let chars = text.chars().count() as u64;
            let part = ShownPart { entry: entry.clone(), part: name, source, state, chars };
            self.journal.record_shown(self.now, &part);
            self.memory.shown.show(part);
            blocks.push(Block::text(&text));
        }
        blocks.extend(more.map(|it| Block::text(&it)));
        self.remember(Message::user(entry, MessageKind::Meta, blocks))
    }

    /// Forgets what the model was shown in messages that it does not see any more.
    pub(super) fn forget_unseen(&mut self) {
        let kept: BTreeSet<&EntryId> = match &self.memory.view {
            Some(view) => view.messages.walk().map(|it| &it.id).collect(),
            None => self.history.iter().map(|it| &it.id).collect(),
        };
        self.memory.shown.keep(|it| kept.contains(it));
    }

    /// Asks for what the model needs to continue after a compaction. Returns whether the chain of shapers waits for it.
    pub(super) fn begin_restoration(&mut self) -> bool {
        if !self.appends() {
            return false;
        }
        let there: BTreeSet<&EntryId> = self.history.iter().map(|it| &it.id).collect();
        self.memory.shown.keep(|it| there.contains(it));
        // What is nested or for certain files is due again when the model reads there again.
        self.memory.touched = Arc::default();
        let files = self.memory.edited.clone();
        let look = self.look_at_sources(files, true);
        self.awaits = Some(Awaits::Restoration);
        self.effects.push(look);
        true
    }

    fn restore(&mut self, work: &SourcesSeen) {
        let budget = self.state.shaper_setup.as_ref().map_or(0, |it| it.context_budget.0);
        let mut share = budget / RESTORED_SHARE;
        if self.shapes_conversation() {
            // What the compaction freed must not be taken up again.
            share = share.min(self.state.shaping.freed.0 / 2);
        }
        let max_chars = usize::try_from(share * crate::tokens::CHARS_PER_TOKEN);
        let todos = match self.facts.revision {
            ..SHOWS_TASKS => &*self.memory.tools.todos,
            _ => &[],
        };
        let (max_chars, day) = (max_chars.unwrap_or(usize::MAX), self.now.day());
        let mut more = restored(work, todos, &day, max_chars);
        let fitting = more.as_deref().and_then(|it| self.chars_within(it, share));
        if let Some(fewer) = fitting {
            more = restored(work, todos, &day, fewer);
        }
        let due = self.due();
        if !due.is_empty() || more.is_some() {
            let (message, counting) = (self.append(due, more), self.counting());
            if let Some(shaped) = &mut self.state.shaped {
                shaped.tokens = shaped.tokens + counting.tokens(message.estimate());
                shaped.messages.push(message);
            }
        }
        self.compaction_over();
    }
}
