//! Classes of other programs; data.
//!
//! Sources: the manuals of the programs, as of 2025; what a subcommand does by itself counts, not
//! what a project makes of it.

use super::{
    CommandClass::{self, Dangerous, ReadOnly, WorkspaceWrite},
    names::{CHANGES, LEAVES, MODULES, READS, RUN},
};

/// A program with subcommands: those that read, and those that change the workspace.
struct SubcommandTable {
    names: &'static [&'static str],
    reads: &'static [&'static str],
    changes: &'static [&'static str],
}

/// Programs whose subcommands are classified one by one.
const TOOLS: &[SubcommandTable] = &[
    SubcommandTable {
        names: &["cargo"],
        reads: &[
            "tree",
            "metadata",
            "version",
            "help",
            "locate-project",
            "pkgid",
            "verify-project",
            "read-manifest",
        ],
        changes: &[
            "build", "b", "check", "c", "test", "t", "run", "r", "clippy", "fmt", "doc", "d",
            "bench", "fix", "clean", "nextest", "miri", "llvm-cov", "expand", "rustc", "package",
            "new", "init", "remove", "rm", "machete", "deny", "insta", "hack", "sort",
        ],
    },
    SubcommandTable {
        names: &["npm", "pnpm", "yarn", "bun"],
        reads: &["ls", "list", "root", "bin", "prefix", "help", "why", "explain"],
        changes: &[
            "test",
            "t",
            "run",
            "run-script",
            "start",
            "build",
            "lint",
            "format",
            "check",
            "pack",
            "tst",
        ],
    },
    SubcommandTable {
        names: &["go"],
        reads: &["version", "env", "list", "doc", "help"],
        changes: &["build", "test", "vet", "fmt", "generate", "run", "tool", "clean", "fix"],
    },
    SubcommandTable {
        names: &["docker", "podman"],
        reads: &[
            "ps", "images", "inspect", "logs", "version", "info", "stats", "top", "port", "diff",
            "history",
        ],
        changes: &[],
    },
    SubcommandTable {
        names: &["kubectl"],
        reads: &[
            "get",
            "describe",
            "logs",
            "version",
            "explain",
            "top",
            "api-resources",
            "cluster-info",
            "diff",
        ],
        changes: &[],
    },
    SubcommandTable {
        names: &["terraform", "tofu"],
        reads: &["validate", "version", "show", "output", "graph"],
        changes: &["fmt"],
    },
    SubcommandTable {
        names: &[
            "dotnet", "swift", "mix", "stack", "cabal", "dune", "zig", "gradle", "mvn", "bazel",
            "meson",
        ],
        reads: &["version", "--list", "help"],
        changes: &[
            "build", "test", "format", "compile", "check", "fmt", "lint", "assemble", "verify",
            "package", "run", "clean", "setup",
        ],
    },
    SubcommandTable {
        names: &["deno", "dart", "flutter", "sbt", "lein", "elm", "xcodebuild"],
        reads: &["--version"],
        changes: &[
            "test", "fmt", "format", "lint", "check", "analyze", "compile", "build", "make",
            "clean", "bench",
        ],
    },
    SubcommandTable {
        names: &["bundle"],
        reads: &["list", "show", "check", "info"],
        changes: &["exec"],
    },
    SubcommandTable {
        names: &["poetry", "uv", "pdm", "hatch", "pipenv"],
        reads: &["show", "tree", "check", "version"],
        changes: &["run", "build", "test"],
    },
    SubcommandTable {
        names: &["pip", "pip3"],
        reads: &["list", "show", "freeze", "check"],
        changes: &[],
    },
    SubcommandTable {
        names: &["systemctl"],
        reads: &["status", "is-active", "is-enabled", "list-units", "show", "cat"],
        changes: &[],
    },
    SubcommandTable { names: &["rustup"], reads: &["show", "which", "doc"], changes: &[] },
    SubcommandTable { names: &["pre-commit"], reads: &[], changes: &["run"] },
    SubcommandTable {
        names: &["make", "gmake", "just", "task", "rake", "ninja"],
        reads: &["-n", "--dry-run", "--list"],
        changes: &[],
    },
];

/// Returns whether a variable decides what runs.
pub(in super::super) fn is_run(name: &str) -> bool {
    let begins = [
        "LD_",
        "DYLD_",
        "GIT_",
        "PYTHON",
        "PERL5",
        "RUBY",
        "BASH_FUNC",
        "NPM_CONFIG",
        "npm_config",
    ];
    let is_harmless = crate::step7_permission_gate::command::programs::HARMLESS.contains(name);
    !is_harmless
        && (RUN.contains(&name)
            || begins.iter().any(|it| name.starts_with(it))
            || name.contains('['))
}

/// Returns whether a call of a known program asks it about itself alone.
pub(super) fn only_tells(name: &str, args: &[&str]) -> bool {
    let [arg] = args else { return false };
    let asks = matches!(*arg, "--version" | "--help" | "-V" | "version")
        || *arg == "-v" && matches!(name, "node" | "npm" | "yarn" | "pnpm" | "php" | "ruby")
        || *arg == "-version" && matches!(name, "java" | "javac");
    let tools = [
        "node", "python", "python3", "ruby", "perl", "java", "php", "deno", "npx", "gh", "aws",
        "helm", "rsync", "curl", "wget", "ssh",
    ];
    let is_known = tools.contains(&name)
        || READS.contains(name)
        || CHANGES.contains(&name)
        || TOOLS.iter().any(|it| it.names.contains(&name));
    asks && is_known
}

/// Whether a script of a project, or an option, has a tool change more than the workspace.
fn leaves_by_script(name: &str, args: &[&str]) -> bool {
    let mut own = args.iter().take_while(|it| **it != "--");
    match name {
        "npm" | "pnpm" | "yarn" | "bun" => own.any(|it| LEAVES.contains(it)),
        "go" => args.first() == Some(&"clean") && own.any(|it| it.ends_with("cache")),
        _ => false,
    }
}

/// Returns the class of a program of which nothing else is known.
pub(super) fn class(name: &str, first: &str, args: &[&str]) -> CommandClass {
    let leaves = || args.iter().any(|it| LEAVES.contains(it));
    if matches!(
        name,
        "make"
            | "gmake"
            | "just"
            | "task"
            | "rake"
            | "ninja"
            | "gradle"
            | "mvn"
            | "./gradlew"
            | "./mvnw"
            | "cmake"
    ) {
        let goes = args.iter().any(|it| {
            it.starts_with('/') || it.starts_with("..") || it.starts_with('~') || *it == "--install"
        });
        if leaves() || goes {
            return Dangerous;
        }
    }
    // `+nightly` chooses a toolchain; options may be in front of the subcommand.
    let sub = args.iter().find(|it| !it.starts_with(['-', '+'])).copied().unwrap_or(first);
    if let Some(tool) = TOOLS.iter().find(|it| it.names.contains(&name)) {
        if tool.reads.contains(&sub) || tool.reads.contains(&first) {
            let sets =
                args.iter().any(|it| matches!(*it, "-w" | "-u" | "-H" | "--host" | "--context"));
            return if sets { Dangerous } else { ReadOnly };
        }
        if tool.changes.contains(&sub) {
            return if leaves_by_script(name, args) { Dangerous } else { WorkspaceWrite };
        }
    }
    match name {
        "python" | "python3" => match args {
            ["-m", "json.tool", ..] => ReadOnly,
            ["-m", module, ..] if MODULES.contains(module) => WorkspaceWrite,
            _ => Dangerous,
        },
        "yq" => {
            if args.iter().any(|it| it.starts_with("-i")) {
                WorkspaceWrite
            } else {
                ReadOnly
            }
        }
        _ if READS.contains(name) => ReadOnly,
        _ if CHANGES.contains(&name) => WorkspaceWrite,
        _ => Dangerous,
    }
}
