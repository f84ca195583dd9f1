//! Which hosts a confined command reaches through the proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// Bytes of the longest name that the system of names has.
const MAX_NAME: usize = 253;

/// What is before the address in one of IPv6 that is translated to IPv4 (RFC 6052).
const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// A host as a request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name in lower case, without a dot at its end.
    Name(String),
    /// An address; one of IPv4 that is written as one of IPv6 is the former.
    Address(IpAddr),
}

impl Host {
    /// Reads a host; `None` for what is neither a name nor an address, or could be read as either
    /// (`127.1`, `0x7f000001`, `2130706433`).
    pub fn read(text: &str) -> Option<Self> {
        let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if let Some(address) = inner.or(Some(text)).and_then(|it| it.parse::<Ipv6Addr>().ok()) {
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let is_label = |it: &str| {
            let is_plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
            (1..=63).contains(&it.len()) && it.bytes().all(is_plain)
        };
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_number = last.bytes().all(|it| it.is_ascii_digit()) || last.starts_with("0x");
        let is_name = name.len() <= MAX_NAME && name.split('.').all(is_label) && !is_number;
        is_name.then_some(Self::Name(name))
    }
}

/// Hosts that may be reached, and those that may not though a pattern of the former covers them.
///
/// A pattern is a name, `*.name` for all that are below it, `*` for all names, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostRules {
    /// Patterns of hosts that may be reached.
    pub allowed: Vec<String>,
    /// Patterns of hosts that may not. They win.
    pub denied: Vec<String>,
}

impl HostRules {
    /// Returns whether a pattern can be read.
    pub(crate) fn is_pattern(text: &str) -> bool {
        let name = text.strip_prefix("*.");
        text == "*"
            || name.is_some_and(|it| matches!(Host::read(it), Some(Host::Name(_))))
            || Host::read(text).is_some()
    }

    /// Returns whether this host may be asked for. An address may be only where it is listed itself.
    pub fn allow(&self, host: &Host) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|it| covers(it, host));
        is_in(&self.allowed) && !is_in(&self.denied)
    }

    /// Returns whether a host that may be asked for may be reached at this address of it. One that is not public may
    /// only where it is listed itself, and the machine's own only where `localhost` is what was asked for: else the owner of
    /// a listed name could lead it to services of the machine or its network.
    pub fn allow_at(&self, host: &Host, address: IpAddr) -> bool {
        let at = Host::Address(address.to_canonical());
        if self.denied.iter().any(|it| covers(it, &at)) {
            return false;
        }
        let is_own = address.to_canonical().is_loopback()
            && *host == Host::Name("localhost".into())
            && self.allowed.iter().any(|it| it.eq_ignore_ascii_case("localhost"));
        is_public(address) || is_own || self.allowed.iter().any(|it| covers(it, &at))
    }
}

fn covers(pattern: &str, host: &Host) -> bool {
    match host {
        Host::Address(_) => Host::read(pattern).is_some_and(|it| it == *host),
        Host::Name(name) => match (pattern, pattern.strip_prefix("*.")) {
            ("*", _) => true,
            (_, Some(parent)) => {
                let Some(Host::Name(parent)) = Host::read(parent) else { return false };
                name.strip_suffix(&parent).is_some_and(|it| it.len() > 1 && it.ends_with('.'))
            }
            (_, None) => Host::read(pattern).is_some_and(|it| it == *host),
        },
    }
}

/// Returns whether an address is one of the internet. Source: the registries of special addresses of IANA (RFC 6890).
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            let [a, b, c, _] = it.octets();
            let is_special = it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || it.is_documentation()
                || a == 0
                || a >= 224
                || a == 100 && (64..128).contains(&b)
                || (a, b, c) == (192, 0, 0)
                || a == 198 && (b == 18 || b == 19);
            !is_special
        }
        IpAddr::V6(it) => {
            if let Some(address) = within_ipv6(it) {
                return is_public(address.into());
            }
            let parts = it.segments();
            // All that is given out is in 2000::/3; not that for tunnels, which may lead to any of IPv4.
            let is_tunnel = parts[0] == 0x2002 || parts[0] == 0x2001 && parts[1] < 0x200;
            let is_documentation = parts[0] == 0x2001 && parts[1] == 0xdb8 || parts[0] == 0x3fff;
            parts[0] & 0xe000 == 0x2000 && !is_tunnel && !is_documentation
        }
    }
}

/// Returns the address of IPv4 that one of IPv6 stands for: mapped, or translated by a network (RFC 6052).
pub fn within_ipv6(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let low = u32::from(parts[6]) << 16 | u32::from(parts[7]);
    let is_translated = parts[..6] == TRANSLATED;
    address.to_ipv4_mapped().or(is_translated.then(|| Ipv4Addr::from_bits(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allowed: &[&str], denied: &[&str]) -> HostRules {
        let texts = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
        HostRules { allowed: texts(allowed), denied: texts(denied) }
    }

    // REQ: TOL-10
    #[test]
    fn hosts_are_allowed_by_whole_names_and_addresses_by_themselves() {
        let some = rules(&["a.example", "*.b.example", "192.0.2.7", "[::1]"], &["no.b.example"]);
        for (host, expected) in [
            ("a.example", true),
            ("A.Example.", true),
            ("x.a.example", false),
            ("xa.example", false),
            ("b.example", false),
            ("x.b.example", true),
            ("x.y.B.example", true),
            ("no.b.example", false),
            ("a.example.evil.test", false),
            ("192.0.2.7", true),
            ("::ffff:192.0.2.7", true),
            ("192.0.2.8", false),
            ("::1", true),
        ] {
            assert_eq!(some.allow(&Host::read(host).unwrap()), expected, "{host}");
        }
        let all = rules(&["*"], &["*.no.example"]);
        assert!(all.allow(&Host::read("any.example").unwrap()));
        assert!(!all.allow(&Host::read("x.no.example").unwrap()));
        assert!(!all.allow(&Host::read("192.0.2.7").unwrap()), "an address is not a name");
    }

    // REQ: TOL-10
    #[test]
    fn what_could_be_another_host_is_none() {
        for text in [
            "",
            ".",
            "a..b",
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "1.2.3.4.5",
            "a b",
            "a@b",
            "a/b",
            "a%2eb",
            "a\r\nb",
            "caf\u{e9}.example",
            "[::1",
            "[a.example]",
            "01.2.3.4",
        ] {
            assert_eq!(Host::read(text), None, "{text:?}");
        }
        assert!(HostRules::is_pattern("*.a.example") && HostRules::is_pattern("10.0.0.1"));
        for text in ["a*.example", "*.*.example", "*.10.0.0.1", "https://a.example", "a:80", ""] {
            assert!(!HostRules::is_pattern(text), "{text:?}");
        }
    }

    // REQ: TOL-10
    #[test]
    fn listed_name_leads_to_no_address_of_the_machine_or_its_network() {
        let some = rules(&["*", "localhost", "10.1.2.3"], &["93.184.216.34"]);
        let name = Host::read("a.example").unwrap();
        for (address, expected) in [
            ("93.184.216.35", true),
            ("2606:2800::1", true),
            ("93.184.216.34", false),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("10.1.2.3", true),
            ("10.1.2.4", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("255.255.255.255", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::5db8:d823", true),
            ("2002:7f00:1::", false),
        ] {
            assert_eq!(some.allow_at(&name, address.parse().unwrap()), expected, "{address}");
        }
        let own = Host::read("localhost").unwrap();
        assert!(some.allow_at(&own, "127.0.0.1".parse().unwrap()));
        assert!(!rules(&["*"], &[]).allow_at(&own, "127.0.0.1".parse().unwrap()));
    }
}
