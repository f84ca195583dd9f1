//! What operators and tags become.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

// REQ: MDL-11
#[test]
fn operators_become_calls_as_tightly_as_they_bind() {
    for (source, expected) in [
        ("a ~ b", "bounded_cat(a , b)"),
        ("a ~ b ~ c", "bounded_cat(a , b , c)"),
        ("a + b ~ c * d", "bounded_add(a , bounded_cat(b , bounded_mul(c , d)))"),
        ("a - b + c", "bounded_add(a - b , c)"),
        ("a + b - c + d", "bounded_add(bounded_add(a , b) - c , d)"),
        ("(a ~ b)|json", "(bounded_cat(a , b))|json"),
        ("a|join('+') ~ b.c[d ~ 1]", "bounded_cat(a|join('+') , b.c[bounded_cat(d , 1)])"),
        ("-a * -b", "bounded_mul(-a , -b)"),
        ("x if a ~ b else c + d", "x if bounded_cat(a , b) else bounded_add(c , d)"),
        ("not a ~ b", "not bounded_cat(a , b)"),
        ("a is not string ~ b", "bounded_cat(a is not string , b)"),
        ("a is divisibleby 3 and b + 1 == c", "a is divisibleby 3 and bounded_add(b , 1) == c"),
        ("f(a + b, k=c ~ d)", "f(bounded_add(a , b), k=bounded_cat(c , d))"),
        ("{'a': b ~ c}", "{'a': bounded_cat(b , c)}"),
        ("a ** b // c % d", "a ** b // c % d"),
        ("'a ~ \\' b'", "'a ~ \\' b'"),
        ("a\n~ b", "bounded_cat(a\n, b)"),
    ] {
        assert_eq!(super::expression(source).unwrap(), expected, "{source}");
    }
}

// REQ: MDL-11
#[test]
fn tags_are_rewritten_and_texts_comments_and_raw_parts_are_not() {
    let source = "a ~ b {# x ~ y }} #}{{- a ~ b -}}{% for x, y in a + b if c ~ d %}{% set n.x = a * 2 %}\
                  {% raw %}{{ a ~ b }}{% endraw %}{{ {'k': {'l': 1}} }} + c";
    let expected = "a ~ b {# x ~ y }} #}{{- bounded_cat(a , b) -}}{% for x, y in bounded_add(a , b) \
                    if bounded_cat(c , d) %}{% set n.x = bounded_mul(a , 2) %}\
                    {% raw %}{{ a ~ b }}{% endraw %}{{ {'k': {'l': 1}} }} + c";
    assert_eq!(template(source).unwrap(), expected);
    for source in [
        "{% macro f() %}",
        "{% set x %}",
        "{%- call f() %}",
        "{% filter upper %}",
        "{% include 'x' %}",
        "{% for x in y recursive %}",
        "{% block a %}",
    ] {
        assert!(template(source).unwrap_err().contains("is not supported"), "{source}");
    }
    for source in ["{{ 'no end }}", &format!("{{{{ {}1", "(".repeat(100))] {
        assert!(template(source).is_err(), "{source}");
    }
    for source in ["{{", "{% raw %}", "{#", "{{ ) ~ ( }}", "}} %}"] {
        assert!(template(source).is_ok(), "{source}");
    }
}

#[test]
fn operator_without_a_right_side_is_an_error() {
    for source in ["1 +", "(a ~ )", "a * , b"] {
        assert!(expression(source).unwrap_err().starts_with("syntax error"), "{source}");
    }
}

#[test]
fn long_chains_take_time_linear_in_their_length_or_are_refused() {
    let long = format!("{{{{ {}a }}}}", "a + ".repeat(2_000));
    assert!(template(&long).is_ok());
    let deep = format!("{{{{ {}a }}}}", "-".repeat(100_000));
    assert!(template(&deep).is_ok());
}
