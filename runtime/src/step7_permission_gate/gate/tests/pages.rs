//! Pages from the web: which hosts are asked about, and which rule is for which.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

// REQ: TOL-6, PRM-8
#[test]
fn pages_are_asked_about_by_host_and_documentation_is_not() {
    use Mode::*;
    let fetch = spec("WebFetch", Access::Ask, ToolEffect::ReadOnly);
    let known = r#"{"url":"https://docs.python.org/3/","prompt":"x"}"#;
    let other = r#"{"url":"https://example.com/","prompt":"x"}"#;
    for mode in [Default, Plan, DontAsk, AcceptEdits, BypassPermissions] {
        check(mode, &[], &fetch, known, "allow");
        check(mode, &["deny user WebFetch(domain:docs.python.org)"], &fetch, known, "deny");
        let asked = if mode == DontAsk { "deny" } else { "ask" };
        check(mode, &["ask user WebFetch(domain:*.python.org)"], &fetch, known, asked);
    }
    for (mode, expected) in
        [(Default, "ask"), (Plan, "ask"), (DontAsk, "deny"), (BypassPermissions, "allow")]
    {
        check(mode, &[], &fetch, other, expected);
        check(mode, &["allow user WebFetch(domain:example.com)"], &fetch, other, "allow");
        check(mode, &["deny user WebFetch(domain:example.com)"], &fetch, other, "deny");
    }
    // What is behind a firewall is allowed by a rule that names it, and by no leave for the web.
    for host in
        ["127.0.0.1:9222", "10.0.0.8", "localhost:3000", "a.localhost", "[::1]", "[fd00::1]"]
    {
        let near = format!(r#"{{"url":"http://{host}/","prompt":"x"}}"#);
        for rule in [
            "allow user WebFetch",
            "allow user WebFetch(domain:*)",
            "allow user WebFetch(domain:*.localhost)",
        ] {
            check(Default, &[rule], &fetch, &near, "ask");
        }
        let name = host.strip_suffix(":9222").or(host.strip_suffix(":3000")).unwrap_or(host);
        check(Default, &[&format!("allow user WebFetch(domain:{name})")], &fetch, &near, "allow");
    }
    check(Default, &["allow user WebFetch"], &fetch, other, "allow");
    // A pattern that no host can be is not understood.
    for odd in ["münchen.de", "example.com:443", "https://example.com", "example.com/", ""] {
        check(Default, &[&format!("deny user WebFetch(domain:{odd})")], &fetch, other, "ask");
        check(Default, &[&format!("allow user WebFetch(domain:{odd})")], &fetch, other, "ask");
    }
    // Where the host is not certain, a rule that may be about it has it asked.
    let unsure = r#"{"url":"https://a@example.com/","prompt":"x"}"#;
    check(BypassPermissions, &["deny user WebFetch(domain:example.com)"], &fetch, unsure, "ask");
    let tool = Arc::new(fetch);
    let setup = setup(Default, Handler::Approver, &[]);
    let (_, step) = Gate::open(call(&tool, other), &tool, &setup);
    let GateStep::Ask { suggestions, .. } = step else { panic!("{step:?}") };
    assert_eq!(suggestions, ["WebFetch(domain:example.com)"]);
}
