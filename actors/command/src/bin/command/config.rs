//! `config --explain`: the settings that hold here, each with where it comes from.

use ennead::{Endpoint, Ennead};
use ennead_command::exit::{Exit, Failure};
use ennead_runtime::{output::terminal::clean_line, step1_settings_resolution::Explained};
use serde_json::json;

use crate::{
    args::{Config, Print, TableFormat},
    endpoint,
    print::{exit_of, session_options},
    show,
};

/// Prints the settings of a session that would be opened with these arguments.
pub(crate) async fn run(config: &Config, print: &Print) -> Result<Exit, Failure> {
    let options = session_options(print, Endpoint::messages("http://unknown.invalid", None))?;
    let server = endpoint::of(&options).await?;
    let ennead = Ennead::start(server.options)
        .await
        .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    let found = ennead.explain(&options).await;
    ennead.shutdown().await;
    let found = found.map_err(|error| Failure::of(exit_of(&error), &error))?;
    let lines = found.iter().map(|it| match config.output_format {
        TableFormat::Text => text(it),
        TableFormat::Json => json_of(it),
    });
    show::result(&lines.collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Success)
}

fn text(it: &Explained) -> String {
    let mut line = format!("{} = {}  from {}", it.key, it.value, it.source);
    if !it.replaces.is_empty() {
        line.push_str(&format!(", in place of {}", it.replaces.join(", ")));
    }
    clean_line(&line)
}

fn json_of(it: &Explained) -> String {
    let Explained { key, value, source, replaces } = it;
    json!({"key": key, "value": value, "source": source, "replaces": replaces}).to_string()
}
