//! Agents, skills and commands that files define, and what plug-ins bring.

use std::path::PathBuf;

use ennead::{
    SessionOptions,
    internal::{Plugin, agent_files, plugin_files, skill_files, with_plugin_servers},
};
use ennead_command::{
    exit::{Exit, Failure},
    stream_json::{agents, skills::Skills},
};
use serde_json::{Value, json};

use super::configuration;
use crate::args::Protocol;

/// The plug-ins of `--plugin-dir`.
#[derive(Debug, Default)]
pub(super) struct Plugins {
    pub(super) found: Vec<Plugin>,
    /// Directories that hold none, and why.
    refused: Vec<(PathBuf, String)>,
}

impl Plugins {
    /// Reads them; and what of them cannot be used, in words. Of one name the first holds.
    pub(super) fn read(directories: &[PathBuf]) -> (Self, Vec<String>) {
        let (mut all, mut problems) = (Self::default(), Vec::new());
        for directory in directories {
            let refusal = match plugin_files(directory) {
                Ok((plugin, _)) if all.found.iter().any(|it| it.name == plugin.name) => {
                    format!("another one is called `{}`", plugin.name)
                }
                Ok((plugin, unusable)) => {
                    all.found.push(plugin);
                    problems.extend(unusable);
                    continue;
                }
                Err(why) => why,
            };
            problems.push(format!("the plug-in {} is not used: {refusal}", directory.display()));
            all.refused.push((directory.clone(), refusal));
        }
        (all, problems)
    }

    pub(super) fn described(&self) -> Vec<Value> {
        let described = |it: &Plugin| {
            let mut plugin = json!({"name": it.name, "path": it.path});
            if let Some(version) = &it.version {
                plugin["version"] = version.as_str().into();
            }
            plugin
        };
        self.found.iter().map(described).collect()
    }

    pub(super) fn errors(&self) -> Vec<Value> {
        let error = |(path, why): &(PathBuf, String)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            json!({"plugin": name, "type": "load", "message": why, "path": path})
        };
        self.refused.iter().map(error).collect()
    }
}

/// Adds the hooks and the MCP servers of plug-ins.
pub(super) fn with_plugins(
    mut options: SessionOptions,
    plugins: &Plugins,
    takes_servers: bool,
) -> Result<SessionOptions, Failure> {
    for plugin in &plugins.found {
        if !plugin.hooks.is_empty() {
            // Lists of handlers are put behind those that are there.
            let settings = json!({ "hooks": plugin.hooks });
            options = options
                .settings_json(settings)
                .map_err(|error| Failure::of(Exit::BadInput, &error))?;
        }
        if takes_servers && !plugin.servers.is_empty() {
            let servers = json!({ "mcpServers": plugin.servers });
            options = with_plugin_servers(options, &servers.to_string());
        }
    }
    Ok(options)
}

/// Adds the types of sub-agents of the command line and of files; and what cannot be used, in words.
pub(super) fn with_agents(
    mut options: SessionOptions,
    protocol: &Protocol,
    plugins: &Plugins,
) -> Result<(SessionOptions, Vec<String>), Failure> {
    let (sources, trust) = (options.setting_sources, options.trust);
    let (found, mut problems) = agent_files(&options.workspace, &configuration(), sources, trust);
    let brought = plugins.found.iter().flat_map(|it| it.agents.iter().cloned());
    options = found.into_iter().chain(brought).fold(options, SessionOptions::agent_type);
    if let Some(text) = &protocol.agents {
        let definitions = serde_json::from_str(text).map_err(|error| {
            Failure::new(Exit::BadInput, format!("--agents is not JSON: {error}"))
        })?;
        let (given, bad) = agents::read(&definitions);
        problems.extend(bad);
        options = given.into_iter().fold(options, SessionOptions::agent_type);
    }
    Ok((options, problems))
}

/// Reads the skills and commands of files; and what cannot be used, in words.
pub(super) fn skills_of(
    options: &SessionOptions,
    protocol: &Protocol,
    plugins: &Plugins,
) -> (Skills, Vec<String>) {
    if protocol.disable_slash_commands {
        return (Skills::default(), Vec::new());
    }
    let (sources, trust) = (options.setting_sources, options.trust);
    let (mut all, problems) = skill_files(&options.workspace, &configuration(), sources, trust);
    all.extend(plugins.found.iter().flat_map(|it| it.skills.iter().cloned()));
    let has_tool = match protocol.tools.as_deref() {
        None | Some("default") => true,
        Some(list) => list.split(',').any(|it| it.trim() == "Skill"),
    };
    (Skills { all, has_tool, ..Skills::default() }, problems)
}
