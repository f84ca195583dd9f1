//! Writes to protected paths by unexpected programs, and to files by redirections.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

/// Commands that write to protected paths.
const WRITES: [&str; 52] = [
    "gcc -o .git/hooks/x x.c",
    "gcc -o.git/hooks/x x.c",
    "clang -MF .git/x -c x.c",
    "rustc --out-dir=.git/hooks x.rs",
    "go build -o .git/hooks/pre-commit .",
    "javac -d .git/hooks X.java",
    "tsc --outDir .vscode",
    "wget -P .git http://x/config",
    "wget --directory-prefix=.git http://x/config",
    "wget -O .git/config http://x",
    "curl -o .git/config http://x",
    "curl --output-dir .git -O http://x/config",
    "curl --create-dirs -D .git/x http://x",
    "curl -c .bashrc http://x",
    "rsync x .git/hooks/",
    "rsync --log-file=.git/x a b",
    "rsync --backup-dir=.git/x a b",
    "install -m 755 x .git/hooks/pre-commit",
    "install -D -t .git/hooks x",
    "unzip -d .git x.zip",
    "unzip x.zip -d .git",
    "dd if=x of=.git/config",
    "7z x -o.git x.7z",
    "xxd x .git/config",
    "sdiff -o .git/config a b",
    "yq -i .a=1 .vscode/x.yaml",
    "python3 -c \"open('.git/hooks/x', 'w')\"",
    "python3 <<X\nopen('.git/hooks/x', 'w')\nX",
    "echo \"open('.git/hooks/x', 'w')\" | python3",
    "perl -e 'open F, \">.git/config\"'",
    "ruby -e 'File.write(\".git/config\", 1)'",
    "node -e 'fs.writeFileSync(`.git/config`, 1)'",
    "vim -c 'w! .git/config' -c q x",
    "npx prettier --write .vscode/settings.json",
    "code --install-extension x --user-data-dir .vscode",
    "docker run -v ./.git:/w image",
    "sqlite3 .git/x.db .dump",
    "openssl rand -out .git/config 5",
    "ssh-keygen -f .ssh/id",
    "cargo install --root .cargo x",
    "npm config set x --userconfig .npmrc",
    "env A=b gcc -o .git/hooks/x x.c",
    "sudo -u root tool .git/config",
    "git --work-tree=.git/hooks checkout HEAD -- x",
    "git --work-tree .husky checkout -f",
    "git -C .husky checkout HEAD -- pre-commit",
    "git checkout other -- .vscode/settings.json",
    "git restore --source=other .bashrc",
    "git apply --directory=.vscode x",
    "GIT_WORK_TREE=.husky git checkout -f",
    "find .git -type f | xargs rm",
    "echo .git/config | xargs -n 1 rm",
];

// REQ: PRM-4
#[test]
fn no_rule_lets_any_program_write_a_protected_path_that_it_names() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
        check_each(mode, &["allow project Bash", "allow project Edit(**)"], &WRITES, "ask");
    }
    check_each(Mode::DontAsk, &["allow project Bash"], &WRITES, "deny");
    let harmless = [
        "gcc -o build/x x.c",
        "wget -P out http://x/.git/config",
        "curl -o out http://x/.git/config",
        "rsync -a --exclude .git --exclude=.vscode src/ out/",
        "npx prettier --ignore-path .gitignore --write src",
        "npx eslint --ignore-pattern .vscode src",
        "fd -E .git x",
        "tree -I .git",
        "shellcheck .husky/pre-commit",
        "cat .git/config | tool",
        "jq . .mcp.json",
        "python3 -c 'print(1)'",
        "perl -ne 'print if /.git/' x",
        "git status",
        "git checkout -b feature",
        "git checkout -- src/a",
        "git add .vscode/settings.json",
        "git commit -m 'mend .git/config'",
        "GIT_DIR=.git git log",
        "find .git -name x | xargs ls",
        "sudo cat .git/config",
        "docker build -t x .",
    ];
    check_each(Mode::Default, &["allow project Bash"], &harmless, "allow");
}

// REQ: PRM-8
#[test]
fn read_deny_rules_hold_for_names_that_come_through_a_pipe_or_from_options_of_git() {
    let texts = &["deny project Read(.env)", "deny project Read(secrets/**)", "allow project Bash"];
    let denied = [
        "echo .env | xargs cat",
        "echo a .env b | xargs -n 1 head -1",
        "printf '%s\\n' .env | xargs -I{} cp {} out",
        "find . -name .env | xargs cat",
        "find . -name '.en*' -print0 | xargs -0 grep x",
        "find secrets -type f | xargs cat",
        "ls secrets/a | xargs cat",
        "git --work-tree=secrets grep x",
        "git --work-tree secrets diff --no-index a prod.key",
        "git --git-dir=secrets/.git show HEAD:x",
    ];
    check_each(Mode::Default, texts, &denied, "deny");
    let unknown = [
        "cat list | xargs cat",
        "echo $x | xargs cat",
        "xargs -a list cat",
        "git grep --pathspec-from-file=list x",
        "git log -p --stdin",
        "git hash-object -w --stdin-paths",
    ];
    check_each(Mode::Default, texts, &unknown, "ask");
    let harmless = [
        "find src -name '*.rs' | xargs grep -n TODO",
        "git ls-files '*.rs' | xargs wc -l",
        "rg -l x src | xargs sed -n 1p",
        "echo a b | xargs cat",
        "cat list | xargs ls",
        "cat list | xargs echo",
    ];
    check_each(Mode::Default, texts, &harmless, "allow");
}

// REQ: PRM-4, PRM-5
#[test]
fn redirection_into_the_workspace_passes_with_a_rule_for_all_commands_and_is_asked_about_with_its_rule()
 {
    let command = "cargo test > out.log 2>&1";
    for all in ["allow project Bash", "allow project Bash(*)"] {
        check(Mode::Default, &[all], &bash(), &run(command), "allow");
        check(Mode::Default, &[all], &bash(), &run("cargo test | tee -a out.log"), "allow");
        check(Mode::DontAsk, &[all], &bash(), &run(command), "allow");
        for outside in [
            "cargo test > /tmp/out.log",
            "cargo test > ../out.log",
            "cargo test > .git/out",
            "cargo test > $x",
            "cargo test > ~/out",
            "cd $x; cargo test > out",
            "cargo test > /dev/tcp/a/1",
            "cargo test > out.*",
        ] {
            check(Mode::Default, &[all], &bash(), &run(outside), "ask");
        }
        check(Mode::Plan, &[all], &bash(), &run(command), "ask");
        check(Mode::Default, &[all, "deny user Edit(*.log)"], &bash(), &run(command), "deny");
    }
    let cargo = "allow project Bash(cargo *)";
    check(Mode::AcceptEdits, &[cargo], &bash(), &run(command), "allow");
    check(Mode::Default, &[cargo], &bash(), &run(command), "ask");
    let setup = setup(Mode::Default, Handler::None, &[cargo]);
    let (mut gate, step) = Gate::open(call(&bash(), &run(command)), &bash(), &setup);
    let GateStep::Decided { decision, .. } = judged(&mut gate, step) else { panic!() };
    assert!(decision.reason.contains("a rule that would: Edit(//w/out.log)"), "{decision:?}");
    assert_eq!(gate.allow_rules(), ["Edit(//w/out.log)"]);
    check(Mode::Default, &[cargo, "allow cli Edit(//w/out.log)"], &bash(), &run(command), "allow");
}
