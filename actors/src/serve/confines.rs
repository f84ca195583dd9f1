//! What the sessions of a tenant keep off on the disk: what the server keeps, and the directories of other tenants.
//!
//! The tenant answers the questions of its own sessions, so a rule that asks would keep nothing closed. A deny rule does:
//! no later rule or answer lifts it. What a command does by itself is not seen by rules; the sandbox confines that.

use std::path::Path;

use ennead_runtime::serve::closed_places::ClosedPlaces;
use serde_json::json;

use super::{
    Server,
    problem::{Code, Problem},
    record::Record,
};
use crate::{SessionOptions, options::Settings};

/// Returns the options of a session with what closes these places to it. To be called where the disk may be waited
/// for.
pub(crate) fn confined(
    server: &Server,
    record: &Record,
    session: SessionOptions,
) -> Result<SessionOptions, Problem> {
    let (paths, options) = (&server.0.paths, &server.0.options);
    let mut closed = names(paths.top())?;
    let mut open = names(&paths.transcripts(&record.tenant).join(record.id.as_str()))?;
    open.extend(names(&paths.transcript(&record.tenant, &record.id))?);
    let workspace = names(&session.workspace)?;
    // Commands of a workspace that holds a directory which is closed to them could make no file next to it.
    let holds_state = closed.iter().any(|it| lies_in_any(it, &workspace));
    let mut of_commands = if holds_state { Vec::new() } else { closed.clone() };
    let mut of_tenant = Vec::new();
    if options.workspace.is_none() {
        let work = names(&options.workspaces)?;
        of_tenant = names(&options.workspaces.join(record.tenant.as_str()))?;
        open.extend(of_tenant.iter().cloned());
        of_commands.extend(work.iter().cloned());
        closed.extend(work);
    }
    // It may lie in the directory of what the server keeps.
    open.extend(workspace.into_iter().filter(|it| lies_in_any(it, &closed)));
    let own = Settings::from_json(json!({
        "permissions": { "deny": ClosedPlaces { closed, open }.rules() },
        "sandbox": {
            "filesystem": { "denyRead": of_commands, "allowRead": of_tenant },
            // The tenant that prompts a command would answer the question whether it runs outside of the sandbox.
            "allowUnsandboxedCommands": false,
        },
    }));
    let own = own.map_err(|it| Problem::internal("a session cannot be confined", &it))?;
    // Lists are joined; of all else what the operator says holds.
    Ok(SessionOptions { settings: own.over(session.settings.clone()), ..session })
}

/// Returns a path as it is written, absolute, and as it really is.
fn names(path: &Path) -> Result<Vec<String>, Problem> {
    let bad = || {
        Problem::new(Code::CannotOpen, "the directories of the server have no names that are text")
    };
    let written = std::path::absolute(path).map_err(|_| bad())?;
    let mut found = vec![written.to_str().ok_or_else(bad)?.to_owned()];
    // What is not there yet has the real name of what it will lie in.
    let parent = || Some(written.parent()?.canonicalize().ok()?.join(written.file_name()?));
    if let Some(real) = written.canonicalize().ok().or_else(parent) {
        let real = real.to_str().ok_or_else(bad)?.to_owned();
        if !found.contains(&real) {
            found.push(real);
        }
    }
    Ok(found)
}

fn lies_in_any(path: &str, directories: &[String]) -> bool {
    directories.iter().any(|it| Path::new(path).starts_with(it))
}
