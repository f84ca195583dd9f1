//! Hooks that are told which settings files have changed, before the change holds, and may refuse it.
//!
//! Those run that are in force. A change that was refused is not asked about again until the file changes once more; a
//! process that opens the session anew takes the files as they are.

use std::{collections::VecDeque, mem, sync::Arc};

use super::Turn;
use crate::{
    digest::Digest,
    event::Event,
    hook::{Firing, HookEvent, HookVerdict},
    permission::Scope,
    run::facts::FIRES_AT_SETTINGS,
    step1_settings_resolution::LayerText,
    step2_state_initialization::{ConfigChanges, FiringReason},
};

/// Settings files of these scopes are watched, by the names that hooks know.
const SOURCES: [(Scope, &str); 4] = [
    (Scope::User, "user_settings"),
    (Scope::Project, "project_settings"),
    (Scope::Local, "local_settings"),
    (Scope::Policy, "policy_settings"),
];

/// Returns the name that hooks know a scope by; `None` where its settings are not in a file.
fn source_of(scope: Scope) -> Option<&'static str> {
    SOURCES.iter().find(|it| it.0 == scope).map(|it| it.1)
}

/// Whether two layers are of one file.
fn is_same_file(one: &LayerText, other: &LayerText) -> bool {
    (one.scope, &one.source) == (other.scope, &other.source)
}

impl Turn {
    /// Takes settings files that are not as they were: hooks are asked first, where there are any.
    pub(super) fn config_read(&mut self, mut read: Vec<LayerText>) {
        let is_watched = SOURCES.iter().any(|it| self.has_active_hooks(it.1));
        if !is_watched && self.memory.refused.is_empty() {
            return self.take_read(read);
        }
        let before = self.known_layers();
        for (layer, digest) in mem::take(&mut self.memory.refused) {
            let found = read.iter().find(|it| is_same_file(it, &layer));
            if found.map(|it| Digest::of(it.text.as_bytes())) == digest {
                put_back(&mut read, &before, &layer);
                self.memory.refused.push((layer, digest));
            }
        }
        let left = changes(&before, &read);
        let mut names = left.iter().filter_map(|it| source_of(it.scope));
        if !names.any(|it| self.has_active_hooks(it)) {
            return self.take_read(read);
        }
        let derived = self.memory.derived_settings.as_ref();
        self.state.settings = derived.map(|it| Arc::clone(it.settings()));
        let changes = ConfigChanges { read, before, left, asked: None, refused: Vec::new() };
        self.state.config = Some(changes);
        self.fire_config_change();
    }

    fn has_active_hooks(&self, source: &str) -> bool {
        let table = self.memory.derived_settings.as_ref().map(|it| &it.settings().hooks);
        let event = HookEvent::ConfigChange;
        FIRES_AT_SETTINGS <= self.facts.revision
            && self.facts.agent.is_none()
            && table.is_some_and(|it| {
                it.get(&event).into_iter().flatten().any(|it| it.matcher.matches(source))
            })
    }

    /// Returns the layers of files that hold.
    pub(crate) fn known_layers(&self) -> Vec<LayerText> {
        let known = self.memory.merged.as_ref().map(|it| &*it.layers).unwrap_or_default();
        known.get(self.facts.layers.len()..).unwrap_or_default().to_vec()
    }

    /// Makes the layers that were read when these were refused: of a refused one it is known that it was neither what
    /// holds nor what was refused before.
    pub(crate) fn with_refused(
        &self,
        mut held: Vec<LayerText>,
        refused: &[String],
    ) -> Vec<LayerText> {
        for (name, path) in refused.iter().filter_map(|it| it.split_once(' ')) {
            let Some((scope, _)) = SOURCES.iter().find(|it| it.1 == name) else { continue };
            let known = held.iter().position(|it| (it.scope, &*it.source) == (*scope, path));
            let mut layer = match known {
                Some(at) => held.remove(at),
                None => LayerText::new(*scope, path, String::new()),
            };
            layer.text.push(' ');
            while self.was_refused(&layer) {
                layer.text.push(' ');
            }
            held.insert(known.unwrap_or(held.len()), layer);
        }
        held
    }

    fn was_refused(&self, layer: &LayerText) -> bool {
        let digest = Some(Digest::of(layer.text.as_bytes()));
        self.memory.refused.iter().any(|it| is_same_file(&it.0, layer) && it.1 == digest)
    }

    /// Asks about the next file; goes on when there is none.
    fn fire_config_change(&mut self) {
        while let Some(config) = &mut self.state.config
            && let Some(layer) = config.left.pop_front()
        {
            config.asked = Some(layer.clone());
            let Some(source) = source_of(layer.scope) else { continue };
            let firing = Firing::ConfigChange { source: source.into(), file: layer.source.into() };
            if self.fire(firing, None, FiringReason::ConfigChange) {
                return;
            }
        }
        let Some(config) = self.state.config.take() else { return };
        self.state.refused = config.refused;
        self.take_read(config.read);
    }

    /// Handles the end of the hooks about a file.
    pub(super) fn config_answered(&mut self, verdict: HookVerdict) {
        let Some(config) = &mut self.state.config else { return };
        let refused = verdict.block_reason.or(verdict.stop);
        if let (Some(layer), Some(why)) = (config.asked.take(), refused) {
            let what = if layer.scope == Scope::Policy {
                // Nobody but the organisation has a say about its settings.
                format!("a hook cannot refuse a change of {}: {why}", layer.source)
            } else {
                let found = config.read.iter().find(|it| is_same_file(it, &layer));
                let digest = found.map(|it| Digest::of(it.text.as_bytes()));
                put_back(&mut config.read, &config.before, &layer);
                let name = source_of(layer.scope).unwrap_or_default();
                config.refused.push(format!("{name} {}", layer.source));
                let what = format!("a hook refused the change of {}: {why}", layer.source);
                self.memory.refused.push((layer, digest));
                what
            };
            self.publish(Event::Alert { what: what.into() });
        }
        self.fire_config_change();
    }
}

/// Returns the files that differ, each with what is in it now; one that is gone with nothing.
fn changes(before: &[LayerText], read: &[LayerText]) -> VecDeque<LayerText> {
    let is_new = |it: &&LayerText| {
        source_of(it.scope).is_some()
            && !before.iter().any(|old| is_same_file(old, it) && old.text == it.text)
    };
    let is_gone = |it: &&LayerText| {
        source_of(it.scope).is_some() && !read.iter().any(|new| is_same_file(new, it))
    };
    let gone =
        before.iter().filter(is_gone).map(|it| LayerText { text: String::new(), ..it.clone() });
    let mut found: Vec<LayerText> = read.iter().filter(is_new).cloned().chain(gone).collect();
    found.sort_by(|one, other| {
        (source_of(one.scope), &one.source).cmp(&(source_of(other.scope), &other.source))
    });
    found.into()
}

/// Puts a file back to what it was before.
fn put_back(read: &mut Vec<LayerText>, before: &[LayerText], layer: &LayerText) {
    let old = before.iter().position(|it| is_same_file(it, layer));
    let new = read.iter().position(|it| is_same_file(it, layer));
    match (old.and_then(|at| Some((at, before.get(at)?.clone()))), new) {
        (Some((_, old)), Some(new)) => {
            if let Some(layer) = read.get_mut(new) {
                *layer = old;
            }
        }
        (Some((at, old)), None) => read.insert(at.min(read.len()), old),
        (None, Some(new)) => _ = read.remove(new),
        (None, None) => {}
    }
}
