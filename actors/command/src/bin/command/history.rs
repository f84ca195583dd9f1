//! `history`: the prompts that people typed.

use std::path::Path;

use ennead_command::{
    exit::{Exit, Failure},
    history::newest,
};
use ennead_runtime::output::terminal::clean_line;
use serde_json::Value;

use crate::{args::HistoryArgs, show, stream::configuration};

/// Characters of a prompt that are shown in a line.
const MAX_SHOWN_CHARS: usize = 200;

/// Prints the newest prompts, the oldest of them first.
pub(crate) fn run(args: &HistoryArgs) -> Result<Exit, Failure> {
    let project = args.project.as_deref().map(absolute).transpose()?;
    let prompts = newest(&configuration(), args.number, project.as_deref())
        .map_err(|error| Failure::new(Exit::BadInput, format!("the history: {error}")))?;
    for prompt in &prompts {
        if args.json {
            let line = serde_json::to_value(prompt).unwrap_or(Value::Null);
            show::json(&line)?;
        } else {
            let text: String = clean_line(&prompt.display).chars().take(MAX_SHOWN_CHARS).collect();
            show::result(&format!("{}  {text}", clean_line(&prompt.project)))?;
        }
    }
    Ok(Exit::Success)
}

fn absolute(path: &Path) -> Result<String, Failure> {
    let real = path.canonicalize().map_err(|error| {
        Failure::new(Exit::BadInput, format!("the directory {}: {error}", path.display()))
    })?;
    Ok(real.to_string_lossy().into_owned())
}
