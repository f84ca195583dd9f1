//! Hosts on the web: which of them is read without a question, and which rule is suggested for the others.

use super::rule_book::host;

/// The tool whose rules name hosts.
pub(super) const WEB_FETCH: &str = "WebFetch";

/// Hosts of documentation that need no rule. What is on them is written by those who run them: hosts with forums, comments,
/// wikis, profiles, playgrounds, archives of mail or packages of others are left out, since anybody could put a text there.
const DOCUMENTATION: [&str; 25] = [
    "code.claude.com",
    "devdocs.io",
    "doc.rust-lang.org",
    "docs.aws.amazon.com",
    "docs.djangoproject.com",
    "docs.docker.com",
    "docs.github.com",
    "docs.gitlab.com",
    "docs.oracle.com",
    "docs.python.org",
    "docs.spring.io",
    "docs.swift.org",
    "git-scm.com",
    "httpwg.org",
    "kotlinlang.org",
    "kubernetes.io",
    "modelcontextprotocol.io",
    "nextjs.org",
    "nodejs.org",
    "peps.python.org",
    "platform.claude.com",
    "react.dev",
    "tailwindcss.com",
    "vuejs.org",
    "www.typescriptlang.org",
];

/// Returns whether an address is on a host of documentation, at the port that browsers use.
pub(super) fn is_documentation(url: &str) -> bool {
    let Some(found) = host(url) else { return false };
    let authority = url.split("://").nth(1).and_then(|it| it.split(['/', '?', '#']).next());
    // A port is not a part of the host.
    let is_plain = authority.is_some_and(|it| !it.contains([':', '\\']));
    is_plain && DOCUMENTATION.contains(&&*found)
}

/// Returns the rule that allows all pages of the host of an address; `None` where the host is not certain, or a rule
/// with its name would mean more than that.
pub(super) fn suggested(url: &str) -> Option<String> {
    let host = host(url)?;
    let is_literal = |it: u8| it.is_ascii_alphanumeric() || b".-_[]:".contains(&it);
    host.bytes().all(is_literal).then(|| format!("{WEB_FETCH}(domain:{host})"))
}

/// Returns the host of an http(s) address as rules see it, in lower case and without a dot at its end; `None` when it is
/// not certain.
pub fn host_of_rules(url: &str) -> Option<String> {
    host(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: PRM-8
    #[test]
    fn documentation_is_on_hosts_of_the_list_and_on_no_other_that_looks_like_one() {
        for url in [
            "https://docs.python.org/3/",
            "http://DOCS.python.org.",
            "https://react.dev?q=1",
            "https://react.dev#a",
        ] {
            assert!(is_documentation(url), "{url}");
        }
        for url in [
            "https://docs.python.org.evil.com/",
            "https://docs.python.org@evil.com/",
            "https://evil.com/docs.python.org",
            "https://docs.python.org:8443/",
            "https://docs.python.org\\@evil.com/",
            "https://sub.react.dev/",
            "https:react.dev",
            "ftp://react.dev/",
            "",
        ] {
            assert!(!is_documentation(url), "{url}");
        }
        assert!(DOCUMENTATION.iter().all(|it| it.len() > 4 && !it.contains(['*', '/'])));
    }

    // REQ: PRM-8
    #[test]
    fn rule_is_suggested_for_one_host_and_never_for_more() {
        for (url, expected) in [
            ("https://Example.com./a", Some("WebFetch(domain:example.com)")),
            ("http://localhost:8080/", Some("WebFetch(domain:localhost)")),
            ("http://[::1]:80/x", Some("WebFetch(domain:[::1])")),
            ("https://*/", None),
            ("https://*.com/", None),
            ("https://a)b/", None),
            ("https://user@example.com/", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(suggested(url).as_deref(), expected, "{url}");
        }
    }
}
