//! Commands whose paths lead through links that are there already.

use serde_json::json;

use super::*;
use crate::step7_permission_gate::LinksSeen;

fn tree(path: &str) -> Found {
    match path {
        "/w" | "/w/secrets" | "/w/secrets/deep" | "/w/.git" | "/w/src" | "/elsewhere" => {
            Found::Directory
        }
        "/w/secrets/prod.key" | "/w/.git/config" | "/w/src/a.rs" => Found::File,
        "/w/lnk" | "/w/src/lnk" => Found::Link("/w/secrets".into()),
        "/w/down" => Found::Link("secrets/deep".into()),
        "/w/chain" => Found::Link("src/lnk".into()),
        "/w/note" => Found::Link("lnk/prod.key".into()),
        "/w/g" => Found::Link(".git".into()),
        "/w/out" => Found::Link("/elsewhere".into()),
        "/w/ring" => Found::Link("ring".into()),
        _ => Found::Missing,
    }
}

#[track_caller]
fn check(texts: &[&str], command: &str, expected: &str) {
    let setup = setup(Mode::Default, Handler::Approver, texts);
    let input = json!({ "command": command }).to_string();
    let found = outcome_in(tree, &bash(), &setup, &input);
    assert!(found.starts_with(expected), "{command}: {found}, not {expected}");
}

const DENY: [&str; 2] = ["deny project Read(secrets/**)", "allow project Bash"];

// REQ: PRM-8
#[test]
fn what_a_linked_directory_holds_is_denied_by_where_it_lies() {
    for command in [
        "cd lnk && cat prod.key",
        "cd lnk; cat prod.key",
        "cd ./lnk/ && cat ./prod.key",
        "cd src/lnk && cat prod.key",
        "cd chain && cat prod.key",
        "cd src && cd lnk && cat prod.key",
        "cd -P down && cd .. && cat prod.key",
        "pushd lnk && cat prod.key",
        "(cd lnk; cat prod.key)",
        "{ cd lnk; cat prod.key; }",
        "if cd lnk; then cat prod.key; fi",
        "sh -c 'cd lnk && cat prod.key'",
        "env -C lnk cat prod.key",
        "sudo -D lnk cat prod.key",
        "git -C lnk show :prod.key",
        "git -C lnk grep x",
        "git -C lnk diff --no-index prod.key /w/src/a.rs",
        "tar -C lnk -c prod.key",
        "tar -cf - -C lnk .",
        "make -C lnk prod.key",
        "cd lnk && grep -r x .",
        "cd lnk && cat < prod.key",
        "cd lnk && cat *.key",
        "cat lnk/prod.key",
        "cat down/../prod.key",
        "cat note",
        "cat < note",
        "wc -l chain/prod.key",
        "grep -r x lnk/",
        "cp lnk/prod.key out.txt",
        "python3 lnk/prod.key",
    ] {
        check(&DENY, command, "deny");
    }
}

// REQ: PRM-4
#[test]
fn protected_file_is_asked_for_through_a_linked_directory() {
    for command in [
        "cd g; echo >> config",
        "cd g && touch hooks/pre-commit",
        "gcc -o g/config a.c",
        "mytool g/config",
        "flock g/config true",
        "env -C g tee config",
        "(cd g; cp /w/src/a.rs config)",
        "pushd g; sed -i s/a/b/ config",
        "git -C g config --file config x y",
        "echo x > g/config",
        "cp src/a.rs g/config",
        "tar -C g -xf a.tar",
    ] {
        check(&["allow project Bash", "allow project Edit"], command, "ask");
    }
}

// REQ: PRM-1
#[test]
fn link_out_of_the_workspace_makes_no_file_part_of_it() {
    for command in ["cat out/file", "cd out && cat file", "cd out", "ls out/"] {
        check(&[], command, "ask");
    }
    check(&["allow project Bash"], "echo x > out/file", "ask");
}

#[test]
fn links_that_lead_to_nothing_denied_change_nothing() {
    for command in ["cd src && cat a.rs", "cat src/a.rs", "cat ring/x", "cat missing/../src/a.rs"] {
        check(&["deny project Read(secrets/**)", "allow project Bash"], command, "allow");
        check(&["deny project Read(secrets/**)"], command, "allow");
    }
}

fn order(command: &str) -> Box<CommandOrder> {
    let setup = setup(Mode::Default, Handler::Approver, &DENY);
    let spec = bash();
    let input = json!({ "command": command }).to_string();
    match Gate::open(call(&spec, &input), &spec, &setup).1 {
        GateStep::Judge(order) => order,
        other => panic!("{other:?}"),
    }
}

// REQ: SES-4
#[test]
fn command_is_judged_again_by_the_links_that_were_seen() {
    for command in ["cd lnk && cat prod.key", "cat note; cd g && echo x > config", "cat src/a.rs"] {
        let order = order(command);
        let judged = order.judge(tree);
        assert_eq!(order.judge_again(judged.links().clone()), judged, "{command}");
        let text = serde_json::to_string(judged.links()).unwrap();
        assert_eq!(&serde_json::from_str::<LinksSeen>(&text).unwrap(), judged.links());
    }
    assert!(order("cat src/a.rs").judge(tree).links().is_empty());
}

#[test]
fn command_with_too_many_paths_is_left_to_a_thread_of_its_own_and_asked_beyond_its_bound() {
    let many = |n: usize| (0..n).map(|i| format!("cat f{i}\n")).collect::<String>();
    assert!(order(&many(100)).judge_in_place(tree).is_some());
    assert_eq!(order(&many(300)).judge_in_place(tree), None);
    let names: String = (0..9_000).map(|i| format!(" {i:x}")).collect();
    let judged = order(&format!("cd src; cd /w/g; cat{names}")).judge(tree);
    assert!(judged.links().is_cut, "{judged:?}");
    assert_eq!(judged.answer, super::stage3::RuleVerdict::Ask, "{judged:?}");
}
