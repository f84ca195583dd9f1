//! Before a session is opened: which servers it has, and what tools these give it.
//!
//! The tools of a session are fixed when it is opened and are in its record, so this is the only
//! time at which servers are looked for. A server that cannot be had is told, and the session is
//! opened without it.

use std::{collections::BTreeSet, io, path::Path, sync::Arc, time::Duration};

use ennead_runtime::{
    mcp::{
        config::{self, ServerConfig, strongest},
        policy::Policy,
        spec::{CallLimits, Listed, NotOffered, offered},
    },
    output::terminal::clean_line,
    ports::Tool,
    sandbox::{Sandbox, SandboxPlaces, SandboxPolicy},
    step1_settings_resolution::{LayerText, SecretEnv, layer::unreadable, merge, trust::Trust},
    turn::input::SettingsRead,
};
use ennead_tools::{
    mcp::{Launch, McpTool},
    source_file::Root,
};
use futures::{StreamExt, stream};
use ractor::ActorRef;

use super::server::{McpServers, Server};
use crate::{
    options::{
        Endpoint, Environment, McpLimits, Options, SessionOptions, credentials::secret_variables,
    },
    shard::ShardMsg,
    world::local_files::SessionDirs,
};

/// Servers that are started at once for a session: more than anybody has, and a bound on what a
/// file can start in one go.
const AT_ONCE: usize = 32;

/// Where a project names its servers.
const FILE: &str = ".mcp.json";

/// Where an organisation names the only servers that may be used.
const MANAGED: &str = "managed-mcp.json";

/// Characters of what is told about one server.
const MAX_TOLD: usize = 1000;

/// Whether a session could have servers.
pub(crate) fn wants(options: &SessionOptions) -> bool {
    !options.mcp_servers.is_empty() || options.reads_mcp_json
}

/// Gives the session the tools of its servers. Returns what its listeners are to be told.
pub(crate) async fn join(
    options: &mut SessionOptions,
    layers: Vec<LayerText>,
    place: &SessionDirs,
    common: &Options,
    servers: &McpServers,
    shard: ActorRef<ShardMsg>,
) -> Vec<Arc<str>> {
    let told = found(options, layers, place, common, servers, shard).await;
    told.into_iter().map(|it| one_line(&it).into()).collect()
}

async fn found(
    options: &mut SessionOptions,
    layers: Vec<LayerText>,
    place: &SessionDirs,
    common: &Options,
    servers: &McpServers,
    shard: ActorRef<ShardMsg>,
) -> Vec<Arc<str>> {
    let mut told = Vec::new();
    let file = match options.reads_mcp_json {
        true => of_project(place, &mut told),
        false => None,
    };
    if options.mcp_servers.is_empty() && file.is_none() {
        return told;
    }
    if let Some(why) = only_managed(place) {
        told.push(why.into());
        return told;
    }
    let layers = match with_files(options, layers, place, common).await {
        Ok(layers) => layers,
        Err(error) => {
            // Without the rules about servers none may start.
            told.push(
                format!("no MCP server is started: cannot read the settings: {error}").into(),
            );
            return told;
        }
    };
    if let Some(why) = closed_by(&layers) {
        told.push(format!("no MCP server is started: {why}").into());
        return told;
    }
    let policy = Policy::of(&layers, place.trust, &|name| common.environment.variable(name));
    let endpoints: Vec<Endpoint> =
        [&options.endpoint].into_iter().chain(&options.fallbacks).cloned().collect();
    let secrets = Secrets::of(&layers, &endpoints);
    let mut project = file
        .map(|it| configured(&it, &secrets, &common.environment, &mut told))
        .unwrap_or_default();
    // An entry wins as a whole, also one that may not start.
    project.retain(|it| options.mcp_servers.iter().all(|own| own.name != it.name));
    let mut allowed = |server: &ServerConfig, of_project: bool| {
        let blocked = policy.blocks(server, of_project);
        told.extend(blocked.iter().map(|it| it.to_string().into()));
        blocked.is_none()
    };
    let mut own = options.mcp_servers.clone();
    own.retain(|it| allowed(it, false));
    project.retain(|it| allowed(it, true));
    let workspace = place.workspace.clone();
    // What a repository starts is confined like its commands.
    let confine = confinement(&layers, place, options).map(Arc::new);
    // Those of the project come last: of two tools whose names become the same, the first stays.
    // Nobody named those of the project for this session, so the first prompt waits less for them.
    let McpLimits { start, wait, calls, .. } = common.mcp_limits();
    let started: Vec<(Arc<Server>, Option<Duration>)> =
        [(own, None), (project, Some(wait.min(start)))]
            .into_iter()
            .flat_map(|(scope, wait)| strongest([scope]).into_iter().map(move |it| (it, wait)))
            .map(|(config, wait)| {
                let withheld = secrets.withheld_from(&config.name);
                let confine = confine.as_ref().filter(|_| wait.is_some()).map(Arc::clone);
                let launch = Launch { config, workspace: workspace.clone(), withheld, confine };
                (servers.of(launch, start, &shard), wait)
            })
            .collect();
    let asked = stream::iter(started.iter().cloned().map(tools_of));
    let tools: Vec<super::Tools> = asked.buffered(AT_ONCE).collect().await;
    let started = started.into_iter().map(|(server, _)| server);
    for (server, tools) in started.zip(tools) {
        match tools {
            Ok(listed) => {
                // Schemas are compiled, and a server may list a thousand.
                let of_server = Arc::clone(&server);
                let made = move || tools_made(&of_server, &listed, calls);
                let Ok((tools, left_out)) = tokio::task::spawn_blocking(made).await else {
                    let name = server.name();
                    told.push(format!("MCP server `{name}` failed: its tools crashed").into());
                    continue;
                };
                told.extend(left_out.iter().map(|it| it.to_string().into()));
                told.extend(tools.into_iter().filter_map(|it| add(options, &server, it)));
            }
            Err(why) => told.push(format!("MCP server `{}` failed: {why}", server.name()).into()),
        }
    }
    told
}

/// What confines the servers of a project, if the settings ask for that.
fn confinement(
    layers: &[LayerText],
    place: &SessionDirs,
    options: &SessionOptions,
) -> Option<SandboxPolicy> {
    let settings = merge(layers).settings;
    let transcripts = options.transcripts.clone().unwrap_or_else(|| place.config.join("projects"));
    let places = SandboxPlaces {
        workspace: &place.workspace.to_string_lossy(),
        home: &place.home.to_string_lossy(),
        transcripts: Some(&transcripts.to_string_lossy()),
    };
    let additional = &settings.permissions.additional_directories;
    Sandbox::of(&settings.sandbox, additional, places).map(|it| it.policy)
}

/// The tools of a server, or why there are none; after this time, if there is one, that it is not
/// ready yet. It goes on starting then.
async fn tools_of((server, wait): (Arc<Server>, Option<Duration>)) -> super::Tools {
    let tools = server.tools();
    let Some(wait) = wait else { return tools.await };
    match tokio::time::timeout(wait, tools).await {
        Ok(tools) => tools,
        Err(_) => Err(format!(
            "it is not ready after {} ms (ENNEAD_MCP_WAIT); it goes on starting, and sessions that \
             are opened later have its tools",
            wait.as_millis()
        )
        .into()),
    }
}

/// A tool by its name there.
type Made = (String, McpTool);

/// The tools of a server, and why others are none of a session. Takes as long as their schemas are.
fn tools_made(
    server: &Arc<Server>,
    listed: &[Listed],
    limits: CallLimits,
) -> (Vec<Made>, Vec<NotOffered>) {
    let (tools, mut left_out) = offered(server.config(), listed, limits);
    let mut made = Vec::with_capacity(tools.len());
    for (remote, spec) in tools {
        let way = Arc::clone(server) as Arc<dyn ennead_tools::mcp::Server>;
        match McpTool::new(spec, &remote, way) {
            Ok(tool) => made.push((remote, tool)),
            Err(_) => {
                let server = server.config().name.clone();
                left_out.push(NotOffered::Schema { server, tool: remote });
            }
        }
    }
    (made, left_out)
}

/// Adds one tool; says why, if it is not added.
fn add(options: &mut SessionOptions, server: &Arc<Server>, (tool, made): Made) -> Option<Arc<str>> {
    if options.tools.iter().any(|it| it.spec().name == made.spec().name) {
        let server = server.config().name.clone();
        return Some(NotOffered::NameTaken { server, tool }.to_string().into());
    }
    options.tools.push(Arc::new(made) as Arc<dyn Tool>);
    None
}

/// A layer that cannot be read, and may have forbidden servers.
fn closed_by(layers: &[LayerText]) -> Option<String> {
    layers.iter().find_map(|it| Some(format!("{}: {}", it.source, unreadable(&it.text)?)))
}

/// Why no server may be started that the organisation does not name itself.
fn only_managed(place: &SessionDirs) -> Option<String> {
    let path = place.managed.as_ref()?.join(MANAGED);
    // A file that cannot be looked at may be there.
    path.try_exists().unwrap_or(true).then(|| {
        format!(
            "no MCP server is started: {} has the only ones that may be used, and is not supported yet",
            path.display()
        )
    })
}

/// What a server or a repository says is shown on terminals: on one line, without what would control these, and cut.
pub(crate) fn one_line(text: &str) -> String {
    let text = clean_line(text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_TOLD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The project's own file, if it is there and trusted.
fn of_project(place: &SessionDirs, told: &mut Vec<Arc<str>>) -> Option<String> {
    if !place.sources.project {
        return None;
    }
    let text = Root::open(&place.workspace).and_then(|it| it.read_text(Path::new(FILE)));
    match text {
        Ok(_) if place.trust == Trust::Untrusted => {
            told.push(format!("{FILE} is not used: the workspace is not trusted").into());
            None
        }
        Ok(text) => Some(text),
        Err(error) if error.is_missing() => None,
        Err(why) => {
            told.push(format!("{FILE} is not used: {why}").into());
            None
        }
    }
}

/// What the project's own file names. A secret has no value in it, unless the user named the server
/// that gets it.
fn configured(
    text: &str,
    secrets: &Secrets,
    environment: &Environment,
    told: &mut Vec<Arc<str>>,
) -> Vec<ServerConfig> {
    let variable = |server: &str, name: &str| {
        secrets.is_for(server, name).then(|| environment.variable(name)).flatten()
    };
    match config::read_for(text, &variable) {
        Ok(configured) => {
            told.extend(configured.problems.iter().map(|it| format!("{FILE}: {it}").into()));
            configured.servers
        }
        Err(why) => {
            told.push(format!("{FILE} is not used: {why}").into());
            Vec::new()
        }
    }
}

/// These layers, and those of the settings files.
async fn with_files(
    options: &SessionOptions,
    mut layers: Vec<LayerText>,
    place: &SessionDirs,
    common: &Options,
) -> io::Result<Vec<LayerText>> {
    if options.reads_settings
        && let (SettingsRead::Layers(read), _) = common.files.settings(place, None).await?
    {
        layers.extend(read);
    }
    Ok(layers)
}

/// Variables that servers do not get.
struct Secrets {
    said: SecretEnv,
    /// Those that hold a credential of a model server, whatever their names are.
    held: BTreeSet<String>,
}

impl Secrets {
    fn of(layers: &[LayerText], endpoints: &[Endpoint]) -> Self {
        let held = secret_variables(endpoints).iter().map(|(name, _)| name.clone()).collect();
        Self { said: merge(layers).settings.secrets, held }
    }

    fn is_for(&self, server: &str, name: &str) -> bool {
        let is_named = self.said.by_server.get(server).is_some_and(|it| it.contains(name));
        is_named || (self.said.is_for(server, name) && !self.held.contains(name))
    }

    fn withheld_from(&self, server: &str) -> Vec<String> {
        let all = self.said.all().chain(self.held.iter().map(String::as_str));
        let withheld: BTreeSet<&str> = all.filter(|it| !self.is_for(server, it)).collect();
        withheld.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_harmless_line() {
        assert_eq!(one_line("a\n\u{1b}[31mb\r\u{7}\u{202e}c  d "), "a b c d");
        let long = "ä".repeat(MAX_TOLD);
        assert_eq!(one_line(&long), long);
        assert_eq!(one_line(&format!("{long}x")), format!("{long}…"));
    }

    #[test]
    fn managed_file_leaves_no_other_servers() {
        let directory = tempfile::tempdir().unwrap();
        let place = SessionDirs {
            workspace: directory.path().into(),
            worktree: None,
            home: directory.path().into(),
            config: directory.path().into(),
            managed: Some(directory.path().into()),
            trust: Trust::Headless,
            sources: Default::default(),
            hidden: Arc::default(),
        };
        assert_eq!(only_managed(&place), None);
        std::fs::write(directory.path().join(MANAGED), "{}").unwrap();
        assert!(only_managed(&place).is_some_and(|it| it.contains(MANAGED)));
    }
}
