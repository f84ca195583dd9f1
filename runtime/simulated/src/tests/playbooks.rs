//! Playbooks that cannot be read.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let error = Playbook::parse(text, "bad.toml").expect_err(text).to_string();
    assert!(error.starts_with("playbook bad.toml"), "{error}");
    assert!(error.contains(expected), "{error}\n  lacks: {expected}");
    assert!(!error.contains('\n'), "{error}");
}

fn rule(lines: &str) -> String {
    format!("{HELLO}\n[[rule]]\nname = \"second\"\n{lines}")
}

// REQ: MDL-11
#[test]
fn one_line_says_which_rule_and_what_is_wrong() {
    check("", "it has no rule");
    check("\n\nrule = [", "line 3: ");
    check("keys = 1\n", "unknown field `keys`");
    check("[[rule]]\nreply = []\n", "rule `1`: missing field `name`");
    check(&rule(""), "rule `second`: it has neither `reply` nor `fault.status`");
    check(&rule("reply = []\nfault.status = 500"), "only one of them");
    check(&rule("reply = []\nfault = { action = 'end', before_head = true }"), "only one of them");
    check(&rule("reply = []\nfault = {}\nfaults = []"), "both `fault` and `faults`");
    check(&rule("faults = []"), "it has neither `reply` nor enough `faults`");
    check(&rule("times = 2\nfaults = [{ status = 500 }]"), "nor enough `faults`");
    check(&rule("faults = [{ status = 500 }, {}]"), "faults 2 has no `status`");
    check(&rule("reply = []\nfaults = [{ status = 1 }]"), "faults 1.status: must be 200 to 599");
    check(&rule("reply = []\nfault.before_head = true"), "fault.before_head: needs `action`");
    check(&rule("reply = []\nfault.body = 'x'"), "fault.body: needs `status`");
    check(&rule("fault = { status = 200, body = 'x', body_file = 'x' }"), "both `body` and");
    check(&rule("fault = { status = 200, body_file = 'x' }"), "fault.body_file: x: no files");
    check(&rule("reply = []\nfault = { action = 'end', at = '(' }"), "fault.at: syntax error");
    check(&rule("reply = []\nfault = { action = 'end', at = -1 }"), "a whole number");
    check(&rule("reply = []\nwhen.modle = 'x'"), "rule `second`: when: unknown field `modle`");
    check(&rule("reply = []\nwhen.prompt = 3"), "a text, a list of texts");
    check(&rule("reply = []\nwhen.turns = 'x'"), "a whole number");
    check(&rule("reply = []\nwhen.prompt.regex = '('"), "when.prompt: bad regular expression `(`");
    check(&rule("reply = []\nwhen.if = '1 +'"), "when.if: syntax error");
    check(&rule("reply = [{ text = '{{' }]"), "rule `second`: reply 1: syntax error");
    check(&rule("reply = [{ text = 'x' }, { }]"), "reply 2: exactly one of");
    check(&rule("reply = [{ text = 'x', input = {} }]"), "an input without `tool`");
    check(&rule("reply = [{ tool = 'x', input = {}, input_json = '' }]"), "both `input`");
    check(&rule("reply = [{ text = 'x', each = '(' }]"), "syntax error");
    check(&rule("reply = []\nlet.a = '('"), "let.a: syntax error");
    check(&rule("reply = []\nlet.a = 3"), "let.a: expected an expression");
    check(&rule("reply = []\nlet.a.json = '{% if'"), "let.a: syntax error");
    check(&rule("reply = []\nwith = 'x'"), "rule `second`: with: there are no `values.x`");
    check(&format!("values.x.y = '('\n{HELLO}"), "values.x.y: syntax error");
    check(&rule("reply = []\nusage.output_tokens = '('"), "usage: syntax error");
    check(&rule("reply = []\npace.cut = [0]"), "pace.cut: sizes must be at least 1");
    check(&rule("reply = []\npace.cut = [-1]"), "pace: ");
    check(&rule("reply = []\ndelta = 0"), "must be at least 1");
    check(&rule("reply = []\nfault.action = 'explode'"), "fault: unknown variant `explode`");
    check(&rule("fault.status = 99"), "fault.status: must be 200 to 599");
    check(&rule("reply = []\nfault.size = 99999999"), "fault.size: at most");
    check(&rule("fault.status = 500\nfault.headers = { 'a b' = 'x' }"), "bad header `a b`");
    check(&format!("{HELLO}{HELLO}"), "rule `hello`: another rule has this name");
    check(&rule("reply = []\ntypo = 1"), "rule `second`: unknown field `typo`");
}
