//! The settings that hold for a turn, as its steps and the actors around it read them.

use std::{num::NonZeroU32, sync::Arc};

use super::Turn;
use crate::{
    output::OutputSettings,
    permission::PermissionMode,
    run::derived_settings::DerivedSettings,
    sandbox::Sandbox,
    step1_settings_resolution::{
        AgentLimits, Certificates, LayerText, Settings, ShaperSettings, ShellSettings, WorktreeBase,
    },
};

impl Turn {
    /// Returns the defaults of channels, once the settings are known.
    pub fn output(&self) -> Option<&OutputSettings> {
        self.memory.resolved.as_ref().map(|it| &it.settings.output)
    }

    /// Returns how many calls the dispatcher's mailbox lets in.
    pub fn max_tool_calls(&self) -> NonZeroU32 {
        NonZeroU32::new(self.settings().max_tool_calls).unwrap_or(NonZeroU32::MIN)
    }

    /// Returns the variables for child processes. One without a value is taken away, as secrets are.
    pub fn env(&self) -> Arc<[(String, String)]> {
        self.derived_settings(|it| &it.env)
    }

    /// Returns patterns of the paths that `Read` deny rules hide.
    pub fn hidden(&self) -> Arc<[String]> {
        let setup = self.state.gate_setup.as_ref();
        setup.map(|it| it.hidden(None)).unwrap_or_default()
    }

    /// Returns patterns of the instruction files that settings leave out.
    pub fn excludes(&self) -> Arc<[String]> {
        Arc::clone(&self.settings().instructions.excludes)
    }

    /// Returns directories that count as workspace in addition to the working directory.
    pub fn additional_directories(&self) -> Arc<[String]> {
        let directories = self.derived_settings(|it| &it.additional_directories);
        if self.memory.overrides.is_empty() {
            return directories;
        }
        let mut changed = directories.to_vec();
        self.memory.overrides.move_directories(&mut changed);
        changed.into()
    }

    /// Returns the directory in which tools keep output that is too long.
    pub fn spill_directory(&self) -> Arc<str> {
        self.derived_settings(|it| &it.spill_directory)
    }

    /// Returns the layers that its settings were made of, and what was changed since; its sub-agents have the same.
    pub fn layers(&self) -> Arc<[LayerText]> {
        let layers = self.memory.merged.as_ref().map(|it| Arc::clone(&it.layers));
        let layers = layers.unwrap_or_default();
        match self.memory.overrides.layer() {
            None => layers,
            Some(changed) => layers.iter().cloned().chain([changed]).collect(),
        }
    }

    /// Returns the limits on the tree of agents.
    pub fn agent_limits(&self) -> AgentLimits {
        self.settings().agents
    }

    /// Returns which turn of its run it is, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the settings of commands in the background.
    pub fn shell_settings(&self) -> ShellSettings {
        self.settings().shell
    }

    /// Returns what confines shell commands and what a repository starts; `None` if nothing does.
    pub fn sandbox(&self) -> Option<Arc<Sandbox>> {
        self.memory.derived_settings.as_ref().and_then(|it| it.sandbox.clone())
    }

    /// Returns who vouches for servers that are reached over TLS.
    pub fn certificates(&self) -> Certificates {
        self.settings().certificates.clone()
    }

    /// Returns where the worktrees of its sub-agents begin.
    pub fn worktree_base(&self) -> WorktreeBase {
        self.settings().worktree_base
    }

    pub(crate) fn revision(&self) -> u32 {
        self.facts.revision
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.state.settings.clone().unwrap_or_default()
    }

    /// Returns something that follows from the settings; nothing before they are known.
    pub(super) fn derived_settings<T: ?Sized>(
        &self,
        part: fn(&DerivedSettings) -> &Arc<T>,
    ) -> Arc<T>
    where
        Arc<T>: Default,
    {
        self.memory.derived_settings.as_ref().map(|it| Arc::clone(part(it))).unwrap_or_default()
    }

    pub(super) fn shapers(&self) -> Arc<ShaperSettings> {
        self.memory.shapers.clone().unwrap_or_default()
    }

    /// Returns the shell's working directory.
    pub fn cwd(&self) -> &str {
        self.memory.tools.cwd.as_deref().unwrap_or(&self.facts.workspace)
    }

    /// Returns the mode that decides about calls.
    pub(crate) fn mode(&self) -> PermissionMode {
        self.state.gate_setup.as_ref().map(|it| it.mode()).unwrap_or_default()
    }
}
