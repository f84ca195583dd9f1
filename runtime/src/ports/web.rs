//! Pages from the web: what a tool asks for, what it gets, and why it gets nothing.

use std::{fmt, net::IpAddr};

use super::BoxFuture;

/// Fetches pages for the tool WebFetch.
pub trait FetchPages: Send + Sync + fmt::Debug {
    /// Fetches one page, or returns what was fetched from the address lately. Dropping the future closes the exchange.
    ///
    /// # Errors
    ///
    /// [`FetchError`]: the address is refused, the server gives no page, or the page is not a text.
    fn fetch(&self, url: String) -> BoxFuture<'static, Result<Fetched, FetchError>>;
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fetched {
    /// The host has sent a text.
    Page(FetchedPage),
    /// The server names another host, which is not asked.
    Elsewhere {
        /// The address that was asked.
        from: String,
        /// The address that it names.
        to: String,
        /// Status of the HTTP response.
        code: u16,
        /// What the status means, in a few words.
        code_text: String,
    },
}

/// The text of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedPage {
    /// The address that the text is from, after redirects.
    pub url: String,
    /// The text: Markdown where the server sent HTML.
    pub text: String,
    /// Whether the text is the beginning of what the server would have sent.
    pub is_cut: bool,
    /// Bytes of the body that were read.
    pub bytes: u64,
    /// Status of the HTTP response.
    pub code: u16,
    /// What the status means, in a few words.
    pub code_text: String,
}

impl FetchedPage {
    /// Makes a page that a server sent with status 200, whole.
    pub fn new(url: impl Into<String>, text: impl Into<String>) -> Self {
        let (url, text) = (url.into(), text.into());
        let bytes = text.len() as u64;
        Self { url, text, is_cut: false, bytes, code: 200, code_text: "OK".into() }
    }
}

/// Why there is no text from the web, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address cannot be read, or is not one of the web.
    #[error("the address cannot be used: {why}")]
    Address {
        /// The cause in words.
        why: String,
    },
    /// The address can be read in more than one way.
    #[error("the address is to be written as {plain}")]
    NotPlain {
        /// The only way to write it.
        plain: String,
    },
    /// The host is at an address that is not one of the public internet.
    #[error("{host} is not at an address of the public internet")]
    NotPublic {
        /// The host, as it was asked for.
        host: String,
        /// Where it is. The words for the model leave it out: names of a network are not looked up for a page.
        address: IpAddr,
    },
    /// The address is in a range of which nothing is ever fetched.
    #[error("nothing is fetched from there: metadata of clouds are in that range, or no server is")]
    Forbidden {
        /// Where the host is.
        address: IpAddr,
    },
    /// The server cannot be reached, or its answer breaks off.
    #[error("{why}")]
    Failed {
        /// The cause in words.
        why: String,
    },
    /// The server answered that it has no such page, or that it will not give it.
    #[error("the server answered {code} {code_text}")]
    Status {
        /// Status of the HTTP response.
        code: u16,
        /// What the status means, in a few words.
        code_text: String,
    },
    /// The server names address after address of its own.
    #[error("the server redirects more than {max} times")]
    TooManyRedirects {
        /// How many are followed.
        max: usize,
    },
    /// The body is not a text.
    #[error("it is not a text but {kind}")]
    NotText {
        /// What the body is instead, in words.
        kind: String,
    },
}

impl FetchError {
    /// Returns the code of the error, which is stable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address { .. } => "address",
            Self::NotPlain { .. } => "not_plain",
            Self::NotPublic { .. } => "not_public",
            Self::Forbidden { .. } => "forbidden",
            Self::Failed { .. } => "failed",
            Self::Status { .. } => "status",
            Self::TooManyRedirects { .. } => "too_many_redirects",
            Self::NotText { .. } => "not_text",
        }
    }
}
