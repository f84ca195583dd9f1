//! Classes of calls that no corpus has, and removals of home directories by their short names.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

const READ_ONLY: &[&str] = &[
    "docker compose logs --tail=50 web",
    "docker compose ps",
    "docker volume ls",
    "docker image ls",
    "docker system df",
    "kubectl config view",
    "kubectl rollout status deploy/x",
    "helm status x",
    "terraform state list",
    "rustup toolchain list",
    "ip addr",
    "ip a show",
    "ifconfig",
    "netstat -tlnp",
    "ss -tlnp",
    "mount",
    "crontab -l",
    "dmesg",
    "journalctl -n 10",
    "getent passwd",
    "stty -a",
    "lspci",
    "alias",
    "export -p",
    "gzip -l a.gz",
    "gzip -dc a.gz",
    "xz -dc a.xz",
    "unzip -l a.zip",
    "unzip -p a b",
    "unzip -t a.zip",
    "jar tf a.jar",
    "ar t a.a",
    "7z l a.7z",
    "rpm -qa",
    "dpkg -l",
    "apt list --installed",
    "brew list",
    "cargo --list",
    "openssl version",
    "sqlite3 --version",
    "help cd",
    "git fsck",
    "git submodule status",
    "git config user.name",
    "git verify-commit HEAD",
    "git check-attr -a x",
    "git bisect log",
    "git notes list",
    "git bundle verify x",
    "git apply --check x",
    "git diff-files",
    "git branch --no-merged main",
    "git tag --contains HEAD",
    "git remote show",
    "git symbolic-ref HEAD",
];

const CHANGES: &[&str] = &[
    "bazel test //...",
    "deno test",
    "deno fmt",
    "sbt test",
    "flutter test",
    "dart format .",
    "latexmk a.tex",
    "gzip a",
    "unzip -o a.zip -d out",
    "jar cf a.jar src",
    "git bisect start",
    "git apply x",
    "git notes add -m x",
    "git config user.name x",
    "cargo build --target-dir target/x",
    "gcc a.c -o bin/a",
    "npm run build",
    "cargo test -- /x",
    "go clean",
    "prettier --write /w/src",
    "tsc --outDir dist",
];

const DANGEROUS: &[&str] = &[
    "bazel build //a --output_base=/srv/x",
    "cargo build --target-dir /tmp/x",
    "cargo build --target-dir=/tmp/x",
    "gcc a.c -o /tmp/x",
    "zip /tmp/a.zip src",
    "gzip /etc/x",
    "gzip -9 ../x",
    "prettier --write ../x",
    "black ~/x",
    "patch /etc/x a.diff",
    "tsc --outDir /tmp/x",
    "unzip a.zip -d /tmp",
    "npm run deploy",
    "npm run publish",
    "pnpm run release",
    "go clean -modcache",
    "docker compose up",
    "docker compose exec web sh",
    "docker compose config -o x",
    "docker -H x compose ps",
    "docker volume rm x",
    "kubectl config set-context x",
    "kubectl rollout restart x",
    "helm uninstall x",
    "terraform state rm x",
    "ip link set eth0 down",
    "ip addr add x",
    "ifconfig eth0 down",
    "ss -K dst x",
    "ss -D x",
    "dmesg -C",
    "dmesg --clear",
    "journalctl --vacuum-size=1M",
    "journalctl --rotate",
    "crontab -r",
    "crontab x",
    "mount a b",
    "alias ls=rm",
    "export PATH=b",
    "stty -echo",
    "7z x a.7z",
    "rpm -i x",
    "dpkg -i x",
    "apt install x",
    "git submodule update",
    "git bundle create /tmp/x HEAD",
    "git remote show origin",
    "git branch -D x",
    "git fsck --lost-found",
    "openssl genrsa",
    "route add x",
];

/// Returns the class that a command is recorded with.
pub(super) fn class(command: &str) -> &'static str {
    let setup = setup(Mode::Default, Handler::None, &[]);
    let (mut gate, step) = Gate::open(call(&bash(), &run(command)), &bash(), &setup);
    match judged(&mut gate, step) {
        GateStep::Decided { decision, .. } => decision.class.unwrap().name(),
        step => panic!("{step:?}"),
    }
}

// REQ: TOL-9
#[test]
fn class_of_a_call_is_the_least_that_its_subcommand_and_its_paths_need() {
    let lists = [(READ_ONLY, "read-only"), (CHANGES, "workspace-write"), (DANGEROUS, "dangerous")];
    let all = lists.iter().flat_map(|(list, class)| list.iter().map(move |it| (*it, *class)));
    let wrong: Vec<_> = all.filter(|it| class(it.0) != it.1).map(|it| (it, class(it.0))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

// REQ: PRM-4
#[test]
fn home_directory_is_not_removed_by_the_name_of_its_user_nor_the_workspace_as_where_the_shell_is() {
    let critical = [
        "rm -rf ~dev",
        "rm -rf ~dev/",
        "rm -rf ~root",
        "rm -rf ~+",
        "rm -rf ~+/",
        "rm -rf ~-",
        "rmdir ~dev",
    ];
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
        check_each(mode, &["allow project Bash"], &critical, "ask");
    }
    let files = ["rm -rf ~dev/app/x", "rm a~", "rm '~dev'", "rm -rf ./~dev"];
    check_each(Mode::BypassPermissions, &[], &files, "allow");
}
