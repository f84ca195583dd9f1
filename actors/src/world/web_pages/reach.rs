//! Which addresses a page may be fetched from, and the resolver that gives the client no others.
//!
//! The client connects to what the resolver returns and asks nobody else, so a name that changes its address between the
//! check and the connection gains nothing.

use std::{
    error::Error,
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use ennead_runtime::{
    ports::web::FetchError,
    sandbox::{is_public, within_ipv6},
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// What an address is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The internet, which everybody reaches.
    Public,
    /// A network of somebody.
    Private,
    /// The machine that fetches.
    Loopback,
    /// Link-local, where clouds have metadata with credentials, or no single host.
    Forbidden,
}

/// Returns what an address is part of.
pub(super) fn reach(address: IpAddr) -> Reach {
    let address = address.to_canonical();
    if address.is_loopback() {
        Reach::Loopback
    } else if is_public(address) {
        Reach::Public
    } else if is_forbidden(address) {
        Reach::Forbidden
    } else {
        Reach::Private
    }
}

/// Returns whether an address that is not public is closed to all calls, also to those that a rule or a person allows.
fn is_forbidden(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V4(it) => it,
        IpAddr::V6(it) => match within_ipv6(it) {
            Some(it) => it,
            None => return is_forbidden_ipv6(it),
        },
    };
    match address.octets() {
        // The unspecified network, this machine by way of a translator, link-local, multicast, and what is reserved.
        [0 | 127 | 224..=255, ..] | [169, 254, ..] => true,
        // Metadata of two clouds.
        [192, 0, 0, 192] | [100, 100, 100, 200] => true,
        _ => false,
    }
}

fn is_forbidden_ipv6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // 6to4, and metadata of two clouds.
        [0x2002, ..] | [0xfd00, 0xec2, ..] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => true,
        // Link-local, multicast, the unspecified address, and what is not given out lie outside of these.
        [first, ..] => !matches!(first, 0x2000..=0x3fff | 0xfc00..=0xfdff),
    }
}

/// Finds the addresses of one host, and refuses those that it may not have.
#[derive(Clone, Debug)]
pub(super) struct CheckedResolver {
    host: String,
    is_near: bool,
}

impl CheckedResolver {
    /// Makes the resolver of a host. One that `is_near` is at addresses of this machine, any other at public ones.
    pub(super) fn new(host: &str, is_near: bool) -> Self {
        Self { host: host.to_owned(), is_near }
    }

    /// Returns the addresses of a name, if each is one that it may have.
    fn checked(&self, name: &str, found: Vec<SocketAddr>) -> Result<Addrs, RefusedAddress> {
        // The client asks for the name of a proxy, too, which the environment has chosen.
        let is_page = name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case(&self.host);
        let wanted = if self.is_near { Reach::Loopback } else { Reach::Public };
        let refused = found.iter().map(|it| it.ip()).find(|it| is_page && reach(*it) != wanted);
        match refused {
            Some(address) => Err(RefusedAddress { host: self.host.clone(), address }),
            None => Ok(Box::new(found.into_iter())),
        }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
            Ok(resolver.checked(name, found)?)
        })
    }
}

/// A host is where no page is fetched from.
#[derive(Debug)]
struct RefusedAddress {
    host: String,
    address: IpAddr,
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is at {}", self.host, self.address)
    }
}

impl Error for RefusedAddress {}

/// Returns the refusal that had a request fail, if one did.
pub(super) fn refusal(error: &(dyn Error + 'static)) -> Option<FetchError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(RefusedAddress { host, address }) = error.downcast_ref() {
            let (host, address) = (host.clone(), *address);
            return Some(match reach(address) {
                Reach::Forbidden => FetchError::Forbidden { address },
                _ => FetchError::NotPublic { host, address },
            });
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-6
    #[test]
    fn each_address_is_part_of_what_it_is_part_of_however_it_is_written() {
        use Reach::*;
        for (text, expected) in [
            ("1.1.1.1", Public),
            ("93.184.216.34", Public),
            ("172.15.0.1", Public),
            ("172.32.0.1", Public),
            ("100.63.255.255", Public),
            ("100.128.0.0", Public),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("198.18.0.1", Private),
            ("192.0.2.1", Private),
            ("169.254.169.254", Forbidden),
            ("169.254.0.1", Forbidden),
            ("100.100.100.200", Forbidden),
            ("192.0.0.192", Forbidden),
            ("0.0.0.0", Forbidden),
            ("0.1.2.3", Forbidden),
            ("224.0.0.1", Forbidden),
            ("255.255.255.255", Forbidden),
            ("2606:4700::1111", Public),
            ("::1", Loopback),
            ("::", Forbidden),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:169.254.169.254", Forbidden),
            ("::ffff:1.1.1.1", Public),
            ("::127.0.0.1", Forbidden),
            ("64:ff9b::10.0.0.1", Private),
            ("64:ff9b::169.254.169.254", Forbidden),
            ("64:ff9b::1.1.1.1", Public),
            ("64:ff9b::127.0.0.1", Forbidden),
            ("2002:7f00:1::", Forbidden),
            ("2002:a00:1::", Forbidden),
            ("2001:db8::1", Private),
            ("2001::1", Private),
            ("fc00::1", Private),
            ("fd12:3456::1", Private),
            ("fd00:ec2::254", Forbidden),
            ("fe80::1", Forbidden),
            ("fec0::1", Forbidden),
            ("ff02::1", Forbidden),
            ("4000::1", Forbidden),
        ] {
            assert_eq!(reach(text.parse().unwrap()), expected, "{text}");
        }
    }

    fn found(host: &str, is_near: bool, name: &str, addresses: &[&str]) -> Option<FetchError> {
        let at = addresses.iter().map(|it| SocketAddr::new(it.parse().unwrap(), 0)).collect();
        let error = CheckedResolver::new(host, is_near).checked(name, at).err()?;
        refusal(&error)
    }

    // REQ: TOL-6
    #[test]
    fn name_is_refused_with_any_address_that_is_not_public_and_a_loopback_name_with_any_other() {
        let code = |it: Option<FetchError>| it.map(|it| it.code());
        assert_eq!(code(found("a.com", false, "a.com", &["1.1.1.1", "2606:4700::1"])), None);
        for address in ["10.0.0.1", "127.0.0.1", "::1", "fd00::1", "::ffff:192.168.0.1"] {
            let refused = found("a.com", false, "A.com.", &["1.1.1.1", address]);
            assert_eq!(code(refused), Some("not_public"), "{address}");
        }
        let metadata = found("a.com", false, "a.com", &["169.254.169.254"]);
        assert_eq!(code(metadata), Some("forbidden"));
        assert_eq!(code(found("localhost", true, "localhost", &["127.0.0.1", "::1"])), None);
        let led_away = found("localhost", true, "localhost", &["1.1.1.1"]);
        assert_eq!(code(led_away), Some("not_public"));
        // A proxy is where the environment says.
        assert_eq!(code(found("a.com", false, "proxy", &["10.0.0.1"])), None);
    }
}
