//! What the reader makes of a text.
//!
//! Built under `#[cfg(test)]` only.

use super::{
    tree::{Command, CommandKind, ListItem, Pipeline, Simple},
    *,
};

/// The simple commands in the order in which they are written, each as its words.
fn words(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    list(&read(text).list, &mut found);
    found
}

fn list(all: &List, found: &mut Vec<Vec<String>>) {
    for ListItem { first, rest, .. } in &all.0 {
        for Pipeline { commands, .. } in [first].into_iter().chain(rest.iter().map(|it| &it.1)) {
            commands.iter().for_each(|it| command(it, found));
        }
    }
}

fn command(one: &Command, found: &mut Vec<Vec<String>>) {
    match &one.kind {
        CommandKind::Simple(Simple { words, assignments, redirections }) => {
            found.push(words.iter().map(|it| it.text.clone()).collect());
            let values = assignments.iter().map(|it| &it.value);
            let targets = redirections.iter().map(|it| &it.target);
            let inner = words.iter().chain(values).chain(targets).flat_map(|it| &it.inner);
            inner.for_each(|it| list(it, found));
        }
        CommandKind::Group(body) | CommandKind::Subshell(body) => list(body, found),
        CommandKind::If(arms, otherwise) => {
            for (condition, body) in arms {
                list(condition, found);
                list(body, found);
            }
            list(otherwise, found);
        }
        CommandKind::While(condition, body) => {
            list(condition, found);
            list(body, found);
        }
        CommandKind::For(_, _, body) | CommandKind::Count(_, body) => list(body, found),
        CommandKind::Case(_, arms) => arms.iter().for_each(|(_, body, _)| list(body, found)),
        CommandKind::Function(_, body) | CommandKind::Coprocess(body) => command(body, found),
        CommandKind::Arithmetic(word) => word.inner.iter().for_each(|it| list(it, found)),
        CommandKind::Test(words) => {
            words.iter().flat_map(|it| &it.inner).for_each(|it| list(it, found))
        }
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(read(text).fault, None, "{text}");
    let found: Vec<String> = words(text).iter().map(|it| it.join("|")).collect();
    assert_eq!(found, expected, "{text}");
}

// REQ: PRM-8
#[test]
fn every_simple_command_of_a_compound_is_found() {
    check("a b && c || d; e & f | g |& h\ni", &["a|b", "c", "d", "e", "f", "g", "h", "i"]);
    check("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
    check("while a; do b; done; until c\ndo d\ndone", &["a", "b", "c", "d"]);
    check("for i in x y; do a; done; for i do b; done; for i\nin z\ndo c; done", &["a", "b", "c"]);
    check("for ((i=0; i<3; i++)); do a; done; for ((;;)) { b; }", &["a", "b"]);
    check("select x in a b; do c; done", &["c"]);
    check("case $x in a|b) c;; (d) e;& *) f;; esac", &["c", "e", "f"]);
    check("case x in (a) b\nesac; c", &["b", "c"]);
    check("f() { a; }; function g { b; }; function h() ( c ); f", &["a", "b", "c", "f"]);
    check("coproc a b; coproc N { c; }; ! d; time -p e; time", &["a|b", "c", "d", "time|-p|e"]);
    check("( (a) ); { b; }; ((1 + 2)); [[ -f x && ( y == z ) ]]", &["a", "b"]);
    check("{ a; } > x; (b) 2>&1 | c", &["a", "b", "c"]);
}

// REQ: PRM-8
#[test]
fn substitutions_are_found_wherever_they_stand() {
    check("a $(b) `c` \"$(d `e`)\"", &["a|$(b)|`c`|$(d `e`)", "b", "c", "d|`e`", "e"]);
    check("x=$(a) y=`b` c > $(d) < <(e)", &["c", "a", "b", "d", "e"]);
    check(
        "a ${x:-$(b)} \"${x#\"$(c)\"}\" ${y/$(d)/`e`}",
        &["a|${x:-$(b)}|${x#\"$(c)\"}|${y/$(d)/`e`}", "b", "c", "d", "e"],
    );
    check("a `b \\`c\\``", &["a|`b \\`c\\``", "b|`c`", "c"]);
    check("a $(case x in x) b;; esac) c", &["a|$(case x in x) b;; esac)|c", "b"]);
    check("a $(b # it's )\n) c", &["a|$(b # it's )\n)|c", "b"]);
    check("a=($(b) [1]=x) c", &["c", "b"]);
}

// REQ: PRM-8
#[test]
fn quotes_and_backslashes_are_removed_as_bash_does() {
    for text in
        ["rm", "r\"m\"", "r\\m", "'r'm", "$'\\x72m'", "$'\\162m'", "$\"rm\"", "r\\\nm", "\"r\"''m"]
    {
        check(text, &["rm"]);
    }
    check("a 'b c' \"d \\$e \\f\" g\\ h", &["a|b c|d $e \\f|g h"]);
    check("a &\\\n& b", &["a", "b"]);
    check("a # b\nc#d", &["a", "c#d"]);
    check("a '' \"\"", &["a||"]);
}

#[test]
fn here_documents_are_read_after_their_line() {
    let script = read("a <<X; b <<-'Y'\n$(c)\nX\n\t$(d)\n\tY\ne");
    assert_eq!(script.fault, None);
    let found: Vec<String> = {
        let mut found = Vec::new();
        list(&script.list, &mut found);
        found.iter().map(|it| it.join("|")).collect()
    };
    assert_eq!(found, ["a", "b", "e"]);
    assert_eq!(script.documents.len(), 2);
    assert_eq!(script.documents[0].inner.len(), 1);
    assert_eq!(script.documents[1].inner.len(), 0);
    assert_eq!(script.documents[1].text, "$(d)\n");
    check(
        "a $(b <<X\nc\nX\n) d",
        &["a|$(b <<X\nc\nX\n)|d", "b|"].map(|it| it.trim_end_matches('|')),
    );
}

// REQ: PRM-8
#[test]
fn what_bash_refuses_or_evaluates_is_a_fault() {
    for (text, fault) in [
        ("a \"b", Fault::Syntax),
        ("a 'b", Fault::Syntax),
        ("a | | b", Fault::Syntax),
        ("a | ! b", Fault::Syntax),
        ("coproc ! b", Fault::Syntax),
        ("if a; then b", Fault::Syntax),
        ("a (b)", Fault::Syntax),
        ("a )", Fault::Syntax),
        ("a $(b", Fault::Syntax),
        ("a <<X\nb", Fault::Syntax),
        ("for f in *; do a", Fault::Syntax),
        ("a\r", Fault::Invisible),
        ("a\u{200b} b", Fault::Invisible),
        ("a \u{202e}", Fault::Invisible),
        ("a\u{a0}b", Fault::Invisible),
        ("a ${x@P}", Fault::Indirection),
        ("a ${!x}", Fault::Indirection),
        ("a $((x[$(b)]))", Fault::Arithmetic),
        ("((a[0]))", Fault::Arithmetic),
        ("a $[b[1]]", Fault::Arithmetic),
        ("[[ a[0] -eq 1 ]]", Fault::Arithmetic),
        ("[[ -v a[0] ]]", Fault::Arithmetic),
        ("a ${x:b[0]}", Fault::Arithmetic),
    ] {
        assert_eq!(read(text).fault, Some(fault), "{text:?}");
    }
    for text in ["a '\u{200b}'", "a $((x + 16#ff))", "[[ $# -gt 0 ]]", "a ${#x} ${x:1:2} ${x%.*}"] {
        assert_eq!(read(text).fault, None, "{text:?}");
    }
}

// REQ: PRM-8
#[test]
fn after_an_error_commands_are_still_found() {
    for text in ["a | | rm", "a ) ; rm", "fi; rm", "a (b); rm", ";; rm", "rm \"x"] {
        let found = words(text);
        assert!(found.iter().any(|it| it[..1] == ["rm"]), "{text}: {found:?}");
    }
}

// REQ: PRM-8
#[test]
fn deep_and_long_texts_end_in_a_fault() {
    for open in [
        "(",
        "{ ",
        "$(",
        "\"$(",
        "if ",
        "${x:-",
        "((",
        "$((",
        "`",
        "while ",
        "[[ (",
        "a=(",
        "! (",
        "case x in x) ",
    ] {
        let text = open.repeat(MAX_BYTES / open.len() - 1);
        assert!(read(&text).fault.is_some(), "{open}");
    }
    assert_eq!(read(&"a ".repeat(MAX_BYTES)).fault, Some(Fault::TooLong));
    let nested = format!("{}a{}", "(".repeat(60), ")".repeat(60));
    assert_eq!(read(&nested.replace("((", "( (").replace("((", "( (")).fault, Some(Fault::TooDeep));
}

#[test]
fn braces_make_several_words() {
    for (text, expected) in [
        ("{a,b}.c", &["a.c", "b.c"][..]),
        ("x{a,{b,c}}", &["xa", "xb", "xc"]),
        ("{1..3}", &["1", "2", "3"]),
        ("{c..a}", &["c", "b", "a"]),
        ("{a}", &["{a}"]),
        ("{}", &["{}"]),
        ("'{a,b}'", &["{a,b}"]),
        ("{a,'b,c'}", &["a", "b,c"]),
    ] {
        let script = read(&format!("x {text}"));
        let mut found = Vec::new();
        let CommandKind::Simple(simple) = &script.list.0[0].first.commands[0].kind else {
            panic!()
        };
        for word in braces::expanded(&simple.words[1]).unwrap() {
            found.push(word.text);
        }
        assert_eq!(found, expected, "{text}");
    }
    let many = "{1,2}".repeat(20);
    let script = read(&many);
    let CommandKind::Simple(simple) = &script.list.0[0].first.commands[0].kind else { panic!() };
    assert_eq!(braces::expanded(&simple.words[0]), None);
}
