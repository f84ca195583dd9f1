//! What a model server is logged in to with: kept out of texts, logs and child processes.

use std::{fmt, sync::Arc};

use ennead_tools::withdrawn_keys;

use super::Endpoint;

/// Headers that hold no secret.
const PUBLIC: &[&str] =
    &["accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent"];

/// Characters that a credential has at least. A shorter value could be any word of a text.
const MIN_CHARS: usize = 8;

impl Endpoint {
    /// Returns the values of headers that may be secret, in whole and word by word: servers repeat `Bearer key` as well
    /// as `key`. Longest first.
    pub(crate) fn credentials(&self) -> Vec<&str> {
        let secret = self
            .headers
            .iter()
            .filter(|(name, _)| !PUBLIC.iter().any(|public| name.eq_ignore_ascii_case(public)));
        let words = secret.flat_map(|(_, value)| {
            std::iter::once(value.trim()).chain(value.split_ascii_whitespace())
        });
        let mut credentials: Vec<&str> = words.filter(|it| MIN_CHARS <= it.len()).collect();
        credentials.sort_by(|left, right| right.len().cmp(&left.len()).then(left.cmp(right)));
        credentials.dedup();
        credentials
    }

    /// Names of variables of this process that hold one of these credentials.
    fn variables<'a>(
        &'a self,
        environment: &'a [(String, String)],
    ) -> impl Iterator<Item = &'a str> + 'a {
        let credentials = self.credentials();
        let holds = move |value: &str| credentials.iter().any(|it| value.contains(it));
        environment.iter().filter(move |(_, value)| holds(value)).map(|(name, _)| name.as_str())
    }
}

/// Returns the variables of this process that hold credentials of these servers, each once and without a value, which
/// takes it away from child processes.
pub(crate) fn secret_variables(endpoints: &[Endpoint]) -> Arc<[(String, String)]> {
    if endpoints.iter().all(|it| it.credentials().is_empty()) {
        return Arc::default();
    }
    let text = |it: std::ffi::OsString| it.to_string_lossy().into_owned();
    let environment: Vec<_> =
        withdrawn_keys::variables().map(|(name, value)| (text(name), text(value))).collect();
    let names = endpoints.iter().flat_map(|it| it.variables(&environment));
    let names: std::collections::BTreeSet<&str> = names.collect();
    names.into_iter().map(|it| (it.to_owned(), String::new())).collect()
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|it| it.0.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("format", &self.format)
            .field("base", &self.base)
            .field("headers", &names)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-test-0123456789abcdef";

    // REQ: SES-8
    #[test]
    fn credentials_are_secrets_whole_and_word_by_word() {
        let endpoint = Endpoint::openai_chat("http://a", Some(KEY));
        let bearer = format!("Bearer {KEY}");
        assert_eq!(endpoint.credentials(), [&bearer[..], KEY]);
        let short = Endpoint::openai_chat("http://a", Some("short"));
        assert_eq!(short.credentials(), ["Bearer short"]);
    }

    #[test]
    fn names_of_headers_are_shown_and_their_values_are_not() {
        for endpoint in [
            Endpoint::messages("http://a", Some(KEY)),
            Endpoint::openai_chat("http://a", Some(KEY)),
        ] {
            let shown = format!("{endpoint:?}");
            assert!(shown.contains("http://a") && !shown.contains(KEY), "{shown}");
        }
    }

    #[test]
    fn variable_that_holds_a_credential_is_found_by_its_value() {
        let endpoint = Endpoint::messages("http://a", Some(KEY));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment =
            [pair("MY_KEY", KEY), pair("PATH", "/bin"), pair("URL", &format!("u:{KEY}@h"))];
        assert_eq!(endpoint.variables(&environment).collect::<Vec<_>>(), ["MY_KEY", "URL"]);
    }
}
