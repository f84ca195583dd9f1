//! What a gate knows before a call comes: rules, mode, places, and who can be asked.
//!
//! Made once per turn. The setup of a sub-agent is made from its parent's and keeps it: every
//! decision of the child is also the parent's, so a child cannot have rights its parent has not.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    ResolvedPath,
    command::{CommandContext, Follower},
    isolation::Isolation,
    path_rule::Anchors,
    rule_book::RuleBook,
    transcripts::Transcripts,
};
use crate::{
    digest::Digest, ids::ToolName, json, permission::PermissionMode,
    step1_settings_resolution::Settings,
};

/// Who answers what no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handler {
    /// No one is asked: what would be asked is denied.
    None,
    /// Somebody: a person, an embedder, or the parent of a sub-agent.
    Approver,
}

/// Where a session is at home. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The working directory that the session was started in.
    pub workspace: Arc<str>,
    /// The home directory of the user.
    pub home: Arc<str>,
    /// What `/x` in project rules starts from; the workspace when `None`.
    pub project_root: Option<String>,
    /// Those of the directories above, and of `additionalDirectories`, that are reached through
    /// links: as written, and where they really are.
    pub real: BTreeMap<String, String>,
}

impl Places {
    /// What patterns of rules start from.
    fn anchors(&self) -> Anchors {
        let workspace = self.workspace.to_string();
        Anchors {
            project_root: self.project_root.clone().unwrap_or_else(|| workspace.clone()),
            workspace,
            home: self.home.to_string(),
            real: self.real.clone(),
        }
    }
}

/// What a gate knows before a call comes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GateSetup {
    settings: Arc<Settings>,
    mode: PermissionMode,
    places: Arc<Places>,
    handler: Handler,
    has_policy: bool,
    asks_hooks: bool,
    book: Arc<RuleBook>,
    directories: Arc<[String]>,
    kept: Arc<[String]>,
    notes: Arc<[String]>,
    note_tools: Arc<[ToolName]>,
    plan: Arc<[String]>,
    transcripts: Arc<Transcripts>,
    /// What a search leaves out that starts in none of the transcripts, by this gate alone.
    hidden: Arc<[String]>,
    isolation: Option<Arc<Isolation>>,
    parent: Option<Arc<GateSetup>>,
    /// Where the next shell command starts.
    cwd: Arc<str>,
    /// Changes of files that have passed in this turn without a question.
    unasked_changes: u32,
    /// Whether the settings about them have an effect.
    confirms_changes: bool,
}

impl GateSetup {
    /// Reads the rules of `settings`. `mode` is the one in force, which a session may have changed
    /// since its settings were read.
    pub fn new(
        settings: Arc<Settings>,
        mode: PermissionMode,
        places: Places,
        handler: Handler,
    ) -> Self {
        let anchors = places.anchors();
        let workspace = anchors.workspace.clone();
        let book = Arc::new(RuleBook::read(&settings.permissions.rules, &anchors));
        let hidden = Arc::clone(book.hidden());
        let written = [workspace].into_iter().chain(
            settings
                .permissions
                .additional_directories
                .iter()
                .map(|it| expand(it, &places.home, &places.workspace)),
        );
        let directories = written
            .flat_map(|it| {
                let real = places.real.get(&it).cloned();
                [Some(it), real].into_iter().flatten()
            })
            .collect();
        Self {
            settings,
            mode,
            cwd: Arc::clone(&places.workspace),
            places: Arc::new(places),
            handler,
            has_policy: false,
            asks_hooks: false,
            book,
            directories,
            kept: Arc::default(),
            notes: Arc::default(),
            note_tools: Arc::default(),
            plan: Arc::default(),
            transcripts: Arc::default(),
            hidden,
            isolation: None,
            parent: None,
            unasked_changes: 0,
            confirms_changes: true,
        }
    }

    /// Sets directories in which the harness keeps results that the model may read there; absolute, as they really are.
    /// Reading in them needs no rule.
    #[must_use]
    pub(crate) fn keeping(self, kept: impl Into<Arc<[String]>>) -> Self {
        Self { kept: kept.into(), ..self }
    }

    /// Sets directories in which the model keeps notes; absolute, as written and as they really are. Reading and
    /// writing Markdown files in them needs no rule.
    #[must_use]
    pub(crate) fn noting_in(self, notes: impl Into<Arc<[String]>>) -> Self {
        Self { notes: notes.into(), ..self }
    }

    /// Sets tools that may be used for these notes alone.
    #[must_use]
    pub(crate) fn confining(self, note_tools: impl Into<Arc<[ToolName]>>) -> Self {
        Self { note_tools: note_tools.into(), ..self }
    }

    /// With the file that holds the plan of the session; absolute, as written and as it really is. It may be
    /// read, and in the mode `plan` written.
    #[must_use]
    pub(crate) fn planning_in(self, plan: impl Into<Arc<[String]>>) -> Self {
        Self { plan: plan.into(), ..self }
    }

    /// Sets the place of its transcripts.
    #[must_use]
    pub(crate) fn recorded_in(self, transcripts: impl Into<Arc<Transcripts>>) -> Self {
        let transcripts = transcripts.into();
        let hidden = self.book.hidden().iter().chain(transcripts.hidden(None)).cloned().collect();
        Self { transcripts, hidden, ..self }
    }

    /// Sets whether a policy decides before a question is asked.
    #[must_use]
    pub(crate) fn with_policy(self, has_policy: bool) -> Self {
        Self { has_policy, ..self }
    }

    /// Sets whether there are hooks that may answer a question.
    #[must_use]
    pub(crate) fn asking_hooks(self, asks_hooks: bool) -> Self {
        Self { asks_hooks, ..self }
    }

    /// Adds the setup of a parent agent: what that one does not allow is not allowed here.
    #[must_use]
    pub(crate) fn with_parent(self, parent: Option<Arc<GateSetup>>) -> Self {
        Self { parent, ..self }
    }

    /// Sets the isolation of an agent that works apart from a checkout; `None` if it does not.
    #[must_use]
    pub(crate) fn with_isolation(self, isolation: Option<Isolation>) -> Self {
        Self { isolation: isolation.map(Arc::new), ..self }
    }

    /// Returns the setup for a call whose shell command starts in this directory.
    #[must_use]
    pub(crate) fn with_cwd(&self, cwd: &str) -> Self {
        Self { cwd: cwd.into(), ..self.clone() }
    }

    /// Sets how many changes of files have passed in this turn without a question.
    #[must_use]
    pub(crate) fn after_changes(self, unasked_changes: u32) -> Self {
        Self { unasked_changes, ..self }
    }

    /// Sets whether `ennead.codeEdit` has an effect; it has none in sessions that were recorded before there was such
    /// a setting.
    #[must_use]
    pub(crate) fn confirming_changes(self, confirms_changes: bool) -> Self {
        Self { confirms_changes, ..self }
    }

    /// Returns how many changes of files pass in a turn without a question; `None` means any number.
    fn max_unasked_changes(&self) -> Option<u32> {
        self.settings.code_edit.unasked_changes().filter(|_| self.confirms_changes)
    }

    /// Returns how many changes of files pass without a question in a turn, if that many have passed in this one.
    pub(super) fn used_up_changes(&self) -> Option<u32> {
        let limit = self.max_unasked_changes()?;
        (limit <= self.unasked_changes).then_some(limit)
    }

    /// Returns what the parts of a shell command are judged by.
    pub(super) fn surroundings(&self, links: Follower) -> CommandContext {
        CommandContext {
            links,
            cwd: Arc::clone(&self.cwd),
            home: Arc::clone(&self.places.home),
            workspace: Arc::clone(&self.directories),
        }
    }

    /// Returns what patterns of rules start from.
    pub(super) fn anchors(&self) -> Anchors {
        self.places.anchors()
    }

    /// Returns where the next shell command starts.
    pub(super) fn cwd(&self) -> &Arc<str> {
        &self.cwd
    }

    pub(super) fn isolation(&self) -> Option<&Isolation> {
        self.isolation.as_deref()
    }

    /// Returns what a search leaves out that starts there: what `Read` deny rules hide, those of the gates around this
    /// one included, and transcripts.
    pub(crate) fn hidden(&self, start: Option<&ResolvedPath>) -> Arc<[String]> {
        let own = if start.is_some_and(|it| self.transcripts.surround(&it.real)) {
            self.book.hidden().iter().chain(self.transcripts.hidden(start)).cloned().collect()
        } else {
            Arc::clone(&self.hidden)
        };
        match &self.parent {
            None => own,
            Some(parent) => own.iter().chain(parent.hidden(start).iter()).cloned().collect(),
        }
    }

    /// Returns the settings whose rules these are.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Returns the mode in force.
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// Applies settings with the same rules and directories, here and in the gates around this one. Nothing is compiled
    /// anew.
    #[must_use]
    pub(crate) fn with_settings(&self, settings: &Arc<Settings>) -> Self {
        let parent = self.parent.as_ref().map(|it| Arc::new(it.with_settings(settings)));
        let mode = settings.permissions.mode;
        Self { settings: Arc::clone(settings), mode, parent, ..self.clone() }
    }

    /// Returns whether both judge by the same compiled rules.
    #[cfg(test)]
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.book, &other.book)
    }

    /// Returns whether anybody or anything answers what no rule decides.
    pub(crate) fn may_ask(&self) -> bool {
        let has_classifier = self.mode == PermissionMode::Auto;
        self.handler == Handler::Approver || self.has_policy || self.asks_hooks || has_classifier
    }

    /// Returns the digest of what decides here: rules, mode and directories, those of the gates around this one
    /// included. An answer that was given under another one is not taken.
    pub fn epoch(&self) -> Digest {
        let permissions = &self.settings.permissions;
        let rules = permissions.rules.iter().map(|it| (it.kind, it.scope, it.text.as_str()));
        let own = (self.mode, rules.collect::<Vec<_>>(), &self.directories[..]);
        let own = Digest::of(json::to_string(&own).unwrap_or_default().as_bytes());
        // What was allowed because it is confined is not allowed without that.
        let sandbox = &self.settings.sandbox;
        let own =
            if sandbox.enabled { own.chain(Digest::of(sandbox.decides().as_bytes())) } else { own };
        let own = match self.max_unasked_changes() {
            Some(limit) => own.chain(Digest::of(format!("unasked changes: {limit}").as_bytes())),
            None => own,
        };
        self.parent.as_ref().map_or(own, |it| own.chain(it.epoch()))
    }

    /// Returns rules that were left out or do not mean what they seem to, in words for the user.
    pub(crate) fn warnings(&self) -> &[String] {
        self.book.warnings()
    }

    pub(super) fn book(&self) -> &RuleBook {
        &self.book
    }

    /// Returns the directories that count as workspace, as written and as reached.
    pub(super) fn directories(&self) -> &[String] {
        &self.directories
    }

    pub(super) fn kept(&self) -> &[String] {
        &self.kept
    }

    /// Returns whether a tool may be used for notes alone.
    pub(super) fn is_for_notes(&self, tool: &str) -> bool {
        self.note_tools.iter().any(|it| it.as_str() == tool)
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn plan(&self) -> &[String] {
        &self.plan
    }

    pub(super) fn transcripts(&self) -> &Transcripts {
        &self.transcripts
    }

    pub(super) fn parent(&self) -> Option<&GateSetup> {
        self.parent.as_deref()
    }
}

/// The absolute path that a directory of the settings means; `~` is the home directory, and what is relative
/// starts in the workspace.
pub(crate) fn expand(directory: &str, home: &str, workspace: &str) -> String {
    let absolute = match directory.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None if directory == "~" => home.to_owned(),
        None if directory.starts_with('/') => directory.to_owned(),
        None => format!("{workspace}/{directory}"),
    };
    super::path_resolution::by_text(&absolute)
}
