//! What a session reads of its surroundings, and what its system prompt holds, before the first prompt.

use ennead_runtime::step1_settings_resolution::trust::{SettingSources, Trust};

use super::SessionOptions;

impl SessionOptions {
    /// Sets how far the workspace's own files are trusted.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Sets whose settings and instruction files are read next to those of the organisation.
    #[must_use]
    pub fn setting_sources(self, setting_sources: SettingSources) -> Self {
        Self { setting_sources, ..self }
    }

    /// Sets whether settings files are read. Defaults to `true`.
    #[must_use]
    pub fn reads_settings(self, reads_settings: bool) -> Self {
        Self { reads_settings, ..self }
    }

    /// Sets whether instruction files, git and memory are read. Defaults to `true`.
    #[must_use]
    pub fn reads_sources(self, reads_sources: bool) -> Self {
        Self { reads_sources, ..self }
    }

    /// Replaces the built-in system prompt.
    #[must_use]
    pub fn system_prompt(self, text: impl Into<String>) -> Self {
        Self { system_prompt: Some(text.into()), ..self }
    }

    /// Adds a text after the system prompt.
    #[must_use]
    pub fn append_system_prompt(self, text: impl Into<String>) -> Self {
        Self { append_system_prompt: Some(text.into()), ..self }
    }

    /// Sets whether a replaced system prompt is sent alone. Defaults to `false`.
    #[must_use]
    pub fn bare_system_prompt(self, bare_system_prompt: bool) -> Self {
        Self { bare_system_prompt, ..self }
    }

    /// Sets whether directories and the state of git go into the first message of the user, so that the system prompt
    /// is the same for all users. Defaults to `false`.
    #[must_use]
    pub fn static_system_prompt(self, static_system_prompt: bool) -> Self {
        Self { static_system_prompt, ..self }
    }
}
