//! What the gate decides in one case of a corpus of permission cases.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Gate, GateSetup, GateStep, Handler, Look, PathKind, Places,
    path_resolution::{PathEntry, resolve},
};
use crate::{
    permission::PermissionMode,
    step1_settings_resolution::Settings,
    tool::{ToolCall, ToolSpec},
};

/// One call, and where it is made.
#[derive(Clone, Copy, Debug)]
pub struct GateCase<'a> {
    /// The mode that the session is in.
    pub mode: PermissionMode,
    /// Absolute path of the working directory, which is the workspace.
    pub cwd: &'a str,
    /// Absolute path of the home directory.
    pub home: &'a str,
    /// Absolute path of the project that patterns without a root begin at, if it is another one.
    pub project_root: Option<&'a str>,
    /// Declaration of the tool.
    pub spec: &'a ToolSpec,
    /// Input of the call, as JSON text.
    pub input: &'a str,
}

/// Returns `allow`, `ask` or `deny`. `look` returns what is at an absolute path.
///
/// # Errors
///
/// The gate asks for hooks, which a case does not have; in words.
pub fn decided(
    case: GateCase<'_>,
    settings: Arc<Settings>,
    look: &mut dyn FnMut(&str) -> PathEntry,
) -> Result<&'static str, String> {
    let GateCase { mode, cwd, home, project_root, spec, input } = case;
    let mut real = BTreeMap::new();
    let directories = settings.permissions.additional_directories.iter().map(String::as_str);
    for directory in directories.chain([cwd, home]) {
        let resolved = resolve(directory, cwd, home, look);
        if resolved.kind != PathKind::Missing {
            real.insert(directory.to_owned(), resolved.real);
        }
    }
    let places = Places {
        workspace: cwd.into(),
        home: home.into(),
        project_root: project_root.map(str::to_owned),
        real,
    };
    let setup = GateSetup::new(settings, mode, places, Handler::Approver);
    let call = ToolCall { id: "call".into(), name: spec.name.clone(), input: input.into() };
    let (mut gate, mut step) = Gate::open(call, spec, &setup);
    loop {
        step = match step {
            GateStep::ResolvePath { given } => gate.path_resolved(resolve(&given, cwd, home, look)),
            GateStep::Judge(order) => gate.command_judged(order.judge(Look::nowhere())),
            GateStep::RunHooks { .. } => return Err("the gate asks for hooks".into()),
            GateStep::Ask { .. } => return Ok("ask"),
            GateStep::Decided { permit: Some(_), .. } => return Ok("allow"),
            GateStep::Decided { permit: None, .. } => return Ok("deny"),
        };
    }
}
