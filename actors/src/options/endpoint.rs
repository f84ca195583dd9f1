//! A model server: where it is, and how it is spoken to.

use std::sync::Arc;

use ennead_runtime::step5_model_call::wire_format::WireFormat;

use crate::ports::in_process_model::{InProcessModel, ModelHandle};

/// A model server. Shown for people, it names its headers and not their values.
///
/// ```
/// use ennead::Endpoint;
///
/// let local = Endpoint::openai_chat("http://localhost:11434/v1", None).named("ollama");
/// assert_eq!(&*local.provider, "ollama");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// Names the provider in settings, records and outcomes.
    pub provider: Arc<str>,
    /// The wire format of its requests and answers.
    pub format: WireFormat,
    /// Its address, without the path that the format adds.
    pub base: Arc<str>,
    /// Headers of every request, credentials included; names in lower case.
    pub headers: Arc<[(String, String)]>,
    /// The model, if it is code of the embedder and no server.
    pub(crate) model: Option<ModelHandle>,
}

impl Endpoint {
    /// Returns a server of the Messages API at this base address (`https://api.anthropic.com`), with an API key if it wants
    /// one.
    pub fn messages(base: &str, api_key: Option<&str>) -> Self {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("anthropic-version".to_owned(), "2023-06-01".to_owned()),
        ];
        if let Some(key) = api_key {
            headers.push(("x-api-key".to_owned(), key.to_owned()));
        }
        Self {
            provider: "anthropic".into(),
            format: WireFormat::AnthropicMessages,
            base: base.into(),
            headers: headers.into(),
            model: None,
        }
    }

    /// Returns a server of Chat Completions, with an API key if it wants one. The base address holds the
    /// version, as is the custom (`https://api.openai.com/v1`, `http://localhost:11434/v1`); where
    /// there is no path at all, `/v1` is added.
    pub fn openai_chat(base: &str, api_key: Option<&str>) -> Self {
        Self::openai("openai-chat", WireFormat::OpenAiChat, base, api_key)
    }

    /// Returns a server of the Responses API; the address as in [`Endpoint::openai_chat`].
    pub fn openai_responses(base: &str, api_key: Option<&str>) -> Self {
        Self::openai("openai-responses", WireFormat::OpenAiResponses, base, api_key)
    }

    fn openai(provider: &str, format: WireFormat, base: &str, api_key: Option<&str>) -> Self {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if let Some(key) = api_key {
            headers.push(("authorization".to_owned(), format!("Bearer {key}")));
        }
        Self {
            provider: provider.into(),
            format,
            base: base.into(),
            headers: headers.into(),
            model: None,
        }
    }

    /// Returns a model that is code of this process, as a provider of this name. No transport is asked.
    pub fn in_process(provider: &str, model: Arc<dyn InProcessModel>) -> Self {
        Self {
            provider: provider.into(),
            format: WireFormat::AnthropicMessages,
            base: format!("in-process://{provider}").into(),
            headers: Arc::default(),
            model: Some(ModelHandle(model)),
        }
    }

    /// Names the provider in settings, records and outcomes.
    #[must_use]
    pub fn named(self, provider: &str) -> Self {
        Self { provider: provider.into(), ..self }
    }

    /// Adds a header to every request. Names are in lower case.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        let one = (name.to_ascii_lowercase(), value.to_owned());
        Self { headers: self.headers.iter().cloned().chain([one]).collect(), ..self }
    }

    /// Returns the endpoint for sessions of `Options::simulated`, where the address is not used. With another
    /// transport this host does not resolve.
    #[cfg(feature = "simulated")]
    pub fn simulated() -> Self {
        Self::messages("http://simulated.invalid", None)
    }
}
