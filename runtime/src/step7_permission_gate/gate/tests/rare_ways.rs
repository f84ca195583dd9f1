//! Rarely taken ways around rules and around the read-only set, one table for each kind of rule; and everyday work
//! of other toolchains, which the same tables must leave alone.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

/// Commands without a rule for them: they read outside the workspace, write, or run something.
const UNRULED: [&str; 41] = [
    "strings @/etc/shadow",
    "grep -rf /etc/passwd .",
    "grep --file=../other/list x",
    "diff --from-file=/etc/shadow x",
    "du -X/etc/shadow .",
    "sort --random-source=/etc/shadow -R x",
    "sort -T /var/tmp x",
    "date --file=/etc/shadow",
    "date -f/etc/shadow",
    "date -uf/etc/shadow",
    "grep -vf/etc/passwd x",
    "grep -nvf../other x",
    "rg -nf/etc/passwd x",
    "rg x *",
    "git log *",
    "git grep -e x *",
    "tree *",
    "file *",
    "uniq *",
    "uniq x*",
    "xxd x*",
    "xxd -l 4 *",
    "tree --fromfile --gitfile=/etc/shadow",
    "find . -newer /etc/shadow -print",
    "find . -fprint0 out",
    "git blame --contents ../x a",
    "git ls-files -X/etc/shadow",
    "git grep -f/etc/shadow",
    "git config --get-regexp . --file=/etc/x",
    "git tag -l x -d y",
    "git branch --edit-description",
    "git stash show -p --outp=x",
    "git -p log",
    "git --attr-source=x log",
    "uniq -- a b",
    "head -c10 ~root/.profile",
    "cat ~+/../other/key",
    "ls ${ rm x; }",
    "ls ${| rm x; }",
    "ls() { rm x; }; ls",
    "ls $(</etc/passwd)",
];

/// Rules with a `*`, and what they are not for.
const RULED: [(&str, &[&str]); 22] = [
    (
        "gawk *",
        &[
            "gawk -oout 1",
            "gawk --dump-variables=out 1",
            "gawk --profile=out 1 a",
            "gawk 'BEGIN{f=\"sys\" \"tem\"; @f(\"id\")}'",
            "gawk 'BEGIN{\"id\" |& getline x}'",
        ],
    ),
    (
        "sed *",
        &[
            "sed 's/a/b/me' f",
            "sed -n '\\,x,e id' f",
            "sed '/a/I,+1w f' x",
            "sed '$!{N;w f\n}' x",
            "sed --expr='1~3W f' x",
        ],
    ),
    (
        "git *",
        &[
            "git push --exec=x origin main",
            "git archive --remote=. --exec=x HEAD",
            "git ls-remote --exec=x .",
            "git send-pack --receive-pack=x .",
            "git fetch-pack --exec=x .",
            "git for-each-repo --config=x status",
            "git merge -s evil main",
            "git mergetool -t evil",
            "git difftool --tool=evil",
            "git hook run pre-push",
            "git credential fill",
            "git help -w x",
            "git web--browse x",
            "git instaweb",
            "git daemon",
            "git remote-ext a x",
            "git submodule--helper foreach 'rm x'",
        ],
    ),
    ("cargo *", &["cargo --config x build", "cargo build --config='build.rustc-wrapper=\"x\"'"]),
    ("clang *", &["clang --config x a.c", "clang -fpass-plugin=x a.c", "clang --ld-path=./x a.c"]),
    ("gcc *", &["gcc -Wl,-plugin,x a.c", "gcc -Xlinker -plugin=x a.c"]),
    ("go *", &["go env -w CC=x", "go build -ldflags '-extld=x'"]),
    ("man *", &["man -C x ls", "man --config-f=x ls", "man -X ls"]),
    ("gh *", &["gh alias set x '!rm'", "gh config set pager x", "gh extension exec x"]),
    ("cmake *", &["cmake -E env rm x", "cmake -E chdir d rm x"]),
    ("openssl *", &["openssl engine ./x", "openssl req --config x"]),
    ("docker *", &["docker --config x ps"]),
    ("install *", &["install -s --strip-program=./x a b", "install --strip-p=./x -s a b"]),
    ("dpkg *", &["dpkg --pre-invoke=x -i a.deb", "dpkg --post-invoke x -i a.deb"]),
    ("rpm *", &["rpm --eval '%(rm x)'", "rpm -E '%(rm x)'", "rpm -qa --pipe 'rm x'"]),
    (
        "gpg *",
        &["gpg --agent-program=./x -k", "gpg --photo-viewer x -k", "gpg --pinentry-program x"],
    ),
    ("java *", &["java -XX:OnOutOfMemoryError='rm x' A", "java -agentpath:/x A"]),
    ("bazel *", &["bazel run --run_under='rm x' //a", "bazel --bazelrc=x build //a"]),
    ("tar *", &["tar -xf a --use=x", "tar -xf a --rmt=x", "tar --new-volume=x -cf a b"]),
    ("rustc *", &["rustc -Clinker=./x a.rs", "rustc -C linker=./x a.rs", "rustc @x"]),
    ("ld *", &["ld -plugin x a.o", "ld @x"]),
    ("mutt *", &["mutt -e 'push !rm'"]),
];

/// Programs that run `rm`, which a rule denies.
const DENIED: [&str; 50] = [
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "/lib/ld-musl-x86_64.so.1 /bin/rm x",
    "/lib/ld-musl-armhf.so.1 /bin/rm x",
    "/lib/ld-linux-armhf.so.3 /bin/rm x",
    "/lib/x86_64-linux-gnu/ld-2.31.so /bin/rm x",
    "/lib64/ld64.so.2 --argv0 ls /bin/rm x",
    "tar xfI a 'rm x'",
    "tar Icf 'rm x' a b",
    "tar cMfF a 'rm x' b",
    "less '+!rm x' y",
    "strace -o '|rm x' ls",
    "strace -o'!rm x' ls",
    "strace --output='|rm x' ls",
    "coreutils --coreutils-prog=rm x",
    "coreutils rm x",
    "npm explore a -- rm x",
    "env-cmd rm x",
    "run0 rm x",
    "proxychains4 rm x",
    "envdir d rm x",
    "setlock l rm x",
    "s6-setuidgid u rm x",
    "fakechroot rm x",
    "jenv exec rm x",
    "nodenv exec rm x",
    "goenv exec rm x",
    "rvm ruby do rm x",
    "lxc exec c -- rm x",
    "toolbox run rm x",
    "buildah run c rm x",
    "snap run --shell x -c 'rm x'",
    "dtach -n s rm x",
    "abduco -n s rm x",
    "xterm -e rm x",
    "gnome-terminal -- rm x",
    "alacritty -e rm x",
    "kitty rm x",
    "zellij run -- rm x",
    "execlineb -c 'rm x'",
    "ip vrf exec v rm x",
    "nix develop -c rm x",
    "pnpm exec rm x",
    "mise x -- rm x",
    "command -p -- rm x",
    "time -p -- rm x",
    "nohup -- nice -n 5 -- rm x",
    "exec -cla x rm x",
    "coproc X { rm x; }",
    "env -u A -- B=c rm x",
    "doas -u u -- rm x",
];

// REQ: PRM-8
#[test]
fn nothing_in_the_read_only_set_reaches_further_by_a_rare_option() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
        check_each(mode, &[], &UNRULED, "ask");
    }
}

// REQ: PRM-8
#[test]
fn rule_with_a_star_covers_no_rare_option_that_runs_or_writes() {
    for (pattern, commands) in RULED {
        check_each(Mode::Default, &[&format!("allow project Bash({pattern})")], commands, "ask");
    }
}

// REQ: PRM-2
#[test]
fn deny_rule_sees_through_programs_that_are_rarely_used_to_run_others() {
    check_each(Mode::Default, &["deny user Bash(rm *)", "allow user Bash"], &DENIED, "deny");
    check_each(Mode::BypassPermissions, &["deny user Bash(rm *)"], &DENIED, "deny");
}

/// Commands that run what the text does not show, where a rule denies `rm`.
const UNSEEN: [&str; 15] = [
    "gcc @x",
    "gcc -fplugin=./x.so a.c",
    "ld -plugin x a.o",
    "rustc -Zcodegen-backend=./x.so a.rs",
    "java -agentpath:./x A",
    "openssl enc -engine ./x",
    "ip -batch x",
    "pdflatex --shell-escape a",
    "less +G x",
    "gvim -c '!rm x'",
    "rvim -c 'py3 x'",
    "nano -s rm x",
    "RUSTC_WORKSPACE_WRAPPER=./x cargo build",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=./x cargo run",
    "LESS='+!rm x' less y",
];

// REQ: PRM-8
#[test]
fn rule_for_all_commands_covers_no_rare_way_to_run_what_nobody_sees() {
    let rules = &["deny user Bash(rm *)", "allow user Bash"];
    check_each(Mode::Default, rules, &UNSEEN, "ask");
    check_each(Mode::BypassPermissions, &rules[..1], &UNSEEN, "ask");
    let seen = [
        "CARGO_TARGET_DIR=x CARGO_TERM_COLOR=never cargo build",
        "gcc -O2 -Wall -o a a.c -Wl,-rpath,x",
        "less -R x",
        "strace -f -o out ls",
        "tar xzf a.tgz",
        "openssl x509 -in a -text",
        "docker compose config",
        "npm config get registry",
        "go env GOPATH",
    ];
    check_each(Mode::Default, rules, &seen, "allow");
    let of_git = &["deny user Bash(git push *)", "allow user Bash"];
    check_each(Mode::Default, of_git, &["/usr/lib/git-core/git-push origin main"], "deny");
}

// REQ: PRM-4
#[test]
fn settings_of_a_manager_of_packages_are_protected_as_those_of_git_are() {
    let sets = [
        "npm config set script-shell ./x",
        "npm c set ignore-scripts=false",
        "npm set editor=x",
        "npm config delete registry",
        "pnpm config set script-shell ./x",
        "yarn config set registry http://x",
    ];
    check_each(Mode::Default, &["allow user Bash"], &sets, "ask");
    check_each(Mode::BypassPermissions, &[], &sets, "ask");
    let asks = ["npm config get registry", "npm config list", "npm pkg set type=module"];
    check_each(Mode::Default, &["allow user Bash"], &asks, "allow");
}

// REQ: PRM-8
#[test]
fn list_of_sums_and_the_only_file_of_yq_are_read() {
    let rules = &["deny user Read(.env)", "allow user Bash"];
    check_each(Mode::Default, rules, &["md5sum -c x", "sha256sum --check x", "b2sum -wc x"], "ask");
    check_each(Mode::Default, rules, &["yq .env"], "deny");
    check_each(Mode::Default, rules, &["yq .name a.yml", "sha256sum a", "cksum -a md5 b"], "allow");
}

// REQ: PRM-8
#[test]
fn copy_with_more_destinations_than_are_looked_at_is_asked_about() {
    let many = format!("cp {}a", "-t b ".repeat(5));
    check_each(Mode::AcceptEdits, &[], &["cp -t b a", "cp a b"], "allow");
    check_each(Mode::AcceptEdits, &[], &[&many], "ask");
}

/// Work of other toolchains, with the answer under the rules of [`TOOLCHAINS`].
const WORK: [(&str, &str); 44] = [
    ("npm run test -- --watch=false", "allow"),
    ("npm ci && npm run build", "allow"),
    ("npm ls --depth=0", "allow"),
    ("pnpm install --frozen-lockfile", "allow"),
    ("pnpm -r build", "allow"),
    ("pnpm --filter @a/web test", "allow"),
    ("yarn workspace web test", "allow"),
    ("yarn lint --fix", "allow"),
    ("npx eslint src --ext .ts", "ask"),
    ("pytest -q tests/test_a.py::test_b -k 'x and not y'", "allow"),
    ("pytest -x --maxfail=1 2>&1 | tail -30", "allow"),
    ("PYTHONUNBUFFERED=1 pytest tests", "allow"),
    ("python -m venv .venv", "ask"),
    ("go test -race ./...", "allow"),
    ("go build -o bin/app ./cmd/app", "allow"),
    ("go vet ./... && go test ./pkg/... -run 'TestA|TestB'", "allow"),
    ("go test -exec ./x ./...", "ask"),
    ("./gradlew test --tests 'a.b.CTest'", "allow"),
    ("./gradlew build -x lint --info 2>&1 | grep -i warn", "allow"),
    ("gradle dependencies", "ask"),
    ("docker ps --format '{{.Names}}'", "allow"),
    ("docker compose up -d", "ask"),
    ("docker ps && docker logs web --tail 20", "ask"),
    ("kubectl get pods -n prod -o wide", "allow"),
    ("kubectl get pods -o jsonpath='{.items[*].metadata.name}' | tr ' ' '\\n'", "allow"),
    ("kubectl delete pod x", "ask"),
    ("jq '.dependencies | keys' package.json", "allow"),
    ("jq -r '.[] | select(.a == 1) | .b' < data.json", "allow"),
    ("cat package.json | jq -r .version", "allow"),
    ("awk -F, '{sum += $3} END {print sum}' data.csv", "allow"),
    ("awk 'NR>=10 && NR<=20' src/a.rs", "allow"),
    ("awk '{print > \"out\"}' a", "ask"),
    ("sed -n '10,20p' src/a.rs", "allow"),
    ("sed -n '/fn main/,/^}/p' src/main.rs | head -40", "allow"),
    ("git log --since=2.weeks --pretty=format:'%h %s' | grep fix | wc -l", "allow"),
    ("git log -p --follow -- src/a.rs | head -100", "allow"),
    ("git diff main...HEAD --name-only | sort -u", "allow"),
    ("git shortlog -sn | head", "allow"),
    ("git log --format=%an | sort | uniq -c | sort -rn", "allow"),
    ("for t in a b c; do pytest tests/$t; done", "allow"),
    ("for f in *.json; do jq . \"$f\" > /dev/null; done", "allow"),
    ("for i in 1 2 3; do echo $i; sleep 1; done", "allow"),
    ("while true; do go test ./...; sleep 5; done", "allow"),
    ("if git diff --quiet; then echo clean; else npm run lint; fi", "allow"),
];

/// Rules as sessions of such projects have them.
const TOOLCHAINS: &[&str] = &[
    "allow project Bash(npm *)",
    "allow project Bash(pnpm *)",
    "allow project Bash(yarn *)",
    "allow project Bash(pytest *)",
    "allow project Bash(go *)",
    "allow project Bash(./gradlew *)",
    "allow project Bash(docker ps *)",
    "allow project Bash(kubectl get *)",
    "allow project Bash(jq *)",
    "allow project Bash(awk *)",
    "allow project Bash(sed *)",
];

// REQ: PRM-8
#[test]
fn work_of_other_toolchains_passes_under_its_rules() {
    let setup = setup(Mode::Default, Handler::Approver, TOOLCHAINS);
    let found = WORK.iter().map(|it| (it, outcome(&bash(), &setup, &run(it.0))));
    let misses: Vec<_> = found.filter(|(it, found)| !found.starts_with(it.1)).collect();
    assert!(misses.is_empty(), "{misses:#?}");
}
