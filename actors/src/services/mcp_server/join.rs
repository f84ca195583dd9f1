//! Before a session is opened: which servers it has, and what tools these give it.
//!
//! This is the only time at which servers are looked for. One that cannot be had is reported, and the
//! session is opened without it; so it is without one that is slow, whose tools join later.

use std::{collections::BTreeSet, io, path::Path, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::ToolName,
    mcp::{
        config::{self, ServerConfig, ServerTransport, strongest},
        policy::Policy,
    },
    output::terminal::clean_line,
    sandbox::{Sandbox, SandboxPlaces, SandboxPolicy},
    step1_settings_resolution::{LayerText, layer::unreadable, merge, trust::Trust},
    turn::input::SettingsRead,
};
use ennead_tools::{mcp::ServerLaunch, source_file::Root};
use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    SessionServers,
    server::{McpServers, ServerHome},
    starting::{Answered, AskedServer, Joining, KeptNames, StartingServers},
    withheld_variables::WithheldVariables,
};
use crate::{
    options::{Endpoint, McpLimits, Options, SessionOptions},
    world::{environment::Environment, source_files::SessionDirs},
};

/// Servers that are started at once for a session: more than anybody has, and a bound on what a
/// file can start in one go.
pub(super) const AT_ONCE: usize = 32;

/// Where a project names its servers.
const FILE: &str = ".mcp.json";

/// What names the servers of a plug-in, in words.
const PLUGIN: &str = "the configuration of a plug-in";

/// Where an organisation names the only servers that may be used.
const MANAGED: &str = "managed-mcp.json";

/// Characters of a notice about one server.
const MAX_ERROR_CHARS: usize = 1000;

/// Returns whether a session could have servers.
pub(crate) fn wants(options: &SessionOptions) -> bool {
    names_servers(options) || options.reads_mcp_json
}

/// Whether the caller names servers, itself or by a plug-in.
fn names_servers(options: &SessionOptions) -> bool {
    !options.mcp_servers.is_empty() || !options.plugin_servers.is_empty()
}

/// What a session is opened with, in addition to tools.
#[derive(Debug, Default)]
pub(crate) struct ServersOfSession {
    /// Notices for its listeners.
    pub(crate) notices: Vec<Arc<str>>,
    /// Its servers.
    pub(crate) servers: SessionServers,
    /// Servers that have not answered yet.
    pub(crate) starting: Option<Box<StartingServers>>,
}

/// Adds the tools of the servers that answer in time to the session.
pub(crate) async fn join(
    options: &mut SessionOptions,
    layers: Vec<LayerText>,
    dirs: &SessionDirs,
    common: &Options,
    servers: &McpServers,
    home: Arc<dyn ServerHome>,
) -> ServersOfSession {
    let mut joined = ServersOfSession::default();
    let notes = join_servers(options, layers, dirs, common, servers, home, &mut joined).await;
    joined.notices = notes.into_iter().map(|it| one_line(&it).into()).collect();
    joined
}

async fn join_servers(
    options: &mut SessionOptions,
    layers: Vec<LayerText>,
    dirs: &SessionDirs,
    common: &Options,
    servers: &McpServers,
    home: Arc<dyn ServerHome>,
    joined: &mut ServersOfSession,
) -> Vec<Arc<str>> {
    let mut notes = Vec::new();
    let file = if options.reads_mcp_json { of_project(dirs, &mut notes) } else { None };
    if !names_servers(options) && file.is_none() {
        return notes;
    }
    if let Some(why) = only_managed(dirs) {
        notes.push(why.into());
        return notes;
    }
    let layers = match with_files(options, layers, dirs, common).await {
        Ok(layers) => layers,
        Err(error) => {
            // Without the rules about servers none may start.
            notes.push(
                format!("no MCP server is started: cannot read the settings: {error}").into(),
            );
            return notes;
        }
    };
    if let Some(why) = closed_by(&layers) {
        notes.push(format!("no MCP server is started: {why}").into());
        return notes;
    }
    let policy = Policy::of(&layers, dirs.trust, &|name| common.environment.variable(name));
    let endpoints: Vec<Endpoint> =
        [&options.endpoint].into_iter().chain(&options.fallbacks).cloned().collect();
    let secrets = WithheldVariables::of(&layers, &endpoints);
    let mut project = file
        .map(|it| configured(FILE, &it, &secrets, &common.environment, &mut notes))
        .unwrap_or_default();
    let mut own = named_by_caller(options, &secrets, &common.environment, &mut notes);
    // An entry wins as a whole, also one that may not start.
    project.retain(|it| own.iter().all(|own| own.name != it.name));
    let mut allowed = |server: &ServerConfig, of_project: bool| {
        let blocked = policy.blocks(server, of_project);
        notes.extend(blocked.iter().map(|it| it.to_string().into()));
        blocked.is_none()
    };
    own.retain(|it| allowed(it, false));
    project.retain(|it| allowed(it, true));
    let workspace = dirs.workspace.clone();
    // What a repository starts is confined like its commands.
    let confine = confinement(&layers, dirs, options);
    let temporary = dirs.temporary.to_string_lossy();
    // Those of the project come last: of two tools whose names become the same, the first stays.
    let McpLimits { start, wait, calls, .. } = common.mcp_limits();
    let asked: Vec<AskedServer> = [(own, true), (project, false)]
        .into_iter()
        .flat_map(|(scope, is_own)| strongest([scope]).into_iter().map(move |it| (it, is_own)))
        .map(|(config, is_own)| {
            let withheld = secrets.withheld_from(&config.name);
            let confine = confine.as_ref().filter(|_| !is_own).map(|it| {
                let own = match &config.reach {
                    ServerTransport::Stdio(program) => program.env.get("TMPDIR"),
                    _ => None,
                };
                Arc::new(it.clone().with_temporary(own.map(String::as_str), &temporary))
            });
            let launch = ServerLaunch { config, workspace: workspace.clone(), withheld, confine };
            let server = servers.of(launch, start, &common.environment, &home);
            AskedServer::new(server, is_own, calls)
        })
        .collect();
    let kept_names = KeptNames::of(&asked);
    asked.iter().for_each(|it| joined.servers.add(it.name(), it.again(&kept_names)));
    // A wait without an end is none that a clock can say.
    let deadline = Instant::now().checked_add(wait);
    let asked = stream::iter(asked.into_iter().map(|it| it.until(deadline)));
    let asked: Vec<Result<Answered, AskedServer>> = asked.buffered(AT_ONCE).collect().await;
    let (mut answers, mut starting) = (Vec::new(), Vec::new());
    for asked in asked {
        match asked {
            Ok(answered) => answers.push(answered),
            Err(asked) => {
                notes.push(not_ready(&asked.name(), wait));
                starting.push(asked);
            }
        }
    }
    let mut names: BTreeSet<ToolName> =
        options.tools.iter().map(|it| it.spec().name.clone()).collect();
    for answered in answers {
        let server = answered.server();
        let Joining { tools, notes: problems, error } =
            answered.without(&kept_names).joining(&mut names);
        joined.servers.became(&server, error, &tools);
        options.tools.extend(tools);
        notes.extend(problems);
    }
    joined.starting =
        (!starting.is_empty()).then(|| Box::new(StartingServers { asked: starting, kept_names }));
    notes
}

/// What confines the servers of a project, if the settings ask for that.
fn confinement(
    layers: &[LayerText],
    dirs: &SessionDirs,
    options: &SessionOptions,
) -> Option<SandboxPolicy> {
    let settings = merge(layers).settings;
    let transcripts = options.transcripts.clone().unwrap_or_else(|| dirs.config.join("projects"));
    let places = SandboxPlaces {
        workspace: &dirs.workspace.to_string_lossy(),
        home: &dirs.home.to_string_lossy(),
        transcripts: Some(&transcripts.to_string_lossy()),
    };
    let additional = &settings.permissions.additional_directories;
    Sandbox::of(&settings.sandbox, additional, places).map(|it| it.policy)
}

fn not_ready(server: &str, wait: Duration) -> Arc<str> {
    let ms = wait.as_millis();
    format!(
        "MCP server `{server}` is not ready after {ms} ms (ENNEAD_MCP_WAIT); it goes on starting, and \
         its tools join with the next turn then"
    )
    .into()
}

/// A layer that cannot be read, and may have forbidden servers.
fn closed_by(layers: &[LayerText]) -> Option<String> {
    layers.iter().find_map(|it| Some(format!("{}: {}", it.source, unreadable(&it.text)?)))
}

/// Why no server may be started that the organisation does not name itself.
fn only_managed(dirs: &SessionDirs) -> Option<String> {
    let path = dirs.managed.as_ref()?.join(MANAGED);
    // A file that cannot be looked at may be there.
    path.try_exists().unwrap_or(true).then(|| {
        format!(
            "no MCP server is started: {} has the only ones that may be used, and is not supported yet",
            path.display()
        )
    })
}

/// Puts a text of a server or a repository on one line for terminals: without what would control these, and cut.
pub(crate) fn one_line(text: &str) -> String {
    let text = clean_line(text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The project's own file, if it is there and trusted.
fn of_project(dirs: &SessionDirs, notes: &mut Vec<Arc<str>>) -> Option<String> {
    if !dirs.sources.project {
        return None;
    }
    let text = Root::open(&dirs.workspace).and_then(|it| it.read_text(Path::new(FILE)));
    match text {
        Ok(_) if dirs.trust == Trust::Untrusted => {
            notes.push(format!("{FILE} is not used: the workspace is not trusted").into());
            None
        }
        Ok(text) => Some(text),
        Err(error) if error.is_missing() => None,
        Err(why) => {
            notes.push(format!("{FILE} is not used: {why}").into());
            None
        }
    }
}

/// What the caller names, itself and by plug-ins.
fn named_by_caller(
    options: &SessionOptions,
    secrets: &WithheldVariables,
    environment: &Environment,
    notes: &mut Vec<Arc<str>>,
) -> Vec<ServerConfig> {
    let mut named = options.mcp_servers.clone();
    for text in &options.plugin_servers {
        named.extend(configured(PLUGIN, text, secrets, environment, notes));
    }
    named
}

/// What a file names that is not the user's own. A secret has no value in it, unless the user named the server
/// that gets it.
fn configured(
    source: &str,
    text: &str,
    secrets: &WithheldVariables,
    environment: &Environment,
    notes: &mut Vec<Arc<str>>,
) -> Vec<ServerConfig> {
    let variable = |server: &str, name: &str| {
        secrets.is_for(server, name).then(|| environment.variable(name)).flatten()
    };
    match config::read_for(text, &variable) {
        Ok(configured) => {
            notes.extend(configured.problems.iter().map(|it| format!("{source}: {it}").into()));
            configured.servers
        }
        Err(why) => {
            notes.push(format!("{source} is not used: {why}").into());
            Vec::new()
        }
    }
}

/// These layers, and those of the settings files.
async fn with_files(
    options: &SessionOptions,
    mut layers: Vec<LayerText>,
    dirs: &SessionDirs,
    common: &Options,
) -> io::Result<Vec<LayerText>> {
    if options.reads_settings
        && let (SettingsRead::Layers(read), _) = common.lookup.settings(dirs, None).await?
    {
        layers.extend(read);
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_harmless_line() {
        assert_eq!(one_line("a\n\u{1b}[31mb\r\u{7}\u{202e}c  d "), "a b c d");
        let long = "ä".repeat(MAX_ERROR_CHARS);
        assert_eq!(one_line(&long), long);
        assert_eq!(one_line(&format!("{long}x")), format!("{long}…"));
    }

    #[test]
    fn managed_file_leaves_no_other_servers() {
        let directory = tempfile::tempdir().unwrap();
        let dirs = SessionDirs {
            workspace: directory.path().into(),
            worktree: None,
            home: directory.path().into(),
            config: directory.path().into(),
            temporary: directory.path().into(),
            managed: Some(directory.path().into()),
            trust: Trust::Headless,
            sources: Default::default(),
            hidden: Arc::default(),
            excludes: Arc::default(),
        };
        assert_eq!(only_managed(&dirs), None);
        std::fs::write(directory.path().join(MANAGED), "{}").unwrap();
        assert!(only_managed(&dirs).is_some_and(|it| it.contains(MANAGED)));
    }
}
