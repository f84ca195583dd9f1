//! Commands of every day, and that the page about permissions says what becomes of them.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

/// What coding sessions run most: build, test, search, git, package managers, pipes, loops.
const COMMANDS: [&str; 60] = [
    "ls -la",
    "cat src/main.rs",
    "head -50 README.md",
    "tail -n 20 build.log",
    "wc -l src/*.rs",
    "grep -rn TODO src",
    "grep -rn \"fn main\" --include='*.rs' .",
    "rg -n 'unsafe' src | head -20",
    "find . -name '*.rs' -not -path './target/*'",
    "find . -name '*.rs' | xargs grep -n TODO",
    "find . -name '*.tmp' -delete",
    "tree -L 2",
    "du -sh target",
    "diff -u a.txt b.txt",
    "sed -n '10,20p' src/lib.rs",
    "sed -i 's/old/new/' src/lib.rs",
    "awk '{print $1}' data.txt | sort | uniq -c",
    "jq .name package.json",
    "cd src && ls",
    "cd /etc && ls",
    "cat /etc/passwd",
    "which cargo && cargo --version",
    "git status",
    "git diff --stat HEAD~1",
    "git log --oneline -10 | cat",
    "git show HEAD:src/lib.rs",
    "git add -A && git commit -m 'fix: a & b'",
    "git checkout -b feature",
    "git stash && git pull --rebase",
    "git push origin main",
    "git reset --hard HEAD~1",
    "cargo build 2>&1 | tail -20",
    "cargo test --workspace -- --nocapture",
    "cargo test parser 2>&1 | grep -E 'FAILED|panicked'",
    "RUST_BACKTRACE=1 cargo test",
    "cargo clippy --all-targets && cargo fmt --check",
    "cargo run -- --help",
    "cargo install ripgrep",
    "timeout 60 cargo test",
    "npm test",
    "npm run build && npm run lint",
    "npm install left-pad",
    "npx tsc --noEmit",
    "pip install -r requirements.txt",
    "python3 -m pytest -q tests",
    "python3 -c 'print(1)'",
    "go test ./... -count=1",
    "make -j4 check",
    "docker compose logs --tail=50 web",
    "curl -s http://localhost:8080/health",
    "mkdir -p src/util && touch src/util/mod.rs",
    "cp src/a.rs src/b.rs",
    "mv src/a.rs ../a.rs",
    "rm -f build.log",
    "rm -rf target",
    "rm -rf /",
    "echo 'x = 1' > config.toml",
    "echo '[alias]' >> .git/config",
    "for f in src/*.rs; do wc -l \"$f\"; done",
    "if [ -f Cargo.toml ]; then cargo check; else npm test; fi",
];

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/permissions.md"));

/// Rules as a session of a Rust project might have them.
const RULES: [&str; 4] = [
    "allow project Bash(cargo *)",
    "allow project Bash(git add *)",
    "allow project Bash(git commit *)",
    "allow project Bash(make *)",
];

/// The table of the page.
fn table() -> String {
    let mut table = String::from(
        "| command | class | no rule | rules | `acceptEdits` |\n|---|---|---|---|---|\n",
    );
    for command in COMMANDS {
        let word = |mode, rules: &[&str]| {
            let found = outcome(&bash(), &setup(mode, Handler::Approver, rules), &run(command));
            found.split(' ').next().unwrap_or_default().to_owned()
        };
        let class = {
            let setup = setup(Mode::Default, Handler::None, &[]);
            let (mut gate, step) = Gate::open(call(&bash(), &run(command)), &bash(), &setup);
            match judged(&mut gate, step) {
                GateStep::Decided { decision, .. } => decision.class.unwrap().name(),
                step => panic!("{step:?}"),
            }
        };
        let shown = command.replace('|', "\\|");
        let (none, rules) = (word(Mode::Default, &[]), word(Mode::Default, &RULES));
        let edits = word(Mode::AcceptEdits, &[]);
        table += &format!("| `{shown}` | {class} | {none} | {rules} | {edits} |\n");
    }
    table
}

// REQ: PRM-4, TOL-9
#[test]
fn page_says_what_becomes_of_everyday_commands() {
    let table = table();
    assert!(PAGE.contains(&table), "docs/permissions.md does not hold this table:\n{table}");
}

// REQ: PRM-10
#[test]
fn class_of_a_command_stands_in_its_question_and_its_decision() {
    let asked = outcome(&bash(), &setup(Mode::Default, Handler::Approver, &[]), &run("npm i"));
    assert!(asked.ends_with("(class: dangerous)"), "{asked}");
    let setup = setup(Mode::Default, Handler::None, &[]);
    let (mut gate, step) = Gate::open(call(&bash(), &run("ls")), &bash(), &setup);
    let GateStep::Decided { decision, .. } = judged(&mut gate, step) else { panic!() };
    let record = serde_json::to_value(&decision).unwrap();
    assert_eq!(record["class"], "read-only");
}

// REQ: PRM-8
#[test]
fn command_is_judged_from_the_directory_that_it_starts_in() {
    let outcome = |cwd: &str, texts: &[&str], command: &str| {
        let setup = setup(Mode::AcceptEdits, Handler::Approver, texts).with_cwd(cwd);
        outcome(&bash(), &setup, &run(command))
    };
    let deny = &["deny project Read(secrets/**)", "allow project Bash(cat *)"];
    assert!(outcome("/w/secrets", deny, "cat prod.key").starts_with("deny"));
    assert!(outcome("/w", deny, "cat prod.key").starts_with("allow"));
    assert!(outcome("/w/secrets", deny, "cd .. && cat prod.key").starts_with("allow"));
    assert!(outcome("/w", deny, "cd $X; cat prod.key").starts_with("ask"));
    assert!(outcome("/w/.git", &[], "echo x > config").starts_with("ask"));
    assert!(outcome("/w/src", &[], "echo x > config").starts_with("allow"));
    assert!(outcome("/w/src", &[], "rm -r ..").starts_with("ask it removes"));
}

// REQ: PRM-8
#[test]
fn denial_names_a_rule_that_would_allow_it() {
    let outcome_of =
        |command: &str| outcome(&bash(), &setup(Mode::Default, Handler::None, &[]), &run(command));
    assert!(
        outcome_of("ls && cargo test -q").contains("Bash(cargo test *)"),
        "{}",
        outcome_of("ls && cargo test -q")
    );
    // Where no rule with a text can name it, the whole tool is named.
    for unnamed in ["X=$(ls); echo $X", "a=(1 2); echo a", "function f() { ls; }; f x"] {
        assert!(
            outcome_of(unnamed).contains("only Bash, for every command, would"),
            "{}",
            outcome_of(unnamed)
        );
    }
    assert!(outcome_of("ls > out").contains("write out"));
    assert!(outcome_of("$x y").contains("cannot be judged: the name of a program"));
    let long = outcome_of(&format!("make {}", "x".repeat(5000)));
    assert!(long.len() < 1000, "{long}");
}
