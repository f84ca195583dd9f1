//! Step 1 of a turn: the settings that hold for it.

use std::sync::Arc;

use super::{Awaits, Effect, Turn};
use crate::{
    event::Event,
    json::MeasuredText,
    recovery::chain::chain,
    run::{
        derived_settings::{CompiledSettings, DeriveOrder, DerivedSettings},
        facts::KEEPS_MODELS,
    },
    saturating::Saturating as _,
    step::Step,
    step1_settings_resolution::{LayerText, MergeOrder, Merged, Resolved},
    transcript::entry::{Repeated, StepDetail, Stored},
    turn::input::SettingsRead,
};

impl Turn {
    pub(super) fn resolve_settings(&mut self) {
        self.awaits = Some(Awaits::Settings);
        if self.facts.reads_settings {
            self.onward = Some(Effect::ReadSettings);
        } else if self.memory.resolved.is_some() {
            self.settings_read(SettingsRead::Unchanged);
        } else {
            self.settings_read(SettingsRead::Layers(Vec::new()));
        }
    }

    pub(super) fn settings_read(&mut self, read: SettingsRead) {
        if !self.was_awaited(Awaits::Settings) {
            return;
        }
        let read = match (read, self.memory.resolved.take()) {
            (SettingsRead::Unchanged, Some(known)) => return self.settings_unchanged(known),
            (SettingsRead::Unchanged, None) => Vec::new(),
            (SettingsRead::Layers(read), Some(known)) => {
                self.memory.resolved = Some(known);
                return self.config_read(read);
            }
            (SettingsRead::Layers(read), None) => read,
        };
        self.take_read(read);
    }

    /// Takes the layers of files that are to hold.
    pub(super) fn take_read(&mut self, read: Vec<LayerText>) {
        self.memory.resolved = None;
        match self.merged(read) {
            Ok(merged) if !self.is_long_to_derive(&merged) => self.take_merged(merged, None),
            merged => self.order_settings(Awaits::Merge, merged),
        }
    }

    /// Takes the long settings that were ordered and have come.
    pub(super) fn settings_merged(
        &mut self,
        CompiledSettings { merged, derived }: CompiledSettings,
    ) {
        if self.was_awaited(Awaits::Merge) {
            self.take_merged(merged, Some(derived));
        } else if self.was_awaited(Awaits::Derivation) {
            self.settings_known(Arc::clone(&merged.resolved), None, Some(derived));
        }
    }

    /// The files are as they were. Tools may have joined, so what follows may differ.
    fn settings_unchanged(&mut self, known: Arc<Resolved>) {
        let merged = self.memory.merged.as_ref().filter(|it| Arc::ptr_eq(&it.resolved, &known));
        match merged.filter(|it| self.is_long_to_derive(it)).cloned() {
            Some(merged) => self.order_settings(Awaits::Derivation, Ok(merged)),
            None => self.settings_known(known, None, None),
        }
    }

    /// Leaves long settings to the driver, which merges them and compiles their rules where no session
    /// waits.
    fn order_settings(&mut self, awaits: Awaits, merged: Result<Arc<Merged>, MergeOrder>) {
        self.awaits = Some(awaits);
        let order = DeriveOrder::new(merged, &self.facts);
        self.onward = Some(Effect::MergeSettings(Box::new(order)));
    }

    /// Whether rules must be compiled anew that are long.
    fn is_long_to_derive(&self, merged: &Merged) -> bool {
        let kept = self.memory.derived_settings.as_ref();
        let is_kept = kept.is_some_and(|it| it.matches(&merged.resolved));
        let is_made = is_kept && self.memory.joined.is_empty();
        !(merged.is_short() || is_made)
    }

    /// Puts settings in force; `made` is what follows from them, where the driver has found that.
    fn settings_known(
        &mut self,
        resolved: Arc<Resolved>,
        layers: Option<MeasuredText>,
        made: Option<Arc<DerivedSettings>>,
    ) {
        let has_learned = std::mem::take(&mut self.memory.has_learned);
        let is_due = layers.is_some() || has_learned;
        let models = if is_due { self.models_to_record(&resolved, layers.as_ref()) } else { None };
        // A run records them once, in its first turn, and when they change.
        let (layers, is_known) = match (layers, self.memory.layers.take()) {
            (None, Some(kept)) => (kept, true),
            (layers, before) => {
                let layers = layers.unwrap_or_else(|| MeasuredText::new(""));
                let read = Repeated::measured(self.journal.stored_measured(&layers), &layers);
                let is_known = before.is_some_and(|it| it.digest() == read.digest());
                (read, is_known)
            }
        };
        let to_record = layers.to_record(is_known && self.number != 1);
        self.memory.layers = Some(layers);
        let tools = self.take_joined();
        let kept = self.memory.derived_settings.take().filter(|it| it.matches(&resolved));
        let derived_settings = match (kept, made) {
            (Some(kept), None) if tools.is_none() => kept,
            (before, made) => {
                self.state.settings_changed = true;
                let made =
                    made.unwrap_or_else(|| Arc::new(DerivedSettings::new(&resolved, &self.facts)));
                self.publish_warnings(&made, before.as_deref());
                made
            }
        };
        let detail = StepDetail::Settings {
            layers: to_record,
            sources: derived_settings.sources.to_vec(),
            warnings: u32::saturating(resolved.warnings.len()),
            models,
            tools,
            refused: std::mem::take(&mut self.state.refused),
        };
        self.record_step(detail);
        self.memory.derived_settings = Some(derived_settings);
        self.memory.resolved = Some(resolved);
        self.next(Step::StateInitialization);
    }

    /// Takes in the tools that have joined before this turn, which step 3 offers. Returns what is recorded of them.
    fn take_joined(&mut self) -> Option<Stored> {
        let joined = std::mem::take(&mut self.memory.joined);
        if joined.is_empty() {
            return None;
        }
        self.state.tools_joined = true;
        let text = serde_json::to_string(&joined).unwrap_or_default();
        Some(self.journal.stored_externally(&text))
    }

    /// Publishes what the rules of new settings do not mean, but for what was published of `before`, of
    /// the same settings and fewer tools. A sub-agent publishes nothing: its settings are its parent's.
    fn publish_warnings(&mut self, made: &DerivedSettings, before: Option<&DerivedSettings>) {
        let to_record = if self.facts.agent.is_none() { &made.warnings[..] } else { &[] };
        let was_reported = |it: &&String| before.is_some_and(|before| before.warnings.contains(it));
        for what in to_record.iter().filter(|it| !was_reported(it)) {
            self.publish(Event::Alert { what: what.as_str().into() });
        }
    }

    /// What is known about the models in use, unless it was recorded already. It stands next to the layers in the record.
    fn models_to_record(
        &mut self,
        resolved: &Resolved,
        layers: Option<&MeasuredText>,
    ) -> Option<Stored> {
        let is_known = self.memory.models.is_some() || !resolved.models.is_empty();
        if !is_known {
            return None;
        }
        let text = &resolved.models_text;
        if self.memory.models.as_ref().is_some_and(|it| it.digest() == text.digest()) {
            return None;
        }
        self.memory.models = Some(match layers {
            Some(layers) if KEEPS_MODELS <= self.facts.revision => {
                self.journal.stored_next_to(layers, text)
            }
            _ => self.journal.stored_measured(text),
        });
        self.memory.models.clone()
    }

    /// The layers that were read, after those of the session, merged: as they were before, or in place.
    /// Long ones are left to the driver, which does it where no session waits.
    fn merged(&self, read: Vec<LayerText>) -> Result<Arc<Merged>, MergeOrder> {
        let (fixed, catalogue) = (&self.facts.layers, &self.memory.catalogue);
        let is_known = |known: &&Arc<Merged>| known.matches(fixed.iter().chain(&read), catalogue);
        if let Some(known) = self.memory.merged.as_ref().filter(is_known) {
            return Ok(Arc::clone(known));
        }
        let order = MergeOrder::new(catalogue).with(fixed.clone()).with(read);
        if order.is_short() { Ok(Arc::new(order.merge())) } else { Err(order) }
    }

    fn take_merged(&mut self, merged: Arc<Merged>, made: Option<Arc<DerivedSettings>>) {
        let resolved = Arc::clone(&merged.resolved);
        let text = merged.text.clone();
        self.memory.merged = Some(merged);
        // Sub-agents have their parent's settings, of which there was an alert.
        let to_record = if self.facts.agent.is_none() { &resolved.warnings[..] } else { &[] };
        let (_, left_out) = chain(&resolved.settings, &self.facts.providers);
        let left_out = if self.facts.agent.is_none() { &left_out[..] } else { &[] };
        for what in to_record.iter().chain(left_out) {
            self.publish(Event::Alert { what: what.as_str().into() });
        }
        self.settings_known(resolved, Some(text), made);
    }
}
