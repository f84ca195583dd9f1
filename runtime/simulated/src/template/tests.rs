//! What templates give, and what they may cost.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

#[track_caller]
fn check(template: &str, expected: &str) {
    let mut templates = Templates::new();
    let got = templates
        .add(template)
        .and_then(|id| templates.render(id, Value::from_pairs([("text", "a1 b22\nc3")])));
    assert_eq!(got.unwrap_or_else(|error| format!("error: {error}")), expected, "{template}");
}

// REQ: MDL-11
#[test]
fn functions_read_texts() {
    for (template, expected) in [
        (r"{{ text|find_all('[a-z]\\d+')|join('+') }}", "a1+b22+c3"),
        (r"{{ text|find_all('[a-z](\\d+)')|map('int')|sum }}", "26"),
        (r"{{ (text|find_all('([a-z])(\\d+)'))[1][0] }}", "b"),
        (r"{{ (text|capture('b(\\d)'))[1] }}", "2"),
        (r"{{ text|capture('nothing')|length }}", "0"),
        (r"{{ text|matches('^a') }} {{ text|lines|length }}", "True 2"),
        (r"{{ text|sub('\\d+', '.')|json }}", r#""a. b.\nc.""#),
        (r"{{ 'of 1,234 files'|number + 1 }}", "1235"),
        (r#"{{ ('{"k":[1,2]}'|parse_json).k|sum }}"#, "3"),
    ] {
        check(template, expected);
    }
}

// REQ: MDL-11
#[test]
fn what_goes_wrong_is_one_line_and_bounded() {
    for (template, expected) in [
        ("{{ nothing }}", "undefined"),
        ("{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}", "fuel"),
        ("{{ 'x' * 9000000 }}", "8 MiB"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "`macro` is not supported"),
        ("{{ 'x'|matches('(') }}", "bad regular expression `(`: unclosed group"),
        ("{{ 'none'|number }}", "no number in `none`"),
        ("{{ '{'|parse_json }}", "no JSON"),
        ("{% if %}", "syntax error"),
    ] {
        let mut templates = Templates::new();
        let got = templates.add(template).and_then(|id| templates.render(id, Value::from(())));
        let error = got.expect_err(template);
        assert!(!error.contains('\n'), "{error}");
        assert!(error.contains(expected), "{template}: {error}");
    }
}

/// A value that is made of itself, time and again.
fn grown(step: &str, end: &str) -> String {
    format!(
        "{{% set n = namespace(x='xx\\n', l=['x']) %}}\
         {{% for i in range(60) %}}{{% set n.x = {step} %}}{{% endfor %}}{{{{ ({end})|length }}}}"
    )
}

// REQ: MDL-11
#[test]
fn memory_is_bounded_whatever_a_value_grows_by() {
    check_bounded(&[
        grown("n.x ~ n.x", "n.x"),
        grown("n.x + n.x", "n.x"),
        grown("n.x * 2", "n.x"),
        grown("2 * n.x", "n.x"),
        grown("n.x|sub('x', 'xx')", "n.x"),
        grown("n.x|sub('(?s)^.*$', '$0$0')", "n.x"),
        grown("n.x|replace('x', 'xx')", "n.x"),
        grown("[n.x, n.x]|join", "n.x"),
        grown("[n.x, n.x]|join(n.x)", "n.x"),
        grown("'%s%s'|format(n.x, n.x)", "n.x"),
        grown("'.' ~ n.x|quote_regex", "n.x"),
        grown("(n.x, n.x)|string", "n.x"),
        grown("[n.x, n.x]|json", "n.x"),
        grown("[n.x, n.x]|tojson(indent=9)", "n.x"),
        grown("[n.x, n.x]|pprint", "n.x"),
        grown("n.x|quote_regex|replace('x', '..')", "n.x"),
        grown("n.l + n.l", "n.l + n.l").replace("set n.x =", "set n.l ="),
        grown("n.l|chain(n.l)|list", "n.l").replace("set n.x =", "set n.l ="),
    ]);
}

// REQ: MDL-11
#[test]
fn memory_is_bounded_whatever_is_large_at_once() {
    let nested = |end: &str| grown("[n.x, n.x]", end);
    check_bounded(&[
        nested("n.x|string"),
        nested("n.x ~ ''"),
        nested("n.x|json"),
        nested("n.x|upper"),
        nested("n.x|join(',')"),
        nested("'%s'|format(n.x)"),
        "{{ '%999999999d'|format(1) }}".into(),
        "{{ '%.999999999f'|format(1.5) }}".into(),
        "{{ '%*d'|format(999999999, 1) }}".into(),
        "{{ 'x' * 90000000 }}".into(),
        "{{ 90000000 * 'x' }}".into(),
        "{{ ([1] * 90000000)|list|length }}".into(),
        "{{ ((1, 2) * 45000000)|length }}".into(),
        "{{ ('x\\n' * 100000)|indent(90000)|length }}".into(),
        "{{ [1]|batch(999999999, 'x')|list }}".into(),
        "{{ [1]|slice(999999999) }}".into(),
        "{{ ('x' * 30000000)|list|length }}".into(),
        "{{ ('x\\n' * 15000000)|lines|length }}".into(),
        "{{ ('x ' * 15000000)|split|length }}".into(),
        "{{ ('x' * 30000000)|find_all('x')|length }}".into(),
    ]);
}

#[track_caller]
fn check_bounded(given: &[String]) {
    for template in given {
        let mut templates = Templates::new();
        let got = templates.add(template).and_then(|id| templates.render(id, Value::from(())));
        let error = got.expect_err(template);
        assert!(error.contains("more than 32 MiB"), "{template}: {error}");
    }
}

// REQ: MDL-11
#[test]
fn operators_and_filters_give_what_they_gave() {
    for (template, expected) in [
        ("{{ 'a' ~ 1 + 1 ~ 'b' }}", "a11b"),
        ("{{ (1 + 2 * 3 - 1) ~ 'x' ~ [1] }}", "6x[1]"),
        ("{{ 'ab' * 2 + 'c' }}", "ababc"),
        ("{{ ([1] + [2])|join('+') }}", "1+2"),
        ("{{ 7 // 2 ~ '|' ~ 2 ** 3 ~ -1 }}", "3|8-1"),
        ("{{ missing|default('d') ~ 'x'|upper }}", "dX"),
        ("{{ 'a-b'|replace('-', '+')|title }}", "A+b"),
        ("{{ '%5.2f|%s'|format(1.234, 'x') }}", " 1.23|x"),
        ("{{ ['b', 'a']|sort|join(', ') }} {{ 'x y'|split|length }}", "a, b 2"),
        ("{{ {'k': [1, 2]}|json }} {{ 'a\nb'|indent(2) }}", "{\"k\":[1,2]} a\n  b"),
        ("{% for x in [1, 2] + [3] if x * 2 > 2 %}{{ x ~ loop.index }}{% endfor %}", "2132"),
        ("{{ 'y' if 'a' ~ 'b' == 'ab' else 'n' }}", "y"),
        ("{{ [1, 2, 3]|batch(2)|map('join', '-')|join(';') }}", "1-2;3"),
    ] {
        check(template, expected);
    }
    let mut templates = Templates::new();
    let id = templates.add("{{ 1 + 'x' }}").unwrap();
    assert!(templates.render(id, Value::from(())).unwrap_err().contains("unsupported types"));
}
