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
    /// Options in front of the subcommand whose value is the next word.
    valued: &'static [&'static str],
    /// Options with which nothing only reads: another machine, or a setting that is written.
    otherwise: &'static [&'static str],
    reads: &'static [&'static str],
    changes: &'static [&'static str],
}

/// Programs whose subcommands are classified one by one.
const TOOLS: &[SubcommandTable] = &[
    SubcommandTable {
        names: &["cargo"],
        valued: &["-C", "-Z", "--color", "--config"],
        otherwise: &[],
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
        valued: &[
            "--prefix",
            "-C",
            "-w",
            "--workspace",
            "--filter",
            "-F",
            "--dir",
            "--cwd",
            "--loglevel",
            "workspace",
        ],
        otherwise: &[],
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
        valued: &["-C"],
        otherwise: &["-w", "-u"],
        reads: &["version", "env", "list", "doc", "help"],
        changes: &["build", "test", "vet", "fmt", "generate", "run", "tool", "clean", "fix"],
    },
    SubcommandTable {
        names: &["docker", "podman"],
        valued: &["-l", "--log-level"],
        otherwise: &["-H", "--host", "-c", "--context", "--connection", "--url"],
        reads: &[
            "ps", "images", "inspect", "logs", "version", "info", "stats", "top", "port", "diff",
            "history",
        ],
        changes: &[],
    },
    SubcommandTable {
        names: &["kubectl"],
        valued: &["-n", "--namespace", "--context", "--cluster", "--user", "-s", "--server"],
        otherwise: &["--kubeconfig"],
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
        valued: &[],
        otherwise: &["-out"],
        reads: &["validate", "version", "show", "output", "graph", "plan", "providers"],
        changes: &["fmt"],
    },
    SubcommandTable {
        names: &[
            "dotnet", "swift", "mix", "stack", "cabal", "dune", "zig", "gradle", "mvn", "bazel",
            "meson",
        ],
        valued: &[],
        otherwise: &[],
        reads: &["version", "--list", "help"],
        changes: &[
            "build", "test", "format", "compile", "check", "fmt", "lint", "assemble", "verify",
            "package", "run", "clean", "setup",
        ],
    },
    SubcommandTable {
        names: &["deno", "dart", "flutter", "sbt", "lein", "elm", "xcodebuild"],
        valued: &[],
        otherwise: &[],
        reads: &["--version"],
        changes: &[
            "test", "fmt", "format", "lint", "check", "analyze", "compile", "build", "make",
            "clean", "bench",
        ],
    },
    SubcommandTable {
        names: &["bundle"],
        valued: &[],
        otherwise: &[],
        reads: &["list", "show", "check", "info"],
        changes: &["exec"],
    },
    SubcommandTable {
        names: &["poetry", "uv", "pdm", "hatch", "pipenv"],
        valued: &["-C", "--directory", "--project"],
        otherwise: &[],
        reads: &["show", "tree", "check", "version"],
        changes: &["run", "build", "test"],
    },
    SubcommandTable {
        names: &["pip", "pip3"],
        valued: &[],
        otherwise: &[],
        reads: &["list", "show", "freeze", "check"],
        changes: &[],
    },
    SubcommandTable {
        names: &["systemctl"],
        valued: &[],
        otherwise: &["-H", "--host", "-M", "--machine"],
        reads: &["status", "is-active", "is-enabled", "list-units", "show", "cat"],
        changes: &[],
    },
    SubcommandTable {
        names: &["rustup"],
        valued: &[],
        otherwise: &[],
        reads: &["show", "which", "doc"],
        changes: &[],
    },
    SubcommandTable {
        names: &["pre-commit"],
        valued: &[],
        otherwise: &[],
        reads: &[],
        changes: &["run"],
    },
    SubcommandTable {
        names: &["make", "gmake", "just", "task", "rake", "ninja"],
        valued: &[],
        otherwise: &[],
        reads: &["-n", "--dry-run", "--list"],
        changes: &[],
    },
];

impl SubcommandTable {
    /// The class of a call; `None` if the table does not have it.
    fn class(&self, name: &str, args: &[&str]) -> Option<CommandClass> {
        if !self.names.contains(&name) {
            return None;
        }
        let first = args.first().copied().unwrap_or_default();
        let sub = self.subcommand(args).unwrap_or(first);
        let has = |options: &[&str]| {
            args.iter().any(|it| options.contains(&it.split_once('=').map_or(*it, |it| it.0)))
        };
        if self.reads.contains(&sub) || self.reads.contains(&first) {
            return Some(if has(self.otherwise) { Dangerous } else { ReadOnly });
        }
        self.changes
            .contains(&sub)
            .then(|| if leaves_by_script(name, args) { Dangerous } else { WorkspaceWrite })
    }

    /// The subcommand. `+nightly` chooses a toolchain; options may be in front of it.
    fn subcommand<'a>(&self, args: &[&'a str]) -> Option<&'a str> {
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if self.valued.contains(word) {
                words.next();
            } else if !word.starts_with(['-', '+']) {
                return Some(word);
            }
        }
        None
    }
}

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
        "CARGO_ALIAS_",
        "CARGO_BUILD_RUST",
    ];
    let is_harmless = crate::step7_permission_gate::command::programs::HARMLESS.contains(name);
    !is_harmless
        && (RUN.contains(&name)
            || begins.iter().any(|it| name.starts_with(it))
            || name.starts_with("CARGO_TARGET_")
                && ["_RUNNER", "_LINKER", "_RUSTFLAGS"].iter().any(|it| name.ends_with(it))
            || name.contains('['))
}

/// Subcommands that hand the words that follow to another program.
const RUNS_NEXT: [&str; 8] =
    ["run", "run-script", "exec", "x", "dlx", "create", "workspace", "tool"];

/// Programs with a page about each of their subcommands and of those below.
const HAVE_PAGES: [&str; 5] = ["gh", "aws", "helm", "gcloud", "az"];

/// Programs of the tables that hand `--help` on to a script or a plug-in of the project.
const HAND_ON: [&str; 13] = [
    "yarn", "bun", "deno", "sbt", "lein", "mix", "just", "task", "rake", "make", "gmake", "ninja",
    "bundle",
];

/// Whether a program has a page about a subcommand, and does not run it.
fn has_page(name: &str, sub: &str) -> bool {
    let mut tables = TOOLS.iter().filter(|it| it.names.contains(&name) && !HAND_ON.contains(&name));
    tables.any(|it| it.reads.contains(&sub) || it.changes.contains(&sub))
}

/// Returns whether a call of a known program asks it about itself alone.
pub(super) fn only_tells(name: &str, args: &[&str]) -> bool {
    // The page about a subcommand.
    let is_word = |it: &&str| it.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
    if let [sub @ .., "--help"] = args
        && let 1..=2 = sub.len()
        && sub.iter().all(is_word)
        && !sub.iter().any(|it| RUNS_NEXT.contains(it) || it.starts_with('-'))
        && (has_page(name, sub[0]) || HAVE_PAGES.contains(&name))
    {
        return true;
    }
    let [arg] = args else { return false };
    let asks = matches!(*arg, "--version" | "--help" | "-V" | "version")
        || *arg == "-v" && matches!(name, "node" | "npm" | "yarn" | "pnpm" | "php" | "ruby")
        || *arg == "-version" && matches!(name, "java" | "javac");
    let tools = [
        "node", "python", "python3", "ruby", "perl", "java", "php", "deno", "npx", "gh", "aws",
        "helm", "rsync", "curl", "wget", "ssh", "gcloud", "az",
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
        "cargo" => own.any(|it| it.starts_with("--config")),
        "go" => args.first() == Some(&"clean") && own.any(|it| it.ends_with("cache")),
        _ => false,
    }
}

/// Returns the class of a program of which nothing else is known.
pub(super) fn class(name: &str, args: &[&str]) -> CommandClass {
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
    if let Some(class) = TOOLS.iter().find_map(|it| it.class(name, args)) {
        return class;
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
