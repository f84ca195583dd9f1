//! Which model server is asked: the one of the environment, or the embedded simulated model.

use std::{
    env,
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use ennead::{
    options::{Endpoint, Options},
    world::simulated::{SimulatedTransport, Simulator, embedded},
};
use reqwest::Url;

use crate::exit::{Exit, Failure};

/// Where requests go when only a key is set.
const DEFAULT_BASE: &str = "https://api.anthropic.com";

/// How long a connection is tried for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who is asked.
#[derive(Debug)]
pub(crate) struct Server {
    /// Where requests go.
    pub(crate) endpoint: Endpoint,
    /// Options of the runtime that go with it.
    pub(crate) options: Options,
    /// It is the embedded simulated model; people must be told.
    pub(crate) is_simulated: bool,
}

/// The server that the environment names.
///
/// # Errors
///
/// When the address is none, or nobody answers there.
pub(crate) fn from_environment() -> Result<Server, Failure> {
    let base = variable("ANTHROPIC_BASE_URL");
    let key = variable("ANTHROPIC_API_KEY");
    let token = variable("ANTHROPIC_AUTH_TOKEN");
    if base.is_none() && key.is_none() && token.is_none() {
        return simulated();
    }
    let base = base.unwrap_or_else(|| DEFAULT_BASE.to_owned());
    try_connection(&base)?;
    let mut endpoint = Endpoint::messages(&base, key.as_deref());
    if let (None, Some(token)) = (key, token) {
        let bearer = ("authorization".to_owned(), format!("Bearer {token}"));
        endpoint.headers = endpoint.headers.iter().cloned().chain([bearer]).collect();
    }
    Ok(Server { endpoint, options: Options::default(), is_simulated: false })
}

fn simulated() -> Result<Server, Failure> {
    let playbook = match embedded("default") {
        Some(Ok(playbook)) => playbook,
        Some(Err(error)) => return Err(Failure::of(Exit::RunFailed, &error)),
        None => return Err(Failure::new(Exit::RunFailed, "this build has no embedded playbook")),
    };
    let transport = SimulatedTransport::new(Simulator::new(playbook));
    let options = Options { transport: Some(Arc::new(transport)), ..Options::default() };
    // Never resolved: the transport answers whatever host is asked.
    let endpoint = Endpoint::messages("http://simulated.invalid", None);
    Ok(Server { endpoint, options, is_simulated: true })
}

/// Connects once before anything is started. A run waits minutes for a server that is away for a
/// while; a wrong address is better told at once. Behind a proxy nothing can be tried.
fn try_connection(base: &str) -> Result<(), Failure> {
    let bad = |why: &str| {
        let what = format!("ANTHROPIC_BASE_URL `{base}` {why}; set it to http(s)://host[:port]");
        Failure::new(Exit::BadInput, what)
    };
    let url = Url::parse(base).map_err(|error| bad(&format!("is no URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("has a scheme that is not supported"));
    }
    let host = url.host_str().ok_or_else(|| bad("names no host"))?;
    let is_near = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    if !is_near && has_proxy() {
        return Ok(());
    }
    let away = |why: &str| {
        let what = format!(
            "cannot connect to the model server at {base}: {why}; start it or set ANTHROPIC_BASE_URL"
        );
        Failure::new(Exit::NoModel, what)
    };
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses = (host.trim_matches(['[', ']']), port)
        .to_socket_addrs()
        .map_err(|error| away(&error.to_string()))?;
    let mut why = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(away(&why))
}

fn has_proxy() -> bool {
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|it| variable(it).is_some())
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.is_empty())
}
