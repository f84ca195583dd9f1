//! Source 4: rules for certain files, shown once such a file has been read.

use std::borrow::Cow;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::{PathRule, titled};
use crate::{step7_permission_gate::isolation::Isolation, tool::ToolMemory};

/// Alternatives that one rule may list; a longer list is cut so that start-up stays bounded.
const MAX_GLOBS: usize = 1_000;

/// Characters that one glob may have; braces make it grow when it is read.
const MAX_GLOB_CHARS: usize = 4_096;

/// The rules of a session, ready to match.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathRuleSet {
    rules: Vec<(PathRule, GlobSet)>,
    /// A worktree, and the checkout for whose files its files are.
    isolation: Option<Isolation>,
}

impl PathRuleSet {
    /// Reads the globs. One that cannot be read matches nothing.
    pub(crate) fn new(rules: &[PathRule]) -> Self {
        let compiled = rules.iter().map(|rule| {
            let mut globs = GlobSetBuilder::new();
            let usable = rule.paths.iter().filter(|it| it.len() <= MAX_GLOB_CHARS);
            for pattern in usable.take(MAX_GLOBS) {
                if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
                    globs.add(glob);
                }
            }
            (rule.clone(), globs.build().unwrap_or_else(|_| GlobSet::empty()))
        });
        Self { rules: compiled.collect(), isolation: None }
    }

    /// Makes the rules of an agent that works in a worktree: rules for a file of the checkout apply to that file of the
    /// worktree.
    #[must_use]
    pub(crate) fn in_worktree(self, isolation: Isolation) -> Self {
        Self { isolation: Some(isolation), ..self }
    }

    /// Returns the same place with other rules.
    #[must_use]
    pub(crate) fn with(&self, rules: &[PathRule]) -> Self {
        Self { isolation: self.isolation.clone(), ..Self::new(rules) }
    }

    /// Returns the rules that are for one of these files, in order.
    pub(crate) fn rules_for<'a>(
        &'a self,
        files: impl Iterator<Item = &'a String> + Clone,
    ) -> Vec<&'a PathRule> {
        let places = self.places_for(files);
        places.into_iter().filter_map(|it| self.rules.get(it)).map(|it| &it.0).collect()
    }

    /// Returns the places of the rules for which a file was read, in order.
    pub(crate) fn triggered(&self, memory: &ToolMemory) -> Vec<usize> {
        self.places_for(memory.files.keys())
    }

    fn places_for<'a>(&self, files: impl Iterator<Item = &'a String> + Clone) -> Vec<usize> {
        let is_triggered = |(rule, globs): &(PathRule, GlobSet)| {
            files.clone().any(|file| {
                let base = rule.base.trim_end_matches('/');
                let file = self.path_in_checkout(file);
                let below = file.strip_prefix(base).and_then(|it| it.strip_prefix('/'));
                below.is_some_and(|it| globs.is_match(it))
            })
        };
        let all = self.rules.iter().enumerate();
        all.filter(|(_, rule)| is_triggered(rule)).map(|(i, _)| i).collect()
    }

    fn path_in_checkout<'a>(&self, file: &'a str) -> Cow<'a, str> {
        let Some(Isolation { worktree, checkout }) = &self.isolation else { return file.into() };
        let below = |top: &String| file.strip_prefix(&**top).filter(|it| it.starts_with('/'));
        // Rules are named as the checkout is written.
        match worktree.iter().find_map(below).zip(checkout.first()) {
            Some((below, checkout)) => format!("{checkout}{below}").into(),
            None => file.into(),
        }
    }

    /// Returns what the model reads of these rules; `None` for no rule.
    pub(super) fn text(&self, triggered: &[usize]) -> Option<String> {
        let rules = triggered.iter().filter_map(|&i| self.rules.get(i));
        let parts: Vec<String> = rules
            .map(|(rule, _)| format!("Contents of {}:\n\n{}", rule.path, rule.text.trim()))
            .collect();
        let title = "Rules for files that you have read.";
        (!parts.is_empty()).then(|| titled(title, &parts.join("\n\n")))
    }
}
