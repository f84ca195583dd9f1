//! The endpoint that variables of the environment name.

use super::{Endpoint, OptionError};
use crate::world::environment::Environment;

/// Names the format in which the server is spoken to.
const PROVIDER: &str = "ENNEAD_PROVIDER";
const ANTHROPIC_BASE: &str = "ANTHROPIC_BASE_URL";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const ANTHROPIC_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const OPENAI_BASE: &str = "OPENAI_BASE_URL";
const OPENAI_KEY: &str = "OPENAI_API_KEY";

impl Endpoint {
    /// Reads the endpoint that the environment of the process names: `ENNEAD_PROVIDER` (`anthropic`, which is the
    /// default, `openai-chat` or `openai-responses`), and of that provider `ANTHROPIC_API_KEY` or
    /// `ANTHROPIC_AUTH_TOKEN` and `ANTHROPIC_BASE_URL`, or `OPENAI_API_KEY` and `OPENAI_BASE_URL`. An empty variable
    /// counts as not set.
    ///
    /// # Errors
    ///
    /// [`OptionError::NotSet`] when neither a key nor an address is set; [`OptionError::UnknownProvider`],
    /// [`OptionError::BadKey`], [`OptionError::BadAddress`] and [`OptionError::Credentials`] when one of
    /// them cannot be used.
    pub fn from_env() -> Result<Self, OptionError> {
        Self::from_environment(&Environment::of_process())
    }

    /// Reads the endpoint that the given environment names, by the variables of [`Endpoint::from_env`].
    ///
    /// # Errors
    ///
    /// As [`Endpoint::from_env`].
    pub fn from_environment(environment: &Environment) -> Result<Self, OptionError> {
        let variable = |name: &str| environment.variable(name).filter(|it| !it.is_empty());
        let openai = |provider, make: fn(&str, Option<&str>) -> Endpoint| {
            let (base, key) = (variable(OPENAI_BASE), sendable(variable(OPENAI_KEY), OPENAI_KEY)?);
            if base.is_none() && key.is_none() {
                let (key, base) = (OPENAI_KEY, OPENAI_BASE);
                return Err(OptionError::NotSet { provider, key, base });
            }
            let base = base.unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
            checked(&base, OPENAI_BASE)?;
            Ok(make(&base, key.as_deref()))
        };
        match variable(PROVIDER).as_deref() {
            None | Some("anthropic") => {}
            Some("openai-chat") => return openai("openai-chat", Endpoint::openai_chat),
            Some("openai-responses") => {
                return openai("openai-responses", Endpoint::openai_responses);
            }
            Some(other) => return Err(OptionError::UnknownProvider(other.to_owned())),
        }
        let base = variable(ANTHROPIC_BASE);
        let key = sendable(variable(ANTHROPIC_KEY), ANTHROPIC_KEY)?;
        let token = sendable(variable(ANTHROPIC_TOKEN), ANTHROPIC_TOKEN)?;
        if base.is_none() && key.is_none() && token.is_none() {
            return Err(OptionError::NotSet {
                provider: "anthropic",
                key: "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
                base: ANTHROPIC_BASE,
            });
        }
        let base = base.unwrap_or_else(|| "https://api.anthropic.com".to_owned());
        checked(&base, ANTHROPIC_BASE)?;
        let endpoint = Endpoint::messages(&base, key.as_deref());
        Ok(match (key, token) {
            (None, Some(token)) => endpoint.header("authorization", &format!("Bearer {token}")),
            _ => endpoint,
        })
    }
}

/// A key that can be sent in a header.
fn sendable(key: Option<String>, variable: &'static str) -> Result<Option<String>, OptionError> {
    match &key {
        Some(key) if !key.bytes().all(|it| (0x20..0x7f).contains(&it)) => {
            Err(OptionError::BadKey { variable })
        }
        _ => Ok(key),
    }
}

/// Refuses what is certainly no address of a server. What is left is read by the transport.
fn checked(base: &str, variable: &'static str) -> Result<(), OptionError> {
    let bad = |why| Err(OptionError::BadAddress { variable, base: base.to_owned(), why });
    let Some((scheme, rest)) = base.split_once("://") else { return bad("is no URL") };
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
        return bad("is no URL");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Result<(&str, &str, usize), &str>) {
        let environment =
            variables.iter().fold(Environment::empty(), |it, (name, value)| it.with(name, value));
        let found = Endpoint::from_environment(&environment);
        match (found, expected) {
            (Ok(it), Ok(expected)) => {
                let is_secret = |name: &&(String, String)| {
                    ["x-api-key", "authorization"].contains(&name.0.as_str())
                };
                let n_secret = it.headers.iter().filter(is_secret).count();
                assert_eq!((&*it.provider, &*it.base, n_secret), expected);
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    // REQ: MDL-1
    #[test]
    fn endpoint_is_read_from_the_variables_of_its_provider() {
        let (key, base) = (("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://a:1"));
        check(&[key], Ok(("anthropic", "https://api.anthropic.com", 1)));
        check(&[base], Ok(("anthropic", "http://a:1", 0)));
        check(&[("ANTHROPIC_AUTH_TOKEN", "t"), base], Ok(("anthropic", "http://a:1", 1)));
        check(
            &[("ANTHROPIC_AUTH_TOKEN", "t"), key],
            Ok(("anthropic", "https://api.anthropic.com", 1)),
        );
        let chat = ("ENNEAD_PROVIDER", "openai-chat");
        check(
            &[chat, ("OPENAI_API_KEY", "k"), key],
            Ok(("openai-chat", "https://api.openai.com/v1", 1)),
        );
        check(
            &[("ENNEAD_PROVIDER", "anthropic"), ("OPENAI_API_KEY", "k"), key],
            Ok(("anthropic", "https://api.anthropic.com", 1)),
        );
    }

    // REQ: MDL-1
    #[test]
    fn errors_name_the_variable_to_set() {
        check(&[], Err("ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"));
        check(&[("ANTHROPIC_API_KEY", "")], Err("ANTHROPIC_BASE_URL"));
        check(&[("ENNEAD_PROVIDER", "openai-responses")], Err("OPENAI_API_KEY"));
        check(&[("ENNEAD_PROVIDER", "else")], Err("set ENNEAD_PROVIDER to one of"));
        check(&[("ANTHROPIC_API_KEY", "a\nb")], Err("ANTHROPIC_API_KEY has a line break"));
        let base = |text| [("ANTHROPIC_BASE_URL", text)];
        check(&base("nonsense"), Err("ANTHROPIC_BASE_URL `nonsense` is no URL"));
        check(&base("ftp://a"), Err("scheme that is not supported"));
        check(&base("https://:80/"), Err("names no host"));
        check(&base("https://a/?b"), Err("query or a fragment"));
        let error = Endpoint::from_environment(
            &Environment::empty().with("ANTHROPIC_BASE_URL", "http://me:secret@a"),
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("ANTHROPIC_BASE_URL holds a name or password")
                && !error.contains("secret"),
            "{error}"
        );
    }
}
