//! Hooks that are code of the embedder.

use std::{sync::Arc, time::Duration};

use ennead_runtime::hook::{HookEvent, Matcher, OnFailure};

use super::SessionOptions;
use crate::{options::OptionError, ports::in_process_hook::Hook};

impl SessionOptions {
    /// Adds a hook of this process on an event. It runs as a hook of the settings does: after those of files and of
    /// settings that were given before, with the same outcomes, and in sub-agents, too. `matcher` names the tools that
    /// it is for, as in settings (`Bash`, `Edit|Write`, a regular expression; empty or `*` for all). A hook that takes
    /// longer than `limit` is dropped and has failed.
    ///
    /// # Errors
    ///
    /// [`OptionError::Matcher`] when the matcher is not a regular expression.
    pub fn hook(
        self,
        event: HookEvent,
        matcher: &str,
        limit: Duration,
        hook: Arc<dyn Hook>,
    ) -> Result<Self, OptionError> {
        self.add_hook(event, matcher, limit, hook, OnFailure::Ignore)
    }

    /// Adds a hook as [`SessionOptions::hook`] does. Its failure, lateness included, blocks what it was asked about.
    ///
    /// # Errors
    ///
    /// As [`SessionOptions::hook`].
    pub fn guarding_hook(
        self,
        event: HookEvent,
        matcher: &str,
        limit: Duration,
        hook: Arc<dyn Hook>,
    ) -> Result<Self, OptionError> {
        self.add_hook(event, matcher, limit, hook, OnFailure::Block)
    }

    fn add_hook(
        mut self,
        event: HookEvent,
        matcher: &str,
        limit: Duration,
        hook: Arc<dyn Hook>,
        on_failure: OnFailure,
    ) -> Result<Self, OptionError> {
        // Names of files are not patterns.
        if event != HookEvent::FileChanged {
            Matcher::parse(Some(matcher))?;
        }
        let name = format!("hook-{}", self.hooks.len());
        self.settings = self.settings.hook(event, matcher, limit, &name, on_failure);
        self.hooks.insert(name, hook);
        Ok(self)
    }
}
