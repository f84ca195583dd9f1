//! Who may ask the simulated model: programs of this machine, and no page of another site.
//!
//! A browser that shows a foreign page can be made to send requests to a loopback address, under a
//! name that its owner pointed there. It names that page in `Host` or `Origin`, and cannot be kept
//! from doing so.

use axum::http::{
    HeaderMap, HeaderName, Uri,
    header::{HOST, ORIGIN},
    uri::Authority,
};

/// Returns which header names a caller that is not of this machine; `None` when none does. A request without these
/// headers comes from no browser.
pub(super) fn foreign(uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
    let is_near = |name: HeaderName, near: fn(&str) -> bool| {
        headers.get_all(name).iter().all(|it| it.to_str().is_ok_and(near))
    };
    let of_target = uri.authority().is_none_or(|it| is_loopback(it.host()));
    if !of_target || !is_near(HOST, is_near_authority) {
        return Some("Host");
    }
    (!is_near(ORIGIN, is_near_origin)).then_some("Origin")
}

fn is_near_origin(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, authority)| is_near_authority(authority))
}

fn is_near_authority(authority: &str) -> bool {
    // Who is named before an `@` is a user, which neither header may hold.
    !authority.contains('@')
        && authority.parse::<Authority>().is_ok_and(|it| is_loopback(it.host()))
}

fn is_loopback(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        // 0.0.0.0 leads to this machine, too. A name cannot be made to look like an address.
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|it| it.is_loopback() || it.is_unspecified())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(uri: &str, host: &[&str], origin: &[&str], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for (name, values) in [(HOST, host), (ORIGIN, origin)] {
            for value in values {
                headers.append(&name, HeaderValue::from_str(value).unwrap());
            }
        }
        assert_eq!(foreign(&uri.parse().unwrap(), &headers), expected, "{uri} {host:?} {origin:?}");
    }

    #[test]
    fn only_names_and_addresses_of_this_machine_are_near() {
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:9", "127.1.2.3", "[::1]:9", "0.0.0.0:9"]
        {
            check("/v1/messages", &[host], &[], None);
            check("/v1/messages", &[host], &[&format!("http://{host}")], None);
        }
        check("/v1/messages", &[], &[], None);
        check("http://127.0.0.1:9/v1/messages", &["127.0.0.1:9"], &[], None);
    }

    #[test]
    fn pages_of_other_sites_are_foreign() {
        let near = "127.0.0.1:9";
        for host in [
            "evil.example",
            "evil.example:9",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "localhost@evil.example",
            "evil.example@localhost",
            "10.0.0.1",
        ] {
            check("/", &[host], &[], Some("Host"));
            check("/", &[near], &[&format!("https://{host}")], Some("Origin"));
        }
        check("/", &[near, "evil.example"], &[], Some("Host"));
        check("/", &[near], &["null"], Some("Origin"));
        check("/", &[near], &["http://localhost", "http://evil.example"], Some("Origin"));
        check("http://evil.example/", &[near], &[], Some("Host"));
    }
}
