//! What follows from the settings in force and the facts of a session.
//!
//! Made when the settings change and not turn by turn; a turn clones references.

use std::sync::Arc;

use crate::{
    approval::PermissionOverrides,
    digest::Digest,
    hook::HookEvent,
    ids::ToolName,
    mcp::names::is_of_server,
    recovery::chain::{ChainModel, chain},
    run::facts::{ASKS_HOOKS_ALONE, CONFIRMS_CHANGES, SessionFacts},
    sandbox::{Sandbox, SandboxPlaces},
    step1_settings_resolution::{MergeOrder, Merged, Resolved, Settings},
    step7_permission_gate::{GateSetup, Places, rule::Rule},
};

/// A notice for the one that sets the key.
const NO_CACHED_MICROCOMPACT: &str = "`ennead.shapers.cachedMicrocompact` has no effect: old results \
    are cleared when the cache is cold, and never while it is warm";

/// What follows from the settings in force and the facts of a session.
#[derive(Debug)]
pub struct DerivedSettings {
    digest: Digest,
    /// The sources of settings of which some value holds, each once.
    pub sources: Arc<[String]>,
    /// Rules that do not hold, or not as they seem to, and settings without effect, in words for the user.
    pub warnings: Vec<String>,
    /// The permission rules, compiled.
    pub gate: Arc<GateSetup>,
    /// The models that may be asked, in order.
    pub chain: Arc<[ChainModel]>,
    /// Directories that count as workspace in addition to the working directory.
    pub additional_directories: Arc<[String]>,
    /// Variables for child processes. One without a value is taken away, as secrets are.
    pub env: Arc<[(String, String)]>,
    /// What confines shell commands, where the settings ask for that.
    pub sandbox: Option<Arc<Sandbox>>,
    /// The directory in which results are kept that are too long for the model.
    pub results_directory: Arc<str>,
    /// The directory in which tools keep such output themselves. Agents of a tree share the one
    /// above, and ids of calls may be the same in several of them.
    pub spill_directory: Arc<str>,
    /// Tools that declare no cap for their results, which therefore are not cut to one.
    pub exempt_tools: Arc<[ToolName]>,
    /// Characters of a result, for tools whose own cap holds: a result of a server is whole up to
    /// its cap, or in a file; cut again, the documented limit would be none.
    pub own_caps: Arc<[(ToolName, u64)]>,
}

/// Settings that are long, for which somebody finds where no session waits what follows from them.
#[derive(Debug)]
pub struct DeriveOrder {
    /// The layers, merged before or still to be merged.
    merged: Result<Arc<Merged>, MergeOrder>,
    facts: Arc<SessionFacts>,
}

/// Merged settings and what follows from them.
#[derive(Clone, Debug)]
pub struct CompiledSettings {
    /// The layers and what they merge to.
    pub merged: Arc<Merged>,
    /// What follows from that and the facts of the session.
    pub derived: Arc<DerivedSettings>,
}

impl DeriveOrder {
    /// Makes an order to derive from layers that were merged before, or that are to be merged first.
    pub fn new(merged: Result<Arc<Merged>, MergeOrder>, facts: &Arc<SessionFacts>) -> Self {
        Self { merged, facts: Arc::clone(facts) }
    }

    /// Merges what is not yet merged and compiles its rules. Work is linear in the bytes of the layers.
    pub fn derive(self) -> CompiledSettings {
        let merged = self.merged.unwrap_or_else(|order| Arc::new(order.merge()));
        let derived = Arc::new(DerivedSettings::new(&merged.resolved, &self.facts));
        CompiledSettings { merged, derived }
    }
}

impl DerivedSettings {
    /// Derives what follows from these settings.
    pub fn new(resolved: &Resolved, facts: &SessionFacts) -> Self {
        let settings = Arc::clone(&resolved.settings);
        let results_directory: Arc<str> = format!("{}/tool-results", facts.directory).into();
        let of_agent = facts.agent.as_ref().map(|it| format!("{results_directory}/agent-{it}"));
        let secrets = &settings.secrets;
        let env = settings.env.iter().filter(|(name, _)| !secrets.is_secret(name));
        let env = env.map(|(name, value)| (name.clone(), value.clone()));
        let without = secrets.all().map(|name| (name.to_owned(), String::new()));
        let of_servers = facts.tools.iter().filter(|it| is_of_server(&it.name));
        let own_caps = of_servers.filter_map(|it| Some((it.name.clone(), it.output_cap?.into())));
        let exempt = facts.tools.iter().filter(|it| it.output_cap.is_none());
        let gate = Arc::new(gate(&settings, facts));
        let rules = settings.permissions.rules.iter().filter_map(|it| Rule::parse(it).ok());
        let unknown = rules.filter_map(|it| it.names_nothing(&facts.tools));
        let has_useless = settings.shapers.cached_microcompact;
        let useless = has_useless.then(|| NO_CACHED_MICROCOMPACT.to_owned());
        let places = SandboxPlaces {
            workspace: &facts.workspace,
            home: &facts.home,
            transcripts: facts.directory.rsplit_once('/').map(|it| it.0),
        };
        let additional = &settings.permissions.additional_directories;
        let sandbox = Sandbox::of(&settings.sandbox, additional, places).map(Arc::new);
        Self {
            sandbox,
            digest: resolved.digest,
            warnings: gate.warnings().iter().cloned().chain(unknown).chain(useless).collect(),
            sources: Arc::clone(&resolved.sources),
            chain: chain(&settings, &facts.providers).0.into(),
            additional_directories: settings.permissions.additional_directories.clone().into(),
            env: env.chain(without).collect(),
            spill_directory: of_agent.map_or_else(|| Arc::clone(&results_directory), Into::into),
            results_directory,
            exempt_tools: exempt.map(|it| it.name.clone()).collect(),
            own_caps: own_caps.collect(),
            gate,
        }
    }

    /// Returns whether it follows from these settings, given the same facts.
    pub fn matches(&self, resolved: &Resolved) -> bool {
        self.digest == resolved.digest
    }

    /// Makes the permission rules with what was changed of them since the session was opened.
    pub(crate) fn gate_with(
        &self,
        overrides: &PermissionOverrides,
        facts: &SessionFacts,
    ) -> GateSetup {
        let settings = Arc::new(overrides.apply_to(self.settings()));
        self.gate_under(&settings, facts)
    }

    fn gate_under(&self, settings: &Arc<Settings>, facts: &SessionFacts) -> GateSetup {
        let (known, wanted) = (&self.settings().permissions, &settings.permissions);
        let is_compiled = known.rules == wanted.rules
            && known.additional_directories == wanted.additional_directories
            && known.plans_directory == wanted.plans_directory
            && self.settings().instructions.has_memory == settings.instructions.has_memory;
        if is_compiled { self.gate.with_settings(settings) } else { gate(settings, facts) }
    }

    /// Returns the settings that all parts were derived from.
    pub fn settings(&self) -> &Arc<Settings> {
        self.gate.settings()
    }
}

/// Whether hooks may answer what no rule decides.
fn asks_hooks(settings: &Settings, facts: &SessionFacts) -> bool {
    ASKS_HOOKS_ALONE <= facts.revision && settings.hooks.contains_key(&HookEvent::PermissionRequest)
}

/// The rules where a session works, and in all workspaces around that.
fn gate(settings: &Arc<Settings>, facts: &SessionFacts) -> GateSetup {
    let of = |workspace: &Arc<str>| {
        let places = Places {
            workspace: Arc::clone(workspace),
            home: Arc::clone(&facts.home),
            project_root: None,
            real: facts.real.clone(),
        };
        GateSetup::new(Arc::clone(settings), settings.permissions.mode, places, facts.handler)
            .keeping(facts.kept_directories())
            .noting_in(if settings.instructions.has_memory {
                facts.memory_directories()
            } else {
                Vec::new()
            })
            .confining(facts.note_tools.clone())
            .planning_in(facts.plan_files(settings.permissions.plans_directory.as_deref()))
            .recorded_in(facts.transcripts())
            .with_policy(facts.has_policy)
            .asking_hooks(asks_hooks(settings, facts))
            .confirming_changes(CONFIRMS_CHANGES <= facts.revision)
    };
    let around = |around, workspace| Some(Arc::new(of(workspace).with_parent(around)));
    of(&facts.workspace)
        .with_isolation(facts.isolation())
        .with_parent(facts.within.iter().fold(None, around))
}
