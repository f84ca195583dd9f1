//! Which model server is asked: the one of the environment, or the embedded simulated model.

use std::{
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use ennead::{
    Endpoint, OptionError, Options,
    internal::{SimulatedTransport, Simulator, embedded},
};
use ennead_command::exit::{Exit, Failure};
use ennead_tools::withdrawn_keys;
use reqwest::Url;

/// Names the format in which the server is spoken to.
const PROVIDER: &str = "ENNEAD_PROVIDER";

/// Variables that name a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variables {
    pub(crate) base: &'static str,
    /// One, or several in words.
    pub(crate) key: &'static str,
}

const ANTHROPIC: Variables =
    Variables { base: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN" };

const OPENAI: Variables = Variables { base: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" };

/// How long a connection is tried for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The model server that is asked.
#[derive(Debug)]
pub(crate) struct ModelServer {
    pub(crate) endpoint: Endpoint,
    /// Options of the runtime that go with it.
    pub(crate) options: Options,
    /// Its address as it was given, unless it is in this process.
    pub(crate) base: Option<String>,
    /// The embedded simulated model, with the notice that people must read about it.
    pub(crate) why_simulated: Option<String>,
    pub(crate) variables: Variables,
}

/// Returns the server that the environment names.
///
/// # Errors
///
/// When there is no such provider, or the address is none.
pub(crate) fn from_environment() -> Result<ModelServer, Failure> {
    let endpoint = match Endpoint::from_env() {
        Ok(endpoint) => endpoint,
        Err(OptionError::NotSet { provider: "anthropic", .. }) if variable(PROVIDER).is_none() => {
            return simulated();
        }
        Err(error) => return Err(Failure::of(Exit::BadInput, &error)),
    };
    let variables = if &*endpoint.provider == "anthropic" { ANTHROPIC } else { OPENAI };
    let base = endpoint.base.to_string();
    url_of(&base, variables.base)?;
    let options = Options::default();
    Ok(ModelServer { endpoint, options, base: Some(base), why_simulated: None, variables })
}

fn simulated() -> Result<ModelServer, Failure> {
    let playbook = match embedded("default") {
        Some(Ok(playbook)) => playbook,
        Some(Err(error)) => return Err(Failure::of(Exit::RunFailed, &error)),
        None => {
            return Err(Failure::new(Exit::RunFailed, "this build has no embedded playbook"));
        }
    };
    let transport = SimulatedTransport::new(Simulator::new(playbook));
    let options = Options::default().transport(Arc::new(transport));
    // Never resolved: the transport answers whatever host is asked.
    let endpoint = Endpoint::messages("http://simulated.invalid", None);
    let why_simulated = Some(why_simulated());
    Ok(ModelServer { endpoint, options, base: None, why_simulated, variables: ANTHROPIC })
}

/// That nothing real answers, and what to set. A key of the other provider was meant to be used.
fn why_simulated() -> String {
    let set = [OPENAI.key, OPENAI.base].into_iter().find(|it| variable(it).is_some());
    let missing = match set {
        Some(name) => format!(
            "{name} is set, but {PROVIDER} is not: set {PROVIDER}=openai-chat (or openai-responses) \
             and name a model with --model"
        ),
        None => format!("neither {} nor {} is set", ANTHROPIC.key, ANTHROPIC.base),
    };
    format!("no real model is asked, the embedded simulated model answers: {missing}")
}

/// An address that can be asked.
fn url_of(base: &str, variable: &str) -> Result<Url, Failure> {
    let bad = |why: &str| {
        let what = format!("{variable} `{base}` {why}; set it to http(s)://host[:port]");
        Failure::new(Exit::BadInput, what)
    };
    let url = Url::parse(base).map_err(|error| bad(&format!("is no URL ({error})")))?;
    if !url.username().is_empty() || url.password().is_some() {
        let what = format!("{variable} holds a name or password; set the key in its own variable");
        return Err(Failure::new(Exit::BadInput, what));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("has a query or a fragment"));
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("has a scheme that is not supported"));
    }
    if url.host_str().is_none() {
        return Err(bad("names no host"));
    }
    let path = url.path().trim_end_matches('/');
    if ["/messages", "/chat/completions", "/responses"].iter().any(|it| path.ends_with(it)) {
        return Err(bad("names what is asked there, which is put after it"));
    }
    Ok(url)
}

/// Connects once before the session is opened. A run waits minutes for a server that is away for a
/// while; a wrong address is better reported at once. Behind a proxy nothing can be tried.
///
/// # Errors
///
/// When the address is not valid, or no server answers there.
pub(crate) fn try_connection(base: &str, variable: &str) -> Result<(), Failure> {
    let url = url_of(base, variable)?;
    let host = url.host_str().unwrap_or_default();
    let is_near = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    if !is_near && has_proxy() {
        return Ok(());
    }
    let away = |why: &str| {
        let what = format!(
            "cannot connect to the model server at {base}: {why}; start it or set {variable}"
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

/// A variable that is set and not empty. What is not UTF-8 in it shows as signs that no key and no
/// address has.
fn variable(name: &str) -> Option<String> {
    withdrawn_keys::variable(name)
        .map(|it| it.to_string_lossy().into_owned())
        .filter(|it| !it.is_empty())
}
