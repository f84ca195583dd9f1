//! Whether the user trusts a workspace, and what of it waits until that is so.
//!
//! A session trusts nothing by itself: an embedder asks here, or a person, and says it in
//! [`SessionOptions::trust`](crate::SessionOptions).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    mcp::config,
    permission::Scope,
    step1_settings_resolution::trust::{SettingSources, variables::is_harmless},
};
use ennead_tools::source_file::{ReadError, Root, open_chosen};
use serde::Deserialize;
use serde_json::Value;

use crate::{services::mcp_server::one_line, world::environment::Environment};

/// Bytes of the user's state that are read. It holds histories of all projects and grows to megabytes.
const MAX_STATE: u64 = 64 * 1024 * 1024;

/// Characters of a command that are shown.
const MAX_SHOWN: usize = 200;

/// Things that are named one by one; of the others there is a count.
const MAX_NAMED: usize = 20;

/// Why the record of trust cannot be used. The workspace counts as not trusted then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Why the file cannot be read.
        #[source]
        cause: ReadError,
    },
    /// It is not JSON of the known shape.
    #[error("{} is not a record of trust: {cause}", path.display())]
    NotARecord {
        /// Path of the file.
        path: PathBuf,
        /// Why the file cannot be parsed.
        #[source]
        cause: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct TrustRecord {
    #[serde(default)]
    projects: BTreeMap<String, Project>,
}

#[derive(Deserialize)]
struct Project {
    #[serde(default, rename = "hasTrustDialogAccepted")]
    is_trusted: Option<Value>,
}

impl Environment {
    /// Returns whether the user recorded, in this program or another of its family, that the
    /// workspace is trusted: the directory itself, or one above it up to the top of its repository.
    /// The record is `.claude.json` in `CLAUDE_CONFIG_DIR`, or else in the home directory; without a
    /// home nothing is recorded.
    ///
    /// # Errors
    ///
    /// When the record is there and cannot be read or parsed. The workspace counts as not trusted then.
    pub fn recorded_trust(&self, workspace: &Path) -> Result<bool, RecordError> {
        let Some(home) = self.user_home() else { return Ok(false) };
        let directory = self.config_directory().unwrap_or_else(|| home.to_owned());
        recorded_trust(&directory.join(".claude.json"), workspace, home)
    }
}

/// Whether `state` records that the user trusts a workspace: the directory itself, or one above it up
/// to the top of its repository. Outside of repositories the directories above count as well, but
/// neither the home directory nor any above that: who trusts the one in which everything is unpacked
/// does not mean all of it. A record that lies in the workspace counts for nothing.
///
/// # Errors
///
/// `RecordError` when the record is there and cannot be used.
fn recorded_trust(state: &Path, workspace: &Path, home: &Path) -> Result<bool, RecordError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (workspace, home) = (real(workspace), real(home));
    // A record that a workspace brings along is its own word. The home is where the user keeps it.
    if real(state).starts_with(&workspace) && !home.starts_with(&workspace) {
        return Ok(false);
    }
    let unreadable = |cause| RecordError::Unreadable { path: state.to_owned(), cause };
    let bytes = match open_chosen(state).and_then(|it| it.read(MAX_STATE)) {
        Ok(bytes) => bytes,
        Err(ReadError::Missing) => return Ok(false),
        Err(cause) => return Err(unreadable(cause)),
    };
    let record: TrustRecord = serde_json::from_slice(&bytes)
        .map_err(|cause| RecordError::NotARecord { path: state.to_owned(), cause })?;
    let is_trusted = |path: &Path| {
        let project = path.to_str().and_then(|it| record.projects.get(it));
        project.is_some_and(|it| it.is_trusted == Some(Value::Bool(true)))
    };
    Ok(covered_by(&workspace, &home).iter().any(|it| is_trusted(it)))
}

/// The directories whose trust is that of the workspace.
fn covered_by<'a>(workspace: &'a Path, home: &Path) -> Vec<&'a Path> {
    let is_top = |it: &&Path| it.join(".git").symlink_metadata().is_ok();
    let has_repository = workspace.ancestors().any(|it| is_top(&it));
    let mut covered = Vec::new();
    for directory in workspace.ancestors() {
        let is_first = covered.is_empty();
        if !is_first && !has_repository && home.starts_with(directory) {
            break;
        }
        covered.push(directory);
        if is_top(&directory) {
            break;
        }
    }
    covered
}

/// Returns what a workspace would start if it were trusted, in harmless lines: one for each server of `.mcp.json` and
/// each hook of its settings, then one for the variables of each file. Of each kind the first ones are named and the
/// others counted, so that none hides another. What cannot be read is not in it; a session says so.
pub fn waiting_for_trust(workspace: &Path, sources: SettingSources) -> Vec<String> {
    let Ok(root) = Root::open(workspace) else { return Vec::new() };
    let mut hooks = Vec::new();
    for (name, given) in settings_of(&root, sources) {
        list_hooks(&given, name, &mut hooks);
    }
    let servers = sources.project.then(|| root.read_text(Path::new(".mcp.json")).ok()).flatten();
    let servers = servers.and_then(|it| config::read(&it, &|_| None).ok()).unwrap_or_default();
    let servers = servers.servers.iter().map(|it| format!("MCP server `{}` of .mcp.json", it.name));
    let servers = first_ones(servers.collect(), " MCP servers");
    let variables = variables_of(&root, sources, |_, _| true);
    let found = servers.into_iter().chain(first_ones(hooks, " hooks")).chain(variables);
    found.map(|it| one_line(&it)).collect()
}

/// Returns which variables of a workspace are not set where its sources are named and it is not trusted
/// ([`Trust::Headless`](crate::permission::Trust)), one line for each file: all but a few harmless ones.
pub fn unset_until_trusted(workspace: &Path, sources: SettingSources) -> Vec<String> {
    let Ok(root) = Root::open(workspace) else { return Vec::new() };
    let waits = |name: &str, value: &Value| !value.as_str().is_some_and(|it| is_harmless(name, it));
    variables_of(&root, sources, waits).iter().map(|it| one_line(it)).collect()
}

/// The settings files of a workspace that are read, as far as they are JSON.
fn settings_of(root: &Root, sources: SettingSources) -> Vec<(&'static str, Value)> {
    let files =
        [(Scope::Project, ".claude/settings.json"), (Scope::Local, ".claude/settings.local.json")];
    let read = files.into_iter().filter(|it| sources.reads(it.0));
    let given = |name| {
        let text = root.read_text(Path::new(name)).ok();
        text.and_then(|it| serde_json::from_str::<Value>(&it).ok()).unwrap_or_default()
    };
    read.map(|(_, name)| (name, given(name))).collect()
}

/// One line for the variables of each file, of those that are asked for.
fn variables_of(
    root: &Root,
    sources: SettingSources,
    is_one: impl Fn(&str, &Value) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (name, given) in settings_of(root, sources) {
        let all = given.get("env").and_then(Value::as_object).into_iter().flatten();
        let named = all.filter(|it| is_one(it.0, it.1)).map(|it| it.0.clone()).collect();
        let named = first_ones(named, "");
        if !named.is_empty() {
            found.push(format!("variables {} of {name}", named.join(", ")));
        }
    }
    found
}

/// The first ones of a list, and how many more of a kind there are.
fn first_ones(mut all: Vec<String>, kind: &str) -> Vec<String> {
    let n_more = all.len().saturating_sub(MAX_NAMED);
    all.truncate(MAX_NAMED);
    if 0 < n_more {
        all.push(format!("{n_more} more{kind}"));
    }
    all
}

fn list_hooks(given: &Value, name: &str, found: &mut Vec<String>) {
    let events = given.get("hooks").and_then(Value::as_object).into_iter().flatten();
    for (event, groups) in events {
        let groups = groups.as_array().into_iter().flatten();
        let handlers = groups.filter_map(|it| it.get("hooks")?.as_array()).flatten();
        for handler in handlers {
            let command =
                handler.get("command").and_then(Value::as_str).unwrap_or("of another type");
            let command: String = command.chars().take(MAX_SHOWN).collect();
            found.push(format!("{event} hook `{command}` of {name}"));
        }
    }
}

#[cfg(test)]
mod tests;
