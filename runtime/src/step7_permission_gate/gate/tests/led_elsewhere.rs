//! Paths that mean something else once the command runs than before: moved links, links to where a process is,
//! names from a list.

use serde_json::json;

use super::*;

fn tree(path: &str) -> PathEntry {
    match path {
        "/w" | "/w/secrets" | "/w/.git" | "/w/src" | "/w/x" | "/w/x/y" | "/w/a" | "/w/a/b"
        | "/w/a/b/c" | "/w/decoy" | "/w/old" | "/w/plain" => PathEntry::Directory,
        "/w/secrets/prod.key" | "/w/.git/config" | "/w/src/a.rs" | "/w/plain/b.rs" => {
            PathEntry::File
        }
        // They lead to what is denied or protected from one directory above only.
        "/w/x/y/l" => PathEntry::Link("../secrets".into()),
        "/w/x/y/gl" => PathEntry::Link("../.git".into()),
        "/w/src/dk" => PathEntry::Link("./secrets/prod.key".into()),
        "/w/a/b/c/up" => PathEntry::Link("../../secrets/prod.key".into()),
        "/w/decoy/l" => PathEntry::Link("../plain".into()),
        "/w/old/l" => PathEntry::Link("../plain".into()),
        "/w/lnk" => PathEntry::Link("secrets".into()),
        "/w/here" => PathEntry::Link("/proc/self/cwd".into()),
        "/w/top" => PathEntry::Link("/proc/self/root".into()),
        "/w/opened" => PathEntry::Link("/dev/fd".into()),
        "/dev/fd" => PathEntry::Link("/proc/self/fd".into()),
        "/dev/stdin" => PathEntry::Link("/proc/self/fd/0".into()),
        // Those of the process that looks.
        "/proc/self" => PathEntry::Link("12".into()),
        "/proc/12/cwd" | "/proc/self/cwd" => PathEntry::Link("/w".into()),
        "/proc/12/root" | "/proc/self/root" => PathEntry::Link("/".into()),
        "/proc" | "/proc/12" | "/dev" => PathEntry::Directory,
        _ => PathEntry::Missing,
    }
}

const TREE: Look = Look {
    at: tree,
    list: |directory, _| {
        let names: &[&str] = match directory {
            "/w" => &["secrets", "src", "x", "a", "decoy", "old", "plain", "lnk", "here", "top"],
            "/w/x" => &["y"],
            "/w/x/y" => &["l", "gl"],
            _ => &[],
        };
        let names: Vec<String> = names.iter().map(|it| it.to_string()).collect();
        Some(Listing { n_read: names.len(), names })
    },
};

const ALLOW: [&str; 2] = ["allow project Bash", "allow project Edit"];
const DENY: [&str; 3] = ["deny project Read(/secrets/**)", ALLOW[0], ALLOW[1]];

#[track_caller]
fn answer(texts: &[&str], command: &str) -> String {
    let setup = setup(Mode::Default, Handler::Approver, texts);
    let input = json!({ "command": command }).to_string();
    outcome_in(TREE, &bash(), &setup, &input)
}

// REQ: PRM-8
#[test]
fn link_that_a_command_moves_or_copies_is_judged_by_where_it_leads_from_its_new_place() {
    for command in [
        "mv x/y yy; cat yy/l/prod.key",
        "mv x/y yy && cd yy/l && cat prod.key",
        "mv -T x/y yy; cat yy/l/prod.key",
        "mv -t . x/y; cat y/l/prod.key",
        "mv x/y .; cat y/l/prod.key",
        "mv x/* .; cat y/l/prod.key",
        "mv x/y/l l; cat l/prod.key",
        "mv src/dk dk; cat dk",
        "mv src/dk plain/b.rs .; cat dk",
        "cp -a x/y yy; cat yy/l/prod.key",
        "cp -r x/y yy; cat yy/l/prod.key",
        "cp -R x/* .; cat y/l/prod.key",
        "cp -al x/y yy; cat yy/l/prod.key",
        "cp -P src/dk dk; cat < dk",
        "ln src/dk dk; cat dk",
        "rsync -a x/y/ yy; cat yy/l/prod.key",
        "rsync -a x/ .; cat y/l/prod.key",
        "git mv x/y yy; cat yy/l/prod.key",
        "mv a/b/c x/c; cat x/c/up",
        "mv x/y t; mv t yy; cat yy/l/prod.key",
        "mv decoy yy; rm -r yy; mv x/y yy; cat yy/l/prod.key",
        "mv x/y yy; cat yy/l/prod.key; rm -r yy; mv decoy yy",
        "rm -r old; mv x/y old; cat old/l/prod.key",
        "mv x/y yy; cat yy/*/prod.key",
        "sh -c 'mv x/y yy'; cat yy/l/prod.key",
        "sudo mv x/y yy; cat yy/l/prod.key",
        "cd x; mv y ..; cd ../y/l; cat prod.key",
        "mv 1 yy; mv 2 yy; mv 3 yy; mv 4 yy; mv x/y yy; cat yy/l/prod.key",
    ] {
        let found = answer(&DENY, command);
        assert!(found.starts_with("deny") || found.starts_with("ask"), "{command}: {found}");
    }
    for command in [
        "mv x/y yy; echo x >> yy/gl/config",
        "cp -a x/y yy; touch yy/gl/hooks/pre-commit",
        "mv x/y yy && cd yy/gl && echo x > config",
    ] {
        assert!(answer(&ALLOW, command).starts_with("ask"), "{command}");
    }
    for command in [
        "mv plain/b.rs src/; cat src/b.rs",
        "mv plain p2; cat p2/b.rs",
        "cp -r src copy; cat copy/a.rs",
        "mv decoy yy; cat yy/l/b.rs",
        "cp -a plain/. copy && ls copy/b.rs",
        "mv a b; mv b c; cat c/d",
        "mv a b; mv b a; cat a/d",
        "cp src/a.rs src/b.rs src/c.rs plain",
    ] {
        assert!(answer(&DENY, command).starts_with("allow"), "{command}");
    }
}

// REQ: PRM-8, SES-4
#[test]
fn command_that_moves_links_is_judged_again_by_the_links_that_were_seen() {
    for command in
        ["mv x/y yy; cat yy/l/prod.key", "mv x/* .; cat y/l/prod.key", "cat here/../lnk/prod.key"]
    {
        let setup = setup(Mode::Default, Handler::Approver, &DENY);
        let (spec, input) = (bash(), json!({ "command": command }).to_string());
        let GateStep::Judge(order) = Gate::open(call(&spec, &input), &spec, &setup).1 else {
            panic!("{command} is not judged");
        };
        let judged = order.judge(TREE);
        assert_ne!(judged.answer, super::stage3::RuleVerdict::Allow, "{command}");
        assert_eq!(order.judge_again(judged.links().clone()), judged, "{command}");
    }
}

// REQ: PRM-8
#[test]
fn link_to_where_a_process_is_leads_to_a_place_that_nobody_knows() {
    for command in [
        "cd src; cat ../here/../lnk/prod.key",
        "cd src && cat < ../here/../secrets/prod.key",
        "cat here/secrets/prod.key",
        "cd src; cd ../here; cd ../lnk; cat prod.key",
        "cat her*/../lnk/prod.key",
        "exec 3<.; cat opened/3/lnk/prod.key",
        "exec 3<.; cat opened/3/../w/lnk/prod.key",
        "chroot d cat top/secrets/prod.key",
        "tool here/../lnk/prod.key",
    ] {
        let found = answer(&DENY, command);
        assert!(found.starts_with("deny") || found.starts_with("ask"), "{command}: {found}");
    }
    assert!(answer(&ALLOW, "cd src; echo x > ../here/../.git/config").starts_with("ask"));
    assert!(answer(&ALLOW, "cd src; cp a.rs ../here/../anything").starts_with("ask"));
    for command in
        ["cat /dev/stdin < src/a.rs", "cat /proc/self/status", "exec 3< src/a.rs; cat opened/3"]
    {
        assert!(answer(&DENY, command).starts_with("allow"), "{command}");
    }
}

// REQ: PRM-8
#[test]
fn program_that_is_handed_names_in_a_list_is_asked_for_where_reading_is_denied() {
    for command in [
        "tar cf - -T list",
        "tar -cf - --files-from=list",
        "tar cTf list -",
        "wc --files0-from=list",
        "sort --files0-from=- < list",
        "zip -@ z.zip < list",
        "zip z.zip -@ < list",
        "cpio -o < list",
        "ls | cpio -ocv",
        "rsync -a --files-from=list . copy",
        "7z a z.7z @list",
        "wget -i list",
        "curl -K list",
        "curl -s file://$PWD/lnk/prod.key",
        "curl -s \"file://$x\"",
        "u=file:///w/lnk/prod.key; curl -s $u",
    ] {
        assert!(answer(&DENY, command).starts_with("ask"), "{command}: {}", answer(&DENY, command));
        assert!(answer(&ALLOW, command).starts_with("allow"), "{command}");
    }
    for command in [
        "tar xf a.tar",
        "tar -czf a.tgz src",
        "tar tf a.tar",
        "wc -l src/a.rs",
        "zip -r a.zip plain -x '*.o' -y",
        "curl -sS -o out.json https://example.com/x?id=$ID",
        "curl -fsSL https://example.com/x -H \"Authorization: Bearer $TOKEN\"",
        "wget -q https://example.com/x",
    ] {
        assert!(
            answer(&DENY, command).starts_with("allow"),
            "{command}: {}",
            answer(&DENY, command)
        );
    }
}

// REQ: PRM-8
#[test]
fn path_below_what_the_same_command_unpacks_is_asked_about_where_files_are_denied() {
    for command in [
        "tar xf a.tar; cat out/key",
        "tar -xzf a.tgz -C plain && cat plain/out/key",
        "tar --extract -f a.tar; head -1 < out/key",
        "tar xf a.tar; echo x > out/key",
        "unzip -q a.zip && cd a && cat key",
        "unzip a.zip -d plain; cat plain/a/key",
        "7z x a.7z -oplain; cat plain/a/key",
        "cpio -id < a.cpio; cat out/key",
        "patch -p1 < a.diff; cat out/key",
        "git clone https://example.com/a && cat a/key",
        "git checkout other && cat out/key",
        "git pull && head -3 out/key",
        "git stash pop; cat out/key",
        "git checkout other; git diff --no-index a.rs out/key",
        "rsync -a host:tree plain; cat plain/tree/key",
        "docker cp c:/tree plain; cat plain/tree/key",
        "find src -name x -exec mv {} yy \\; ; cat yy/key",
        "find src -name x -exec mv -t yy {} +; cat yy/key",
        "find src -name x | xargs -I{} mv {} yy; cat yy/key",
        "find src -name x -exec mv {} {}.d ';'; cat src/x.d/key",
        "find src -name x -exec cp -a plain {} ';'; cat src/x/key",
        "for i in 1 2; do cat out/key; tar xf a.tar; done",
        "(sleep 1; cat out/key) & tar xf a.tar",
        "cat out/key | tar xf a.tar",
        "f() { cat out/key; }; tar xf a.tar; f",
        "sh -c 'tar xf a.tar'; cat out/key",
        "sudo tar xf a.tar; cat out/key",
    ] {
        assert!(answer(&DENY, command).starts_with("ask"), "{command}: {}", answer(&DENY, command));
    }
    for command in [
        "tar xf a.tar",
        "tar xf a.tar && ls",
        "tar tf a.tar && cat plain/b.rs",
        "tar czf a.tgz src && cat plain/b.rs",
        "cat plain/b.rs && tar xf a.tar",
        "tar xf a.tar -C plain && git status",
        "git checkout -b feature && git add plain/b.rs && git commit -m x",
        "git pull --rebase && cargo test",
        "git stash && git pull && git stash pop",
        "git clone https://example.com/a && cd a && make",
        "find src -name x -exec rm {} +; cat plain/b.rs",
        "unzip -q a.zip && npm test",
    ] {
        assert!(
            answer(&DENY, command).starts_with("allow"),
            "{command}: {}",
            answer(&DENY, command)
        );
        assert!(answer(&ALLOW, command).starts_with("allow"), "{command}");
    }
    for command in ["tar xf a.tar; cat out/key", "git pull && head -3 out/key"] {
        assert!(answer(&ALLOW, command).starts_with("allow"), "{command}");
    }
}

// REQ: PRM-2
#[test]
fn links_that_are_moved_again_and_again_are_asked_about_and_not_followed_for_ever() {
    let why = "it names more paths than can be followed";
    for one in
        ["ln -s lnk b; ln -s b lnk; ", "ln -s x/y/l b; cp -a b x/y/l; ", "mv lnk b; mv b/lnk x; "]
    {
        let found = answer(&ALLOW, &one.repeat(400));
        assert!(found.starts_with("ask") && found.contains(why), "{one}: {found}");
    }
    let moves: String = (0..300).map(|i| format!("mv plain/{i} src/{i}; ")).collect();
    assert!(answer(&ALLOW, &moves).starts_with("allow"));
}
