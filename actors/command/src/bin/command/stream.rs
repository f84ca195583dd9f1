//! `--output-format stream-json`: the command as an Agent SDK drives it.

mod files;
mod flags;
mod link;

use std::{
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    time::Duration,
};

use ennead::{
    Clock, Ennead, SessionId, SessionOptions, SystemClock, internal::Layout, tool::ServerConfig,
};
use ennead_command::{
    exit::{Exit, Failure},
    stream_json::{
        checkpoints::{Checkpoints, directory_of},
        face::{self, FaceOptions, Setup},
        frames::Frame,
        mirror::Mirror,
        results::{RunNotes, SessionFacts, of_error},
        translate::EventFilter,
    },
};
use ennead_runtime::{
    entropy::EntropyStream, mcp::names::prefix, permission::PermissionMode,
    run::agent_types::built_in, step1_settings_resolution::Settings as RuntimeSettings,
};
use ennead_tools::withdrawn_keys;
use serde_json::Value;

use self::{
    files::{Plugins, skills_of, with_agents, with_plugins},
    flags::with_protocol,
    link::{LinkedRuntime, OpenLink},
};
pub(crate) use self::{
    flags::{with_headers, with_schema, without_lines},
    link::{HostedClient, HostedRuntime, ProgramLink},
};
use crate::{
    args::{InputFormat, OnDisconnect, OutputFormat, Print, Protocol},
    chosen::{Roots, choose_session},
    endpoint, program, rules, show, trusted,
};

/// Switches file checkpoints on.
const CHECKPOINTS: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// Returns whether a program is to read what happens.
pub(crate) fn is_asked_for(args: &Print) -> bool {
    args.protocol.input_format == InputFormat::StreamJson
        || args.output_format == OutputFormat::StreamJson
}

/// Serves the program that drives this process.
pub(crate) async fn run(args: Print) -> Result<Exit, Failure> {
    serve(args, ProgramLink::Process).await
}

/// Serves a program until it has closed its end and all that it asked for is done.
pub(crate) async fn serve(mut args: Print, link: ProgramLink) -> Result<Exit, Failure> {
    if args.output_format != OutputFormat::StreamJson {
        let what = "--input-format stream-json needs --output-format stream-json";
        return Err(Failure::new(Exit::BadInput, what));
    }
    // As programs know it: without the flag one that expects a text would get lines.
    if args.protocol.input_format == InputFormat::Text && !args.protocol.verbose {
        let what = "-p with --output-format stream-json needs --verbose";
        return Err(Failure::new(Exit::BadInput, what));
    }
    let host_servers = take_host_servers(&mut args.mcp_config);
    let protocol = &args.protocol;
    let mut options = with_protocol(link.session_options(&args)?, protocol)?;
    let permission_tool = permission_tool(protocol, &host_servers, &options.mcp_servers)?;
    if let Some(name) = &permission_tool {
        // The model does not answer for itself.
        options = options.deny(name).map_err(|error| Failure::of(Exit::BadInput, &error))?;
    }
    // Programs mean the whole of the system prompt when they replace it, by an empty one too.
    options.bare_system_prompt = true;
    let (options, structured) = with_schema(options, protocol)?;
    let (plugins, mut problems) = Plugins::read(&protocol.plugin_dir);
    let options = with_plugins(options, &plugins, !args.strict_mcp_config)?;
    let (options, unusable) = with_agents(options, protocol, &plugins)?;
    problems.extend(unusable);
    let (skills, unusable) = skills_of(&options, protocol, &plugins);
    problems.extend(unusable);
    let prompt = prompt_of(&args)?;
    let server = endpoint::of(&options).await?;
    link.check_model(server.why_simulated.is_some())?;
    if let Some(why) = &server.why_simulated {
        show::problem(why);
    }
    let mut options = options.endpoint(with_headers(server.endpoint)).fallbacks(server.fallbacks);
    let ids = EntropyStream::from_seed(RandomState::new().hash_one(std::process::id()));
    // A host has one log, for all of its sessions.
    let without_effect = if link.is_process() { Vec::new() } else { protocol.log.flags() };
    let OpenLink { pid, output, unread, rest } = link.open();
    let roots = Roots::of_sdk(&options);
    let chosen = choose_session(&mut options, &args, &ids, &roots);
    let id = match chosen {
        Ok(id) => id,
        Err(why) => {
            // Programs take the reason from a result.
            let mut frame = Frame::new(SessionId::new(ids.uuid(now(), "session", 0)), ids);
            output.write(of_error(&mut frame, &why, &RunNotes::default()));
            drop(output);
            let _all = unread.await;
            return Err(Failure::new(Exit::RunFailed, why));
        }
    };
    let transcript = transcript_of(&options, &id);
    let checkpoints = transcript.as_deref().filter(|_| program::is_set(CHECKPOINTS));
    let checkpoints = checkpoints.map(|it| Checkpoints::new(directory_of(it)));
    if let Some(kept) = &checkpoints {
        options.tools = kept.watching(options.tools);
    }
    let mirror = transcript.filter(|_| protocol.session_mirror);
    // A copy is new as a whole.
    let mirror = mirror.map(|it| Mirror::new(output.clone(), &it, protocol.fork_session));
    let warnings = without_effect.iter().map(|flag| format!("{flag} has no effect in a host"));
    let warnings = warnings.chain(trusted::waiting(&options)).chain(problems).collect();
    let LinkedRuntime { input, mut signals, ennead } =
        rest.begin(server.options, protocol.input_format).await?;
    let mut facts = facts_of(&options, &args.disallowed_tools);
    (facts.plugins, facts.plugin_errors) = (plugins.described(), plugins.errors());
    facts.denied.extend(permission_tool.clone());
    learn_of_files(&mut facts, &ennead, &options).await;
    let setup = Setup {
        pid,
        ennead,
        facts,
        session: options,
        frame: Frame::new(id, ids),
        options: face_options(protocol),
        host_servers,
        permission_tool,
        warnings,
        is_simulated: server.why_simulated.is_some(),
        skills,
        structured,
        input,
        prompt,
        output,
        mirror,
        checkpoints,
        unread,
    };
    Ok(face::run(setup, &mut signals).await)
}

/// Takes the servers that run in the program out of configurations that are JSON; their names. What cannot be
/// read stays, and is reported as elsewhere.
fn take_host_servers(configurations: &mut [String]) -> Vec<String> {
    let mut names = Vec::new();
    for text in configurations {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else { continue };
        let Some(servers) = value.get_mut("mcpServers").and_then(Value::as_object_mut) else {
            continue;
        };
        let before = names.len();
        servers.retain(|name, entry| {
            let is_there = entry["type"] == "sdk";
            names.extend(is_there.then(|| name.clone()));
            !is_there
        });
        if before < names.len() {
            *text = value.to_string();
        }
    }
    names
}

/// The tool that answers questions about calls; `None` where the program answers them itself. A repository names no
/// server for that: it could answer for itself.
pub(crate) fn permission_tool(
    protocol: &Protocol,
    of_program: &[String],
    configured: &[ServerConfig],
) -> Result<Option<String>, Failure> {
    let name = protocol.permission_prompt_tool.as_deref().filter(|it| *it != "stdio");
    let Some(name) = name else { return Ok(None) };
    let is_of = |server: &str| name.strip_prefix(&prefix(server)).is_some_and(|it| !it.is_empty());
    let configured = configured.iter().map(|it| &*it.name);
    if of_program.iter().map(String::as_str).chain(configured).any(is_of) {
        return Ok(Some(name.to_owned()));
    }
    let what = format!(
        "--permission-prompt-tool: `{name}` is neither `stdio` nor a tool of an MCP server in the program or of \
         --mcp-config"
    );
    Err(Failure::new(Exit::BadInput, what))
}

pub(crate) fn now() -> ennead_runtime::time::Timestamp {
    SystemClock::default().now()
}

/// The prompt of the command line; with JSON lines on standard input there is none.
fn prompt_of(args: &Print) -> Result<Option<String>, Failure> {
    let given = args.print.clone().flatten().or_else(|| args.prompt.clone());
    match (args.protocol.input_format, given) {
        (InputFormat::StreamJson, Some(_)) => {
            let what = "with --input-format stream-json prompts come on standard input";
            Err(Failure::new(Exit::BadInput, what))
        }
        (InputFormat::StreamJson, None) => Ok(None),
        (InputFormat::Text, Some(prompt)) => Ok(Some(prompt)),
        (InputFormat::Text, None) => Err(Failure::new(Exit::BadInput, "there is no prompt")),
    }
}

/// Where the transcript of the session lies.
fn transcript_of(options: &SessionOptions, id: &SessionId) -> Option<PathBuf> {
    let layout = Layout::new(options.transcripts.as_deref()?);
    layout.session(id).ok().map(|it| it.file)
}

/// Milliseconds for which agents in the background are waited for at the end, where no variable says so.
const WAIT_CEILING_MS: u64 = 600_000;

fn face_options(protocol: &Protocol) -> FaceOptions {
    let tells_state = match () {
        () if program::is_set("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") => Some(false),
        () if program::is_set("CLAUDE_CODE_SDK_READS_SESSION_STATE") => Some(true),
        () => None,
    };
    FaceOptions {
        partial: protocol.include_partial_messages,
        shown: EventFilter {
            prompts: protocol.replay_user_messages,
            agent_text: protocol.forward_subagent_text,
            hooks: protocol.include_hook_events,
        },
        asks_program: protocol.permission_prompt_tool.as_deref() == Some("stdio"),
        tells_state,
        wait_ceiling: wait_ceiling(),
        finishes_unread: protocol.on_disconnect == OnDisconnect::Finish,
    }
}

/// How long agents in the background are waited for at the end; `None`: as long as they take.
pub(crate) fn wait_ceiling() -> Option<Duration> {
    let ms = program::variable("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS");
    match ms.and_then(|it| it.trim().parse().ok()).unwrap_or(WAIT_CEILING_MS) {
        0 => None,
        ms => Some(Duration::from_millis(ms)),
    }
}

/// The user's configuration directory.
pub(crate) fn configuration() -> PathBuf {
    let set = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|it| !it.is_empty()).map(PathBuf::from);
    set.unwrap_or_else(|| std::env::home_dir().unwrap_or_default().join(".claude"))
}

/// Adds what settings files say: the model, the mode, and what rules deny. Files that cannot be read are reported when
/// the session is opened.
async fn learn_of_files(facts: &mut SessionFacts, ennead: &Ennead, options: &SessionOptions) {
    for said in ennead.explain(options).await.unwrap_or_default() {
        let value: Value = serde_json::from_str(&said.value).unwrap_or_default();
        match (&*said.key, value) {
            ("model", Value::String(model)) => facts.model = model,
            ("permissions.defaultMode", mode) => {
                facts.mode = serde_json::from_value(mode).unwrap_or(facts.mode);
            }
            ("permissions.deny", Value::String(rule)) => facts.denied.push(rule),
            _ => {}
        }
    }
}

/// Names of beta features that requests carry.
fn betas_of(options: &SessionOptions) -> Vec<String> {
    let betas = options.settings.get("ennead").and_then(|it| it.get("betas")).cloned();
    betas.and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default()
}

fn facts_of(options: &SessionOptions, denied: &[String]) -> SessionFacts {
    let text =
        |name: &str| options.settings.get(name).and_then(|it| it.as_str()).map(str::to_owned);
    let mode = options.settings.get("permissions").and_then(|it| it.get("defaultMode"));
    let mode = mode.and_then(|it| serde_json::from_value(it.clone()).ok());
    let key = withdrawn_keys::variable("ANTHROPIC_API_KEY").is_some_and(|it| !it.is_empty());
    let mut facts = SessionFacts {
        cwd: options.workspace.display().to_string(),
        model: text("model").unwrap_or_else(|| RuntimeSettings::default().model),
        mode: mode.unwrap_or(PermissionMode::Default),
        key_source: if key { "ANTHROPIC_API_KEY" } else { "none" },
        denied: rules::split(denied),
        tools: Vec::new(),
        disabled_servers: Default::default(),
        servers: Vec::new(),
        betas: betas_of(options),
        agents: Vec::new(),
        plugins: Vec::new(),
        plugin_errors: Vec::new(),
    };
    facts.add_agents(&built_in().collect::<Vec<_>>());
    facts.add_agents(&options.agent_types);
    facts
}
