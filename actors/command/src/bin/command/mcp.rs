//! `--mcp-config`: MCP servers given on the command line.

use std::{collections::BTreeMap, fs, sync::Arc};

use ennead::tool::ServerConfig;
use ennead_command::exit::{Exit, Failure};
use ennead_runtime::mcp::config;
use ennead_tools::withdrawn_keys;

use crate::show;

/// Reads the servers of all the values, each a file or JSON. Of two of one name the later one wins.
pub(crate) fn servers_of(given: &[String]) -> Result<Vec<ServerConfig>, Failure> {
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    let mut servers: BTreeMap<Arc<str>, ServerConfig> = BTreeMap::new();
    for value in given {
        let (source, text) = if value.trim_start().starts_with('{') {
            ("--mcp-config", value.clone())
        } else {
            let text = fs::read_to_string(value).map_err(|error| {
                bad(format!("cannot read the MCP configuration {value}: {error}"))
            })?;
            (value.as_str(), text)
        };
        let configured = config::read(&text, &withdrawn_keys::text)
            .map_err(|error| bad(format!("the MCP configuration of {source}: {error}")))?;
        configured.problems.iter().for_each(|it| show::problem(&it.to_string()));
        let named = configured.servers.into_iter().map(|it| (it.name.clone(), it));
        servers.extend(named);
    }
    Ok(servers.into_values().collect())
}
