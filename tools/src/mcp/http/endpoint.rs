//! The address for messages that a server of the older transport names.

/// Returns the address, if it is of the server's own origin: what is sent never goes to another one,
/// since the origin of the server's configuration is kept and only the rest is taken over.
pub(super) fn resolve(base: &str, named: &str) -> Option<String> {
    let named = named.trim();
    let (origin, path) = split(base)?;
    if let Some((other, rest)) = split(named) {
        return (comparable(origin)? == comparable(other)?).then(|| {
            let slash = if rest.starts_with('/') { "" } else { "/" };
            format!("{origin}{slash}{rest}")
        });
    }
    // Two slashes would name a host, and so would two that lean the other way.
    let names_host = |it: &str| it.starts_with("//") || it.contains('\\');
    if named.is_empty() || names_host(named) || named.chars().any(char::is_control) {
        return None;
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Some(match named.chars().next() {
        Some('/') => format!("{origin}{named}"),
        Some('?') => format!("{origin}{}{named}", if path.is_empty() { "/" } else { path }),
        // What has a scheme is another address.
        _ if named.split(['/', '?', '#']).next()?.contains(':') => return None,
        _ => {
            let directory = path.rfind('/').map_or("/", |at| &path[..=at]);
            format!("{origin}{directory}{named}")
        }
    })
}

/// The scheme with the host, and what follows.
fn split(url: &str) -> Option<(&str, &str)> {
    let start = url.find("://")? + 3;
    let is_http = ["http://", "https://"]
        .iter()
        .any(|it| url.get(..start).is_some_and(|scheme| scheme.eq_ignore_ascii_case(it)));
    let end = url[start..].find(['/', '\\', '?', '#']).map_or(url.len(), |at| start + at);
    is_http.then(|| url.split_at(end))
}

/// Scheme, host and port as two origins are compared.
fn comparable(origin: &str) -> Option<(String, String)> {
    let (scheme, authority) = origin.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    // Who is named before an `@` is a user, and no host.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let usual = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(usual).unwrap_or(&host).to_owned();
    (!host.is_empty()).then_some((scheme, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(named: &str, expected: Option<&str>) {
        let found = resolve("http://u:p@Host:80/a/sse?x=1", named);
        assert_eq!(found.as_deref(), expected, "{named:?}");
    }

    // REQ: TOL-11
    #[test]
    fn address_for_messages_is_of_the_servers_own_origin() {
        check("/m?s=1", Some("http://u:p@Host:80/m?s=1"));
        check(" m ", Some("http://u:p@Host:80/a/m"));
        check("?s=1", Some("http://u:p@Host:80/a/sse?s=1"));
        check("http://host/m", Some("http://u:p@Host:80/m"));
        check("HTTP://HOST:80?s", Some("http://u:p@Host:80/?s"));
        for other in [
            "https://host/m",
            "http://host:81/m",
            "http://other/m",
            "http://host@other/m",
            "http://host.other/m",
            "//other/m",
            "/\\other/m",
            "\\\\other",
            "file:///m",
            "data:x",
            "javascript:x",
            "",
            "/a\tb",
            "http://",
            "http://other\\@host/m",
        ] {
            check(other, None);
        }
    }
}
