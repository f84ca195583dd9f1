//! The address of a page: which one is taken, and where a redirect leads.
//!
//! Rules are asked about the host as the gate reads it, and the client connects to the host as it reads it. So an address
//! is taken only where both read the same.

use std::net::IpAddr;

use ennead_runtime::{
    ports::web::FetchError, sandbox::within_ipv6, step7_permission_gate::host_of_rules,
};
use reqwest::{Response, Url, header};

use super::reach::{Reach, reach};

/// Bytes of an address.
const MAX_BYTES: usize = 4000;

/// Where an answer leads.
pub(super) enum Redirection {
    /// It is the page, or an error.
    Here,
    /// To another page of the host.
    SameHost(PageAddress),
    /// To another host, by its address.
    Elsewhere(String),
}

/// An address that may be asked for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageAddress {
    url: Url,
    host: String,
    is_near: bool,
}

impl PageAddress {
    /// Reads an address, and makes https of http unless it is of this machine.
    pub(super) fn read(text: &str) -> Result<Self, FetchError> {
        let refused = |why: &str| FetchError::Address { why: why.into() };
        if MAX_BYTES < text.len() {
            return Err(refused("it is too long"));
        }
        let url = Url::parse(text).map_err(|it| FetchError::Address { why: it.to_string() })?;
        let address = Self::of(url)?;
        match host_of_rules(text) {
            Some(host) if host == address.host => Ok(address),
            _ => Err(FetchError::NotPlain { plain: address.url.to_string() }),
        }
    }

    fn of(mut url: Url) -> Result<Self, FetchError> {
        let refused = |why: &str| FetchError::Address { why: why.into() };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("it is not one of http or https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it holds a name or a password"));
        }
        let named = url.host_str().ok_or_else(|| refused("it names no host"))?;
        let host = named.strip_suffix('.').unwrap_or(named).to_owned();
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let is_near = match literal {
            Some(address) => {
                let reach = reach(address);
                if reach == Reach::Forbidden {
                    return Err(FetchError::Forbidden { address });
                }
                // A rule names the address of IPv4.
                if let IpAddr::V6(address) = address
                    && let Some(plain) = within_ipv6(address)
                {
                    let plain = format!("{}://{plain}", url.scheme());
                    return Err(FetchError::NotPlain { plain });
                }
                reach == Reach::Loopback
            }
            None => host == "localhost" || host.ends_with(".localhost"),
        };
        url.set_fragment(None);
        if !is_near && url.scheme() == "http" {
            url.set_scheme("https").map_err(|()| refused("it cannot be made one of https"))?;
        }
        Ok(Self { url, host, is_near })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the host in lower case, without a dot at its end.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether it is of this machine.
    pub(super) fn is_near(&self) -> bool {
        self.is_near
    }

    /// Returns what the page is kept under.
    pub(super) fn key(&self) -> String {
        self.url.to_string()
    }

    /// Returns where an answer of this address leads.
    pub(super) fn next(&self, response: &Response) -> Result<Redirection, FetchError> {
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(Redirection::Here);
        }
        let location = response.headers().get(header::LOCATION);
        let Some(location) = location.and_then(|it| it.to_str().ok()) else {
            return Ok(Redirection::Here);
        };
        self.towards(location)
    }

    fn towards(&self, location: &str) -> Result<Redirection, FetchError> {
        let unusable = |why: String| FetchError::Address {
            why: format!("the server redirects to one that cannot be used: {why}"),
        };
        if MAX_BYTES < location.len() {
            return Err(unusable("it is too long".into()));
        }
        let next = self.url.join(location).map_err(|it| unusable(it.to_string()))?;
        let next = Self::of(next).map_err(|it| match it {
            FetchError::Address { why } => unusable(why),
            other => other,
        })?;
        let port = |it: &Url| it.port_or_known_default();
        let is_same = next.host == self.host && port(&next.url) == port(&self.url);
        Ok(match is_same {
            true => Redirection::SameHost(next),
            false => Redirection::Elsewhere(next.url.to_string()),
        })
    }
}

/// Returns the whole address of a link on a page; `None` for what is not one of the web.
pub(super) fn of_link(base: &Url, link: &str) -> Option<String> {
    let url = base.join(link).ok()?;
    matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match PageAddress::read(text) {
            Ok(it) => it.url.to_string(),
            Err(error) => error.code().to_owned(),
        }
    }

    // REQ: TOL-6
    #[test]
    fn http_becomes_https_but_for_this_machine() {
        for (text, expected) in [
            ("http://example.com/a?b#c", "https://example.com/a?b"),
            ("HTTPS://Example.COM./", "https://example.com./"),
            ("http://example.com:8080/", "https://example.com:8080/"),
            ("http://localhost:3000/", "http://localhost:3000/"),
            ("http://a.localhost/", "http://a.localhost/"),
            ("http://127.0.0.1/", "http://127.0.0.1/"),
            ("http://[::1]:80/", "http://[::1]/"),
            ("http://10.0.0.1/", "https://10.0.0.1/"),
            ("http://notlocalhost/", "https://notlocalhost/"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    // REQ: TOL-6, PRM-8
    #[test]
    fn address_that_rules_would_read_otherwise_is_refused() {
        for text in [
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "https://ex%61mple.com/",
            "https://exämple.com/",
            "https://ex\u{ff0e}ample.com/",
            "https://exam\tple.com/",
            " https://example.com/",
            "https:example.com",
            "https:\\\\example.com/",
            "https://[0:0:0:0:0:0:0:1]/",
            "https://example.com\u{3002}evil.com/",
            "http://[::ffff:7f00:1]:2375/",
            "https://[::ffff:10.0.0.8]/",
            "https://[::ffff:a00:8]/",
            "https://[64:ff9b::a00:8]/",
            "https://[64:ff9b::5db8:d822]/",
        ] {
            assert_eq!(read(text), "not_plain", "{text}");
        }
        for (text, code) in [
            ("https://user@example.com/", "address"),
            ("https://user:pw@example.com/", "address"),
            ("https://@example.com/", "not_plain"),
            ("file:///etc/passwd", "address"),
            ("ftp://example.com/", "address"),
            ("data:text/html,x", "address"),
            ("example.com", "address"),
            ("https://", "address"),
            ("", "address"),
            ("http://169.254.169.254/latest/meta-data", "forbidden"),
            ("http://[::ffff:169.254.169.254]/", "forbidden"),
            ("http://[fe80::1]/", "forbidden"),
            ("http://0.0.0.0/", "forbidden"),
            ("http://[::]/", "forbidden"),
        ] {
            assert_eq!(read(text), code, "{text}");
        }
        assert_eq!(read(&format!("https://a/{}", "x".repeat(MAX_BYTES))), "address");
    }

    // REQ: TOL-6
    #[test]
    fn redirects_stay_on_their_host_and_nothing_else_is_followed() {
        let from = |text| PageAddress::read(text).unwrap();
        let towards = |from: &PageAddress, to: &str| match from.towards(to) {
            Ok(Redirection::SameHost(it)) => format!("same {}", it.url),
            Ok(Redirection::Elsewhere(it)) => format!("elsewhere {it}"),
            Ok(Redirection::Here) => "here".into(),
            Err(error) => error.code().to_owned(),
        };
        let far = from("https://example.com/a/b");
        for (to, expected) in [
            ("/c", "same https://example.com/c"),
            ("c", "same https://example.com/a/c"),
            ("http://example.com/c", "same https://example.com/c"),
            ("//example.com/c", "same https://example.com/c"),
            ("https://EXAMPLE.com./c", "same https://example.com./c"),
            ("https://www.example.com/", "elsewhere https://www.example.com/"),
            ("https://example.com:444/", "elsewhere https://example.com:444/"),
            ("//evil.com", "elsewhere https://evil.com/"),
            ("http://localhost/", "elsewhere http://localhost/"),
            ("https://user:pw@example.com/", "address"),
            ("file:///etc/passwd", "address"),
            ("javascript:alert(1)", "address"),
            ("http://169.254.169.254/", "forbidden"),
        ] {
            assert_eq!(towards(&far, to), expected, "{to}");
        }
        let near = from("http://127.0.0.1:80/");
        assert_eq!(towards(&near, "http://127.0.0.1/x"), "same http://127.0.0.1/x");
        assert_eq!(towards(&near, "http://127.0.0.1:81/"), "elsewhere http://127.0.0.1:81/");
        assert_eq!(towards(&near, &"x".repeat(MAX_BYTES + 1)), "address");
    }
}
