//! The options of a session, as flags and variables give them.

use std::{fs, num::NonZeroU32, path::Path};

use ennead::{
    Endpoint, SessionOptions,
    settings::{self, Settings},
};
use ennead_command::exit::{Exit, Failure};
use ennead_runtime::{
    permission::{PermissionMode, RuleKind},
    recovery::{backoff::MAX_RETRIES, chain::MAX_FALLBACKS},
};
use ennead_tools::registry::optional_tools;
use serde_json::Value;

use crate::{
    args::{Durability, Print},
    mcp, program, rules, trusted,
};

/// Returns the options for a session in the working directory of this process.
pub(crate) fn session_options(args: &Print, endpoint: Endpoint) -> Result<SessionOptions, Failure> {
    let directory = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::BadInput, format!("cannot use the working directory: {error}"))
    })?;
    options_in(&directory, args, endpoint)
}

/// Returns the options for a session in this directory.
pub(crate) fn options_in(
    directory: &Path,
    args: &Print,
    endpoint: Endpoint,
) -> Result<SessionOptions, Failure> {
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    let mut options = SessionOptions::new(directory, endpoint);
    trusted::apply(&mut options, args)?;
    if let Some(text) = &args.settings {
        options.settings =
            Settings::from_json(settings_of(text)?).map_err(|error| bad(error.to_string()))?;
    }
    // The variable is that of the program, where this process hosts it.
    if let Some(model) = args.model.clone().or_else(|| program::variable("ANTHROPIC_MODEL")) {
        options = options.model(&model);
    }
    if let Some(models) = &args.fallback_model {
        let models: Vec<&str> = models.split(',').map(str::trim).collect();
        if models.iter().any(|it| it.is_empty()) {
            return Err(bad("--fallback-model: a name is empty; write a,b,c".into()));
        }
        if MAX_FALLBACKS < models.len() {
            return Err(bad(format!("--fallback-model: at most {MAX_FALLBACKS} names")));
        }
        options = options.settings(Settings::new().fallback_models(models));
    }
    if let Some(max_turns) = args.max_turns {
        options = options.max_turns(max_turns);
    }
    if args.protocol.dangerously_skip_permissions {
        options = options.mode(PermissionMode::BypassPermissions);
    }
    if let Some(name) = &args.permission_mode {
        let mode = serde_json::from_value(Value::from(name.as_str())).map_err(|_| {
            bad(format!(
                "there is no permission mode `{name}`; take one of plan, default, acceptEdits, auto, \
                 dontAsk, bypassPermissions"
            ))
        })?;
        options = options.mode(mode);
    }
    for (lists, kind) in
        [(&args.allowed_tools, RuleKind::Allow), (&args.disallowed_tools, RuleKind::Deny)]
    {
        for text in rules::split(lists) {
            let ruled = match kind {
                RuleKind::Allow => {
                    // Programs also write a whole tool so.
                    let text = text.strip_suffix("()").unwrap_or(&text);
                    with_named(options, text).allow(text)
                }
                _ => options.deny(&text),
            };
            options = ruled.map_err(|error| Failure::of(Exit::BadInput, &error))?;
        }
    }
    options.mcp_servers = mcp::servers_of(&args.mcp_config)?;
    for dir in &args.add_dir {
        options = add_directory(options, dir)?;
    }
    if let Some(durability) = args.durability {
        options = options.durability(match durability {
            Durability::Process => settings::Durability::Process,
            Durability::Turn => settings::Durability::Turn,
            Durability::Entry => settings::Durability::Entry,
        });
    }
    if let Some(id) = &args.session_id {
        options.id = Some(id.as_str().into());
    }
    options.system_prompt.clone_from(&args.system_prompt);
    options.append_system_prompt.clone_from(&args.append_system_prompt);
    options.transcripts.clone_from(&args.transcripts);
    with_max_output(with_max_retries(options)?)
}

/// Adds the tool that a rule names, if it is one that sessions do not have otherwise.
fn with_named(options: SessionOptions, rule: &str) -> SessionOptions {
    // A text that is not a rule is refused where the rule is added.
    let tool = rule.split_once('(').map_or(rule, |it| it.0).trim();
    let named = optional_tools().into_iter().find(|it| it.spec().name.as_str() == tool);
    match named {
        Some(tool) => options.tool(tool),
        None => options,
    }
}

/// `CLAUDE_CODE_MAX_OUTPUT_TOKENS` counts where no flag says otherwise.
fn with_max_output(options: SessionOptions) -> Result<SessionOptions, Failure> {
    const NAME: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
    let Some(text) = program::variable(NAME) else {
        return Ok(options);
    };
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    let max: NonZeroU32 = text
        .trim()
        .parse()
        .map_err(|_| bad(format!("{NAME} is `{text}`; set it to a positive number")))?;
    let own = options.settings.get("ennead");
    let is_said = ["maxOutputTokens", "max_output_tokens"];
    if is_said.iter().any(|it| own.is_some_and(|own| own.get(it).is_some())) {
        return Ok(options);
    }
    let settings = serde_json::json!({ "ennead": { "maxOutputTokens": max } });
    options.settings_json(settings).map_err(|error| bad(error.to_string()))
}

/// `CLAUDE_CODE_MAX_RETRIES` counts where no flag says otherwise.
fn with_max_retries(options: SessionOptions) -> Result<SessionOptions, Failure> {
    const NAME: &str = "CLAUDE_CODE_MAX_RETRIES";
    let Some(text) = program::variable(NAME) else {
        return Ok(options);
    };
    let Ok(n) = text.trim().parse::<u32>() else {
        let what = format!("{NAME} is `{text}`; set it to a number from 0 to {MAX_RETRIES}");
        return Err(Failure::new(Exit::BadInput, what));
    };
    let own = options.settings.get("ennead");
    let is_said =
        ["maxRetries", "max_retries"].iter().any(|it| own.is_some_and(|own| own.get(it).is_some()));
    Ok(if is_said { options } else { options.settings(Settings::new().max_retries(n)) })
}

/// Settings given by `--settings`: JSON, or the name of a file.
fn settings_of(given: &str) -> Result<Value, Failure> {
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    // `null` and `[]` are not names of files, unless there is such a file.
    let is_text = given.trim_start().starts_with('{')
        || (serde_json::from_str::<Value>(given).is_ok() && !Path::new(given).exists());
    let (source, text) = if is_text {
        ("--settings".to_owned(), given.to_owned())
    } else {
        let text = fs::read_to_string(given)
            .map_err(|error| bad(format!("cannot read the settings {given}: {error}")))?;
        (given.to_owned(), text)
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| bad(format!("the settings of {source} are not JSON: {error}")))?;
    if !value.is_object() {
        return Err(bad(format!("the settings of {source} are not a JSON object")));
    }
    // What cannot be used in them is an alert of the session, as for every other file.
    Ok(value)
}

fn add_directory(options: SessionOptions, dir: &Path) -> Result<SessionOptions, Failure> {
    let bad = |why: String| {
        Failure::new(Exit::BadInput, format!("cannot add the directory {}: {why}", dir.display()))
    };
    let path = dir.canonicalize().map_err(|error| bad(error.to_string()))?;
    if !path.is_dir() {
        return Err(bad("it is not a directory".into()));
    }
    let path = path.to_str().ok_or_else(|| bad("its path is not UTF-8".into()))?;
    let settings = options.settings.clone().additional_directory(path);
    Ok(options.settings(settings))
}
