//! Which model servers are asked: those that the environment and the user's settings name, or the embedded simulated model.

use std::{
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use ennead::{
    Endpoint, Environment, OptionError, Options, SessionOptions,
    internal::{SimulatedTransport, Simulator, embedded, with_model_variables},
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

const BEDROCK: Variables =
    Variables { base: "ANTHROPIC_BEDROCK_BASE_URL", key: "AWS_BEARER_TOKEN_BEDROCK" };

const MANTLE: Variables = Variables { base: "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", ..BEDROCK };

const VERTEX: Variables =
    Variables { base: "ANTHROPIC_VERTEX_BASE_URL", key: "GOOGLE_OAUTH_ACCESS_TOKEN" };

impl Variables {
    /// Returns those that a provider is read from.
    fn of(provider: &str) -> Self {
        match provider {
            "openai-chat" | "openai-responses" => OPENAI,
            "bedrock" => BEDROCK,
            "bedrock-mantle" => MANTLE,
            "vertex" => VERTEX,
            _ => ANTHROPIC,
        }
    }
}

/// How long a connection is tried for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The model servers that are asked.
#[derive(Debug)]
pub(crate) struct ModelServers {
    pub(crate) endpoint: Endpoint,
    /// Those to turn to, in order.
    pub(crate) fallbacks: Vec<Endpoint>,
    /// Options of the runtime that go with them.
    pub(crate) options: Options,
    /// The address of the first as it was given, unless it is in this process.
    pub(crate) base: Option<String>,
    /// The embedded simulated model, with the notice that people must read about it.
    pub(crate) why_simulated: Option<String>,
    pub(crate) variables: Variables,
}

/// Returns the servers that the environment and the user's settings name.
///
/// # Errors
///
/// As of [`of`].
pub(crate) async fn of_user() -> Result<ModelServers, Failure> {
    let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let unknown = Endpoint::messages("http://unknown.invalid", None);
    of(&SessionOptions::new(directory, unknown)).await
}

/// Returns the servers that the environment names, and the settings of such a session that are not a repository's.
///
/// # Errors
///
/// When there is no such provider, the address is none, or the directory of the session cannot be used.
pub(crate) async fn of(options: &SessionOptions) -> Result<ModelServers, Failure> {
    let environment = with_model_variables(Environment::of_process(), options).await;
    let environment = environment.map_err(|error| Failure::of(Exit::BadInput, &error))?;
    let chain = match Endpoint::chain_from_environment(&environment) {
        Ok(chain) => chain,
        Err(OptionError::NotSet { provider: "anthropic", .. })
            if environment.variable(PROVIDER).is_none_or(|it| it.is_empty()) =>
        {
            return simulated(&environment);
        }
        Err(error) => return Err(Failure::of(Exit::BadInput, &error)),
    };
    for endpoint in &chain {
        url_of(&endpoint.base, Variables::of(&endpoint.provider).base)?;
    }
    let mut chain = chain.into_iter();
    let endpoint = chain
        .next()
        .ok_or_else(|| Failure::new(Exit::BadInput, format!("{PROVIDER} names no provider")))?;
    Ok(ModelServers {
        variables: Variables::of(&endpoint.provider),
        base: Some(endpoint.base.to_string()),
        endpoint,
        fallbacks: chain.collect(),
        options: Options::default(),
        why_simulated: None,
    })
}

fn simulated(environment: &Environment) -> Result<ModelServers, Failure> {
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
    let why_simulated = Some(why_simulated(environment));
    let (base, fallbacks, variables) = (None, Vec::new(), ANTHROPIC);
    Ok(ModelServers { endpoint, fallbacks, options, base, why_simulated, variables })
}

/// That nothing real answers, and what to set. A key of the other provider was meant to be used.
fn why_simulated(environment: &Environment) -> String {
    let is_set = |it: &&str| environment.variable(it).is_some_and(|it| !it.is_empty());
    let set = [OPENAI.key, OPENAI.base].into_iter().find(is_set);
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
    let url = Url::parse(base).map_err(|error| bad(&format!("is not a URL ({error})")))?;
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
        let fault = format!("cannot connect to the model server at {base}: {why}");
        Failure::new(Exit::NoModel, format!("{fault}; start it or set {variable}"))
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
