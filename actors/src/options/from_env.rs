//! The endpoints that variables of the environment name.

use super::{Endpoint, OptionError};
use crate::world::environment::Environment;

/// Names the providers, the first to ask in front.
const PROVIDER: &str = "ENNEAD_PROVIDER";
const ANTHROPIC_BASE: &str = "ANTHROPIC_BASE_URL";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const ANTHROPIC_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const OPENAI_BASE: &str = "OPENAI_BASE_URL";
const OPENAI_KEY: &str = "OPENAI_API_KEY";
const BEDROCK_KEY: &str = "AWS_BEARER_TOKEN_BEDROCK";
const BEDROCK_BASE: &str = "ANTHROPIC_BEDROCK_BASE_URL";
const MANTLE_BASE: &str = "ANTHROPIC_BEDROCK_MANTLE_BASE_URL";
const VERTEX_TOKEN: &str = "GOOGLE_OAUTH_ACCESS_TOKEN";
const VERTEX_BASE: &str = "ANTHROPIC_VERTEX_BASE_URL";
const VERTEX_PROJECT: &str = "ANTHROPIC_VERTEX_PROJECT_ID";
const VERTEX_LOCATION: &str = "CLOUD_ML_REGION";

/// Where Claude on Bedrock is asked, strongest first.
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// Where no region is named.
const REGION: &str = "us-east-1";

/// Every variable that an endpoint is read from. Of those that say the same in several ways one list is together: who sets
/// one of them means none of the others.
pub(crate) const ENDPOINT_VARIABLES: [&[&str]; 13] = [
    &[PROVIDER, SWITCHES[0].0, SWITCHES[1].0, SWITCHES[2].0],
    &[ANTHROPIC_KEY, ANTHROPIC_TOKEN],
    &[ANTHROPIC_BASE],
    &[OPENAI_KEY],
    &[OPENAI_BASE],
    &[BEDROCK_KEY],
    &[BEDROCK_BASE],
    &[MANTLE_BASE],
    &REGIONS,
    &[VERTEX_TOKEN],
    &[VERTEX_BASE],
    &[VERTEX_PROJECT],
    &[VERTEX_LOCATION],
];

/// What other programs switch a provider on with, where [`PROVIDER`] is not set.
const SWITCHES: [(&str, &str); 3] = [
    ("CLAUDE_CODE_USE_BEDROCK", "bedrock"),
    ("CLAUDE_CODE_USE_MANTLE", "bedrock-mantle"),
    ("CLAUDE_CODE_USE_VERTEX", "vertex"),
];

impl Endpoint {
    /// Reads the first of the endpoints that the environment of the process names, as
    /// [`Endpoint::chain_from_environment`] has them.
    ///
    /// # Errors
    ///
    /// As of that function.
    pub fn from_env() -> Result<Self, OptionError> {
        Self::from_environment(&Environment::of_process())
    }

    /// Reads the first of the endpoints that an environment names, as [`Endpoint::chain_from_environment`] has them.
    ///
    /// # Errors
    ///
    /// As of that function.
    pub fn from_environment(environment: &Environment) -> Result<Self, OptionError> {
        let names = providers(environment);
        endpoint(environment, names.first().map_or("anthropic", String::as_str))
    }

    /// Reads the endpoints that an environment names, first the one to ask, then those to turn to when it cannot answer
    /// ([`SessionOptions::fallbacks`](crate::SessionOptions)). `ENNEAD_PROVIDER` lists their providers with commas. An
    /// empty variable counts as not set.
    ///
    /// | Provider | Variables |
    /// |---|---|
    /// | `anthropic` (the default) | `ANTHROPIC_API_KEY` or `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_BASE_URL` |
    /// | `openai-chat`, `openai-responses` | `OPENAI_API_KEY`, `OPENAI_BASE_URL` |
    /// | `bedrock` | `AWS_BEARER_TOKEN_BEDROCK`, `AWS_REGION` or `AWS_DEFAULT_REGION` (`us-east-1`), `ANTHROPIC_BEDROCK_BASE_URL` |
    /// | `bedrock-mantle` | the same, with `ANTHROPIC_BEDROCK_MANTLE_BASE_URL` |
    /// | `vertex` | `ANTHROPIC_VERTEX_PROJECT_ID`, `GOOGLE_OAUTH_ACCESS_TOKEN`, `CLOUD_ML_REGION` (`global`), `ANTHROPIC_VERTEX_BASE_URL` |
    ///
    /// Of each provider a key or an address must be set. `CLAUDE_CODE_USE_BEDROCK`, `CLAUDE_CODE_USE_MANTLE` and
    /// `CLAUDE_CODE_USE_VERTEX` name one where `ENNEAD_PROVIDER` does not.
    ///
    /// ```
    /// use ennead::{Endpoint, Environment};
    ///
    /// let environment = Environment::empty()
    ///     .with("ENNEAD_PROVIDER", "anthropic,bedrock")
    ///     .with("ANTHROPIC_API_KEY", "a-key")
    ///     .with("AWS_BEARER_TOKEN_BEDROCK", "another");
    /// let chain = Endpoint::chain_from_environment(&environment)?;
    /// assert_eq!(&*chain[1].base, "https://bedrock-runtime.us-east-1.amazonaws.com");
    /// # Ok::<(), ennead::OptionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OptionError::NotSet`] when neither a key nor an address of a provider is set, [`OptionError::Incomplete`] when
    /// something else is missing; [`OptionError::UnknownProvider`], [`OptionError::BadKey`], [`OptionError::BadName`],
    /// [`OptionError::BadAddress`] and [`OptionError::Credentials`] when one of them cannot be used.
    pub fn chain_from_environment(environment: &Environment) -> Result<Vec<Self>, OptionError> {
        providers(environment).iter().map(|name| endpoint(environment, name)).collect()
    }
}

/// The providers that are asked, each once. There is always one.
fn providers(environment: &Environment) -> Vec<String> {
    let is_on = |name: &&(&str, &str)| {
        variable(environment, name.0)
            .is_some_and(|it| !["0", "false", "no", "off"].contains(&&*it.to_ascii_lowercase()))
    };
    let listed = variable(environment, PROVIDER);
    let switched = || SWITCHES.iter().find(is_on).map(|it| it.1.to_owned());
    let listed = listed.or_else(switched).unwrap_or_else(|| "anthropic".to_owned());
    let mut names: Vec<String> = Vec::new();
    for name in listed.split(',').map(str::trim) {
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn endpoint(environment: &Environment, provider: &str) -> Result<Endpoint, OptionError> {
    let variables = Variables(environment);
    match provider {
        "anthropic" => variables.anthropic(),
        "openai-chat" => variables.openai("openai-chat", Endpoint::openai_chat),
        "openai-responses" => variables.openai("openai-responses", Endpoint::openai_responses),
        "bedrock" => variables.bedrock("bedrock", BEDROCK_BASE, Endpoint::bedrock),
        "bedrock-mantle" => {
            variables.bedrock("bedrock-mantle", MANTLE_BASE, Endpoint::bedrock_mantle)
        }
        "vertex" => variables.vertex(),
        other => Err(OptionError::UnknownProvider(other.to_owned())),
    }
}

fn variable(environment: &Environment, name: &str) -> Option<String> {
    environment.variable(name).filter(|it| !it.is_empty())
}

/// The environment that endpoints are read from.
struct Variables<'a>(&'a Environment);

impl Variables<'_> {
    fn anthropic(&self) -> Result<Endpoint, OptionError> {
        let (key, token) = (self.key(ANTHROPIC_KEY)?, self.key(ANTHROPIC_TOKEN)?);
        let base = self.base(ANTHROPIC_BASE)?;
        if base.is_none() && key.is_none() && token.is_none() {
            let key = "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN";
            return Err(OptionError::NotSet { provider: "anthropic", key, base: ANTHROPIC_BASE });
        }
        let base = base.as_deref().unwrap_or("https://api.anthropic.com");
        let endpoint = Endpoint::messages(base, key.as_deref());
        Ok(match (key, token) {
            (None, Some(token)) => endpoint.header("authorization", &format!("Bearer {token}")),
            _ => endpoint,
        })
    }

    fn openai(
        &self,
        provider: &'static str,
        make: fn(&str, Option<&str>) -> Endpoint,
    ) -> Result<Endpoint, OptionError> {
        let (key, base) = self.key_or_base(provider, OPENAI_KEY, OPENAI_BASE)?;
        Ok(make(base.as_deref().unwrap_or("https://api.openai.com/v1"), key.as_deref()))
    }

    fn bedrock(
        &self,
        provider: &'static str,
        base: &'static str,
        make: fn(&str, &str) -> Endpoint,
    ) -> Result<Endpoint, OptionError> {
        let (token, base) = self.key_or_base(provider, BEDROCK_KEY, base)?;
        let mut region = None;
        for name in REGIONS {
            region = region.or(self.name(name)?);
        }
        let region = region.unwrap_or_else(|| REGION.to_owned());
        let endpoint = make(&region, token.as_deref().unwrap_or_default());
        Ok(at(endpoint, token.is_some(), base))
    }

    fn vertex(&self) -> Result<Endpoint, OptionError> {
        let provider = "vertex";
        let (token, base) = self.key_or_base(provider, VERTEX_TOKEN, VERTEX_BASE)?;
        let Some(project) = self.name(VERTEX_PROJECT)? else {
            return Err(OptionError::Incomplete { provider, variable: VERTEX_PROJECT });
        };
        let location = self.name(VERTEX_LOCATION)?.unwrap_or_else(|| "global".to_owned());
        let endpoint = Endpoint::vertex(&project, &location, token.as_deref().unwrap_or_default());
        let of_project = |base: String| {
            format!("{}/projects/{project}/locations/{location}", base.trim_end_matches('/'))
        };
        Ok(at(endpoint, token.is_some(), base.map(of_project)))
    }

    fn key_or_base(
        &self,
        provider: &'static str,
        key: &'static str,
        base: &'static str,
    ) -> Result<(Option<String>, Option<String>), OptionError> {
        match (self.key(key)?, self.base(base)?) {
            (None, None) => Err(OptionError::NotSet { provider, key, base }),
            found => Ok(found),
        }
    }

    /// A key that can be sent in a header.
    fn key(&self, variable: &'static str) -> Result<Option<String>, OptionError> {
        match self.text(variable) {
            Some(key) if !key.bytes().all(|it| (0x20..0x7f).contains(&it)) => {
                Err(OptionError::BadKey { variable })
            }
            key => Ok(key),
        }
    }

    /// The address of a server.
    fn base(&self, variable: &'static str) -> Result<Option<String>, OptionError> {
        let Some(base) = self.text(variable) else { return Ok(None) };
        checked(&base, variable)?;
        Ok(Some(base))
    }

    /// A name that becomes a part of an address.
    fn name(&self, variable: &'static str) -> Result<Option<String>, OptionError> {
        let is_plain =
            |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.' | b':');
        match self.text(variable) {
            Some(value) if !value.bytes().all(is_plain) => {
                Err(OptionError::BadName { variable, value })
            }
            name => Ok(name),
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        variable(self.0, name)
    }
}

/// An endpoint at another address, where one is given, and without a token where there is none: a server in between
/// may have its own.
fn at(endpoint: Endpoint, has_token: bool, base: Option<String>) -> Endpoint {
    let is_sent = |it: &&(String, String)| has_token || it.0 != "authorization";
    let headers = endpoint.headers.iter().filter(is_sent).cloned().collect();
    let base = base.map_or_else(|| endpoint.base.clone(), |it| it.trim_end_matches('/').into());
    Endpoint { headers, base, ..endpoint }
}

/// Refuses what is certainly no address of a server. What is left is read by the transport.
fn checked(base: &str, variable: &'static str) -> Result<(), OptionError> {
    let bad = |why| Err(OptionError::BadAddress { variable, base: base.to_owned(), why });
    let Some((scheme, rest)) = base.split_once("://") else { return bad("is not a URL") };
    if !["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it)) {
        return bad("has a scheme that is not supported");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(OptionError::Credentials { variable });
    }
    if authority.is_empty() || authority.starts_with(':') {
        return bad("names no host");
    }
    if rest.contains(['?', '#']) {
        return bad("has a query or a fragment");
    }
    if base.contains(|it: char| it.is_whitespace() || it.is_control()) {
        return bad("is not a URL");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
