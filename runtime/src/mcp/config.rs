//! What `.mcp.json` and `--mcp-config` say: `{"mcpServers": {"name": {…}}}`.
//!
//! An entry that cannot be used is skipped and named in an alert; the others stay. Only a text that is no such
//! object at all is an error.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::{
    expansion::{Environment, expand},
    names::is_server_name,
};

/// The least limit of a call that an entry may set, in milliseconds.
const MIN_TIMEOUT_MS: u64 = 1000;

/// A server, with its variables expanded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ServerConfig {
    /// As configured; the names of its tools come from it.
    pub name: Arc<str>,
    /// The transport by which the server is reached.
    pub reach: ServerTransport,
    /// Milliseconds that one call may take; `None` leaves it to the session.
    pub timeout_ms: Option<u64>,
}

impl ServerConfig {
    /// Makes the configuration of a server that is a child process and speaks through its standard input and output.
    pub fn stdio(name: &str, command: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|it| (*it).to_owned()).collect();
        let program = ServerProgram { command: command.to_owned(), args, env: BTreeMap::new() };
        Self { name: name.into(), reach: ServerTransport::Stdio(program), timeout_ms: None }
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ServerTransport {
    /// A child process, by its standard input and output.
    Stdio(ServerProgram),
    /// The server is reached by streamable HTTP.
    Http(Address),
    /// The server is reached by the older transport over HTTP: a stream of its messages, and an address for ours.
    Sse(Address),
}

impl ServerTransport {
    /// Returns where the server answers, if it is not a child process.
    pub fn address(&self) -> Option<&Address> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(address) | Self::Sse(address) => Some(address),
        }
    }
}

/// A program that is started as a child process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ServerProgram {
    /// Looked for as a shell would.
    pub command: String,
    /// Arguments that the program is started with.
    pub args: Vec<String>,
    /// Variables in addition to those of ennead.
    pub env: BTreeMap<String, String>,
}

/// Where a remote server answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Address {
    /// Absolute address of the server.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
}

/// What a text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// The servers that may be used, ordered by name.
    pub servers: Vec<ServerConfig>,
    /// What was skipped, and what is odd about the rest.
    pub problems: Vec<Problem>,
}

/// A text that is not a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is not JSON.
    #[error("it is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// It has no `mcpServers`.
    #[error("it is not an object with an object `mcpServers`")]
    NoServers,
}

/// Something about one entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Skipped: the name may not be used.
    #[error("MCP server `{0}` is skipped: the name is reserved or cannot be a name")]
    Name(String),
    /// Skipped: a field is missing or of another kind.
    #[error("MCP server `{server}` is skipped: `{field}` must be {wanted}")]
    Field {
        /// Name of the server's entry.
        server: String,
        /// Name of the invalid field.
        field: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// Skipped: an address without a type could be several things.
    #[error("MCP server `{0}` is skipped: an entry with `url` needs a `type`, such as \"http\"")]
    UrlWithoutType(String),
    /// Skipped: the type is known and not spoken here.
    #[error("MCP server `{server}` is skipped: the type \"{kind}\" is not supported")]
    Unsupported {
        /// Name of the server's entry.
        server: String,
        /// Transport type that the entry names.
        kind: String,
    },
    /// A field has no effect.
    #[error("MCP server `{server}`: `{field}` is not supported and has no effect")]
    NoEffect {
        /// Name of the server's entry.
        server: String,
        /// Name of the field without effect.
        field: &'static str,
    },
    /// The server is started, with the reference as it is written.
    #[error("MCP server `{server}`: the variable {variable} is not set and has no default")]
    Unset {
        /// Name of the server's entry.
        server: String,
        /// Name of the variable without a value.
        variable: String,
    },
}

/// Reads a configuration.
///
/// # Errors
///
/// [`ConfigError`] for a text that is none.
pub fn read(text: &str, environment: Environment<'_>) -> Result<Configured, ConfigError> {
    read_for(text, &|_, name| environment(name))
}

/// Reads as [`read`] does, with variables that depend on the server, which is the first argument of `environment`.
///
/// # Errors
///
/// As [`read`].
pub fn read_for(
    text: &str,
    environment: &dyn Fn(&str, &str) -> Option<String>,
) -> Result<Configured, ConfigError> {
    let value: Value = serde_json::from_str(text).map_err(ConfigError::NotJson)?;
    let servers = value.get("mcpServers").and_then(Value::as_object);
    let mut configured = Configured::default();
    for (name, entry) in servers.ok_or(ConfigError::NoServers)? {
        let environment = &|variable: &str| environment(name, variable);
        let mut reader = ConfigEntry { name, environment, problems: Vec::new() };
        match reader.read(entry) {
            Ok(server) => configured.servers.push(server),
            Err(problem) => reader.problems = vec![problem],
        }
        configured.problems.append(&mut reader.problems);
    }
    Ok(configured)
}

/// Merges the servers of scopes, the strongest scope first. An entry wins as a whole: nothing of a weaker one of the
/// same name is taken. The result is sorted by name.
pub fn strongest(scopes: impl IntoIterator<Item = Vec<ServerConfig>>) -> Vec<ServerConfig> {
    let mut winners = BTreeMap::new();
    for server in scopes.into_iter().flatten() {
        winners.entry(server.name.clone()).or_insert(server);
    }
    winners.into_values().collect()
}

/// One entry that is being read.
struct ConfigEntry<'a> {
    name: &'a str,
    environment: Environment<'a>,
    problems: Vec<Problem>,
}

impl ConfigEntry<'_> {
    fn read(&mut self, entry: &Value) -> Result<ServerConfig, Problem> {
        if !is_server_name(self.name) {
            return Err(Problem::Name(self.name.to_owned()));
        }
        let entry = entry.as_object().ok_or_else(|| self.field("entry", "an object"))?;
        let reach = match entry.get("type").map(Value::as_str) {
            None if entry.contains_key("url") && !entry.contains_key("command") => {
                return Err(Problem::UrlWithoutType(self.name.to_owned()));
            }
            None | Some(Some("stdio")) => ServerTransport::Stdio(self.program(entry)?),
            Some(Some("http" | "streamable-http")) => ServerTransport::Http(self.address(entry)?),
            Some(Some("sse")) => ServerTransport::Sse(self.address(entry)?),
            Some(Some(kind)) => {
                let server = self.name.to_owned();
                return Err(Problem::Unsupported { server, kind: kind.to_owned() });
            }
            Some(None) => return Err(self.field("type", "a text")),
        };
        let timeout_ms = match entry.get("timeout") {
            None => None,
            Some(it) => match it.as_u64().filter(|ms| MIN_TIMEOUT_MS <= *ms) {
                Some(ms) => Some(ms),
                None => return Err(self.field("timeout", "a number of milliseconds, 1000 or more")),
            },
        };
        Ok(ServerConfig { name: self.name.into(), reach, timeout_ms })
    }

    fn program(&mut self, entry: &Map<String, Value>) -> Result<ServerProgram, Problem> {
        let command = self.text(entry, "command", "a text")?;
        let args = match entry.get("args") {
            None => Vec::new(),
            Some(list) => {
                let wrong = || self.field("args", "a list of texts");
                let list = list.as_array().ok_or_else(wrong)?;
                let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                let texts = texts.ok_or_else(wrong)?;
                texts.into_iter().map(|it| self.expanded(it)).collect()
            }
        };
        Ok(ServerProgram { command, args, env: self.texts(entry, "env")? })
    }

    fn address(&mut self, entry: &Map<String, Value>) -> Result<Address, Problem> {
        for field in ["headersHelper", "oauth"] {
            if entry.contains_key(field) {
                let server = self.name.to_owned();
                self.problems.push(Problem::NoEffect { server, field });
            }
        }
        let url = self.text(entry, "url", "an address")?;
        Ok(Address { url, headers: self.texts(entry, "headers")? })
    }

    fn text(
        &mut self,
        entry: &Map<String, Value>,
        field: &'static str,
        wanted: &'static str,
    ) -> Result<String, Problem> {
        let text = entry.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
        let text = text.ok_or_else(|| self.field(field, wanted))?;
        Ok(self.expanded(text))
    }

    fn texts(
        &mut self,
        entry: &Map<String, Value>,
        field: &'static str,
    ) -> Result<BTreeMap<String, String>, Problem> {
        let Some(entries) = entry.get(field) else { return Ok(BTreeMap::new()) };
        let wrong = || self.field(field, "an object of texts");
        let entries = entries.as_object().ok_or_else(wrong)?;
        let texts: Option<Vec<(&String, &str)>> =
            entries.iter().map(|(name, value)| Some((name, value.as_str()?))).collect();
        let texts = texts.ok_or_else(wrong)?;
        Ok(texts.into_iter().map(|(name, value)| (name.clone(), self.expanded(value))).collect())
    }

    fn expanded(&mut self, text: &str) -> String {
        let mut unset = Vec::new();
        let expanded = expand(text, self.environment, &mut unset);
        let server = self.name;
        let unset_variable = |variable| Problem::Unset { server: server.to_owned(), variable };
        self.problems.extend(unset.into_iter().map(unset_variable));
        expanded
    }

    fn field(&self, field: &'static str, wanted: &'static str) -> Problem {
        Problem::Field { server: self.name.to_owned(), field, wanted }
    }
}

#[cfg(test)]
mod tests;
