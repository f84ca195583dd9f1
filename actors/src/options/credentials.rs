//! What a model server is logged in to with: kept out of texts, logs and child processes.

use std::{borrow::Cow, fmt, sync::Arc};

use ennead_runtime::step5_model_call::ModelFailure;
use ennead_tools::withdrawn_keys;

use super::Endpoint;

/// Headers that hold no secret.
const PUBLIC: &[&str] =
    &["accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent"];

/// Characters that a credential has at least. A shorter value could be any word of a text.
const MIN_CHARS: usize = 8;

/// What takes the place of a credential.
const CUT: &str = "[credential]";

impl Endpoint {
    /// The values of headers that may be secret, in whole and word by word: servers repeat `Bearer
    /// key` as well as `key`. Longest first.
    fn credentials(&self) -> Vec<&str> {
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

    /// The text without this server's credentials. Of one that the end of the text cuts short, the
    /// beginning is taken out, too.
    pub(crate) fn without_credentials<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for credential in self.credentials() {
            if text.contains(credential) {
                text = Cow::Owned(text.replace(credential, CUT));
            }
            let start = (MIN_CHARS..credential.len()).rev().find_map(|n_bytes| {
                let start = credential.get(..n_bytes)?;
                let end = text.trim_end_matches(['.', '…', '"', ')']);
                end.strip_suffix(start).map(str::len)
            });
            if let Some(start) = start {
                text = Cow::Owned(format!("{}{CUT}", &text[..start]));
            }
        }
        text
    }

    /// The failure without this server's credentials in its message.
    pub(crate) fn cut(&self, failure: ModelFailure) -> ModelFailure {
        let message = self.without_credentials(&failure.message).into_owned();
        ModelFailure { message, ..failure }
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

/// The variables of this process that hold credentials of these servers, each once and without a
/// value, which takes it away from child processes.
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

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let endpoint = Endpoint::openai_chat("http://a", Some(KEY));
        assert_eq!(endpoint.without_credentials(text), expected);
    }

    #[test]
    fn credentials_are_cut_out_whole_and_where_a_text_ends_in_one() {
        check("no such key", "no such key");
        check(&format!("got {KEY}, {KEY}"), "got [credential], [credential]");
        check(&format!("header Bearer {KEY}!"), "header [credential]!");
        check("got sk-test-01234", "got [credential]");
        check("got \"sk-test-0123456789abcde…", "got \"[credential]");
        check("got sk-test", "got sk-test");
        check("application/json", "application/json");
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
