//! Commands whose paths lead through links that are there already.

use serde_json::json;

use super::*;
use crate::step7_permission_gate::LinksSeen;

fn tree(path: &str) -> PathEntry {
    match path {
        "/w" | "/w/secrets" | "/w/secrets/deep" | "/w/.git" | "/w/src" | "/w/plain"
        | "/elsewhere" => PathEntry::Directory,
        "/w/secrets/prod.key" | "/w/.git/config" | "/w/src/a.rs" | "/w/plain/b.rs" => {
            PathEntry::File
        }
        "/w/lnk" | "/w/src/lnk" => PathEntry::Link("/w/secrets".into()),
        "/w/down" => PathEntry::Link("secrets/deep".into()),
        "/w/chain" => PathEntry::Link("src/lnk".into()),
        "/w/note" => PathEntry::Link("lnk/prod.key".into()),
        "/w/g" => PathEntry::Link(".git".into()),
        "/w/out" => PathEntry::Link("/elsewhere".into()),
        "/w/ring" => PathEntry::Link("ring".into()),
        _ => PathEntry::Missing,
    }
}

/// The same tree, listed.
const TREE: Look = Look {
    at: tree,
    list: |directory, _| {
        let names: &[&str] = match directory {
            "/w" => &[
                "secrets", ".git", "src", "plain", "lnk", "down", "chain", "note", "g", "out",
                "ring",
            ],
            "/w/src" => &["lnk"],
            "/w/secrets" => &["deep"],
            _ => &[],
        };
        let names: Vec<String> = names.iter().map(|it| it.to_string()).collect();
        Some(Listing { n_read: names.len(), names })
    },
};

#[track_caller]
fn check(texts: &[&str], command: &str, expected: &str) {
    let setup = setup(Mode::Default, Handler::Approver, texts);
    let input = json!({ "command": command }).to_string();
    let found = outcome_in(TREE, &bash(), &setup, &input);
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

// REQ: PRM-8
#[test]
fn what_a_pattern_meets_through_a_link_is_denied_by_where_it_lies() {
    for command in [
        "cat l*/prod.key",
        "cat l*/*.key",
        "cat l?k/prod.key",
        "cat [l]nk/prod.key",
        "cat s*/l*/prod.key",
        "cat */lnk/prod.key",
        "cat /w/l*/prod.key",
        "cat n*",
        "cat not?",
        "wc -l < n*",
        "grep -r x l*",
        "grep -r x l*/",
        "cat dow*/../prod.key",
        "cp l*/prod.key out.txt",
        "python3 l*/prod.key",
        "cd src; cat l*/prod.key",
        "echo x > l*/prod.key",
    ] {
        check(&DENY, command, "deny");
    }
    for command in ["cp src/a.rs g*/config", "touch g?/hooks/x", "rm g*/config", "cp a.rs [g]/x"] {
        check(&["allow project Bash", "allow project Edit"], command, "ask");
    }
    for command in ["cat o*/file", "ls o*/"] {
        check(&[], command, "ask");
    }
    for command in ["cat p*/b.rs", "wc -l plain/*.rs", "cat p*/*.rs", "ls x*/*"] {
        check(&DENY, command, "allow");
        check(&DENY[..1], command, "allow");
    }
}

// REQ: PRM-8
#[test]
fn program_that_follows_links_it_meets_is_asked_for_where_files_are_denied() {
    for command in [
        "grep -R x src",
        "grep -nR x src",
        "grep --dereference-recursive x src",
        "rg -L x src",
        "rg --follow x src",
        "cp -rL src copy",
        "cp -aL src copy",
        "cp --recursive --dereference src copy",
        "rsync -aL src/ copy",
        "rsync -a --copy-links src/ copy",
        "rsync -ak src/ copy",
        "find -L src -name '*.key'",
        "find src -follow -name x",
        "tar -chf a.tar src",
        "tar chf a.tar src",
        "tar -c --dereference -f a.tar src",
        "ls -LR src",
        "ls -R -L src",
        "du -L src",
        "tree -l src",
        "diff -r src plain",
        "scp -r src host:",
        "zip -r a.zip src",
        "git --work-tree=plain diff",
        "git --git-dir=src/bare show HEAD:x",
        "git --git-dir src/bare log",
        "git -c core.worktree=plain diff",
        "find . -type l -exec cat {} +",
        "find . -lname '*key' -exec cat {} +",
        "find src -name 'l*' -exec cat {}/prod.key ';'",
        "find . -type l | xargs cat",
        "find . -type f,l -print0 | xargs -0 cat",
        "ls | xargs -I{} cat {}/prod.key",
        "ls src | xargs -I % sh -c 'cat' %/prod.key",
        "fd -t l -x cat",
        "GIT_DIR=src/bare git show HEAD:x",
        "env GIT_WORK_TREE=plain git diff",
        "sh -c 'grep -R x src'",
    ] {
        check(&DENY, command, "ask");
        check(&["deny project Edit(src/gen/**)", "allow project Bash"], command, "ask");
    }
    for command in [
        "grep -rn x src",
        "rg -l x src",
        "cp -r src copy",
        "cp -L src/a.rs copy",
        "rsync -a src/ copy",
        "find src -name '*.rs'",
        "find . -type l",
        "find src -name '*.rs' | xargs wc -l",
        "find src -type f -exec grep -n x {} +",
        "git -c core.worktree=. status",
        "tar -cf a.tar src",
        "ls -R src",
        "ls -lL src",
        "du -sh src",
        "tree -L 2 src",
        "zip -ry a.zip src",
        "git --git-dir=.git status",
    ] {
        check(&DENY, command, "allow");
    }
    for command in ["grep -R x src", "find -L src -name x", "cp -rL src copy", "diff -r src plain"]
    {
        check(&["allow project Bash"], command, "allow");
    }
}

// REQ: PRM-4
#[test]
fn program_that_changes_what_it_meets_through_links_is_asked_for() {
    for command in [
        "find -L src -name config -exec sed -i s/a/b/ {} +",
        "find -L src -name config -delete",
        "chown -RL me src",
        "chmod -R -L u+x src",
        "rsync -aK plain/ src",
        "rsync -a --keep-dirlinks plain/ src",
        "tar -x --keep-directory-symlink -f a.tar",
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
    for (command, links) in [
        ("cd lnk && cat prod.key", &["/w/lnk"][..]),
        ("cat note; cd g && echo x > config", &["/w/g", "/w/lnk", "/w/note"]),
        ("cat l*/prod.key", &["/w/lnk"]),
        ("cat sr*/l*/prod.key", &["/w/src/lnk"]),
    ] {
        let order = order(command);
        let judged = order.judge(TREE);
        assert!(judged.links().links.keys().eq(links), "{command}: {:?}", judged.links());
        assert_eq!(judged.answer, super::stage3::RuleVerdict::Deny, "{command}");
        // Without them it would be let pass, or be judged by something else.
        assert_ne!(order.judge_again(LinksSeen::default()).answer, judged.answer, "{command}");
        assert_eq!(order.judge_again(judged.links().clone()), judged, "{command}");
        let text = serde_json::to_string(judged.links()).unwrap();
        assert_eq!(&serde_json::from_str::<LinksSeen>(&text).unwrap(), judged.links());
    }
    let order = order("cat src/a.rs");
    assert!(order.judge(TREE).links().is_empty());
    assert_eq!(order.judge_again(LinksSeen::default()), order.judge(TREE));
}

#[test]
fn command_with_too_many_paths_is_left_to_a_thread_of_its_own_and_asked_beyond_its_bound() {
    let many = |n: usize| (0..n).map(|i| format!("cat f{i}\n")).collect::<String>();
    assert!(order(&many(100)).judge_in_place(TREE).is_some());
    assert_eq!(order(&many(300)).judge_in_place(TREE), None);
    let names: String = (0..9_000).map(|i| format!(" {i:x}")).collect();
    let order = order(&format!("cd src; cd /w/g; cat{names}"));
    let judged = order.judge(TREE);
    assert_eq!(order.judge_again(judged.links().clone()), judged);
    assert!(judged.links().is_cut, "{judged:?}");
    assert_eq!(judged.answer, super::stage3::RuleVerdict::Ask, "{judged:?}");
}
