//! What the flags of the protocol make of a session and of the requests to its model.

use std::{path::PathBuf, sync::Arc};

use ennead::{Endpoint, SessionOptions};
use ennead_command::{
    exit::{Exit, Failure},
    stream_json::{skills::Skills, structured::Structured},
};
use ennead_runtime::skill::SkillContext;
use serde_json::json;

use super::files::{Plugins, skills_of, with_agents, with_plugins};
use crate::{
    args::{Print, Protocol},
    program, show,
};

/// How much a model may think.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Adds the headers that the program's name gives.
pub(crate) fn with_headers(endpoint: Endpoint) -> Endpoint {
    let own = concat!("ennead/", env!("CARGO_PKG_VERSION"));
    match program::variable("CLAUDE_AGENT_SDK_CLIENT_APP") {
        Some(app) if app.bytes().all(|it| it.is_ascii_graphic() || it == b' ') => {
            endpoint.header("user-agent", &format!("{own} (client-app/{app})"))
        }
        _ => endpoint,
    }
}

/// Applies the flags of the protocol to a session of which no lines are printed. Those that have no effect then are
/// announced on standard error, and those that would choose another session are refused.
///
/// Returns the skills and commands of files, too, by which prompts are read.
pub(crate) fn without_lines(
    options: SessionOptions,
    args: &Print,
) -> Result<(SessionOptions, Skills), Failure> {
    let protocol = &args.protocol;
    if let Some(flag) = protocol.that_need_lines().first() {
        let what = format!("{flag} needs --output-format stream-json");
        return Err(Failure::new(Exit::BadInput, what));
    }
    let (plugins, mut problems) = Plugins::read(&protocol.plugin_dir);
    let options = with_protocol(options, protocol)?;
    let options = with_plugins(options, &plugins, !args.strict_mcp_config)?;
    let (mut options, unusable) = with_agents(options, protocol, &plugins)?;
    problems.extend(unusable);
    let (skills, unusable) = skills_of(&options, protocol, &plugins);
    let project = options.workspace.to_string_lossy().into_owned();
    let session = options.id.as_ref().map_or("", |it| it.as_str()).to_owned();
    let place = SkillContext { session: &session, project: &project };
    problems.extend(unusable.into_iter().chain(skills.offer(&mut options, place)));
    let without_effect = protocol.without_lines();
    let without_effect = without_effect.iter().map(|it| format!("{it} has no effect here"));
    without_effect.chain(problems).for_each(|it| show::problem(&it));
    Ok((options, skills))
}

/// Applies the flags of the protocol that say something of the session.
pub(super) fn with_protocol(
    mut options: SessionOptions,
    protocol: &Protocol,
) -> Result<SessionOptions, Failure> {
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    let text_of = |file: &PathBuf| {
        std::fs::read_to_string(file).map_err(|error| {
            bad(format!("cannot read the system prompt {}: {error}", file.display()))
        })
    };
    if let Some(file) = &protocol.system_prompt_file {
        options.system_prompt = Some(text_of(file)?);
    }
    if let Some(file) = &protocol.append_system_prompt_file {
        let texts = options.append_system_prompt.take().into_iter().chain([text_of(file)?]);
        options.append_system_prompt = Some(texts.collect::<Vec<_>>().join("\n\n"));
    }
    options.static_system_prompt |= protocol.static_system_prompt;
    match protocol.tools.as_deref() {
        None | Some("default") => {}
        Some(list) => {
            let names: Vec<&str> = list.split(',').map(str::trim).collect();
            options = options.multi_edit();
            options.tools.retain(|it| {
                let name = it.spec().name.as_str();
                names.contains(&name) || (name == "Agent" && names.contains(&"Task"))
            });
        }
    }
    let mut settings = json!({});
    if let Some(max) = protocol.max_budget_usd {
        if !(0.0..1e9).contains(&max) {
            return Err(bad(format!("--max-budget-usd: {max} is not an amount of money")));
        }
        settings["ennead"]["maxCostMicroUsd"] = ((max * 1e6) as u64).into();
    }
    if let Some(tokens) = protocol.task_budget {
        settings["ennead"]["taskBudget"] = tokens.get().into();
    }
    if let Some(betas) = &protocol.betas {
        // Of each provider of a chain, where it wants them.
        let betas = betas.split(',').map(str::trim).filter(|it| !it.is_empty());
        settings["ennead"]["betas"] = betas.collect::<Vec<_>>().into();
    }
    if let Some(effort) = &protocol.effort {
        if !EFFORTS.contains(&effort.as_str()) {
            return Err(bad(format!("--effort: `{effort}` is none of {}", EFFORTS.join(", "))));
        }
        settings["effortLevel"] = effort.as_str().into();
    }
    let thinking = match (protocol.thinking.as_deref(), thinking_budget(&options, protocol)?) {
        (Some("disabled"), _) | (_, Some(0)) => Some(json!({"type": "disabled"})),
        (Some("adaptive"), _) => Some(json!({"type": "adaptive"})),
        (Some(other), _) => {
            return Err(bad(format!("--thinking: `{other}` is neither adaptive nor disabled")));
        }
        (None, Some(n)) => Some(json!({"type": "enabled", "budgetTokens": n})),
        (None, None) => None,
    };
    if let Some(mut thinking) = thinking {
        if let Some(display) = &protocol.thinking_display {
            thinking["display"] = display.as_str().into();
        }
        settings["ennead"]["thinking"] = thinking;
    }
    options.settings_json(settings).map_err(|error| bad(error.to_string()))
}

/// Has answers fit the schema of the flags, if there is one.
pub(crate) fn with_schema(
    options: SessionOptions,
    protocol: &Protocol,
) -> Result<(SessionOptions, Option<Arc<Structured>>), Failure> {
    let Some(schema) = &protocol.json_schema else { return Ok((options, None)) };
    let asked = Structured::asked_for(schema, options);
    let (structured, options) = asked.map_err(|error| Failure::of(Exit::BadInput, &error))?;
    Ok((options, Some(structured)))
}

/// Tokens that the model may think for in each answer. `MAX_THINKING_TOKENS` counts where no flag says otherwise.
fn thinking_budget(options: &SessionOptions, protocol: &Protocol) -> Result<Option<u32>, Failure> {
    const NAME: &str = "MAX_THINKING_TOKENS";
    let is_said = options.settings.get("ennead").is_some_and(|own| own.get("thinking").is_some());
    match program::variable(NAME) {
        Some(text) if protocol.max_thinking_tokens.is_none() && !is_said => {
            let budget = text.trim().parse().map_err(|_| {
                let what = format!("{NAME} is `{text}`; set it to a number of tokens, 0 for none");
                Failure::new(Exit::BadInput, what)
            })?;
            Ok(Some(budget))
        }
        _ => Ok(protocol.max_thinking_tokens),
    }
}
