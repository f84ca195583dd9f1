//! What it costs to judge a shell command.
//!
//! `cargo bench -p ennead-runtime --bench shell_gate` prints microseconds for an ordinary command and
//! for ones of up to 1,000 parts, each judged by a gate with fifty rules. The best of many runs counts. Each
//! is judged three times over: where there are no files, in a directory of this machine whose files are
//! plain, and in one where every name of a command is a link, so that it is judged once more with the links
//! that were found.
//!
//! With `ENNEAD_GATE_ONCE=KIND` one command of that kind, or the one in a file of that name, is judged once, so
//! that the instructions can be counted, which other programs on the machine do not change:
//! `valgrind --tool=callgrind --toggle-collect='*judged_once*' PROGRAM`. `ENNEAD_GATE_FILES` is then `none`,
//! `plain` or `links`.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::{
    fs,
    hint::black_box,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use ennead_runtime::{
    permission::PermissionMode,
    step7_permission_gate::{GateSetup, Listing, Look, path_resolution::PathEntry},
};
use serde_json::json;

#[allow(dead_code, reason = "the benchmark looks at one answer")]
#[path = "../../tests/sessions/gate_fuzz/judged.rs"]
mod judged;

/// Rules of each kind but deny.
const RULES: usize = 20;

/// Parts of the commands that show whether the work is in proportion to them.
const SIZES: [usize; 3] = [250, 500, 1_000];

/// A command as it is typed.
const ORDINARY: &str =
    "cd src && RUST_BACKTRACE=1 cargo test --workspace 2>&1 | grep -E 'FAILED|panicked' | head -20";

/// Kinds of commands: what is repeated, and how many parts each repetition has.
const LONG: [(&str, &str, &str, usize); 13] = [
    ("reads", "cat a/b.rs", "; ", 1),
    ("pipes", "grep -rn 'x y' src", " | ", 1),
    ("directories", "cd a", "; ", 1),
    ("branches", "cd a && ls ../b", " || ", 2),
    ("git", "git -C . log --oneline -- a/b", "; ", 1),
    ("writes", "sed -n 1p a > b/c 2>&1", "\n", 1),
    ("wrapped", "sudo nice -n 5 timeout 5 rm -r a/b", "; ", 1),
    ("scripts", "sh -c 'rm a; ls b'", "; ", 3),
    ("links", "ln -s a b", "; ", 1),
    ("substitutions", "cargo test \"$(git log -1)\" > /dev/null", " && ", 2),
    ("unknown programs", "tool --in=a/b.c -ox x:y", "; ", 1),
    ("copies", "env A=b cp -r a/b c", "\n", 1),
    ("patterns", "cat a*/b* s*/*.rs", "; ", 1),
];

/// Looks at this machine, as the driver of the gate does.
const DISK: Look = Look { at: found, list: listed };

fn main() -> std::io::Result<()> {
    let place = std::env::temp_dir().join(format!("ennead-shell-gate-{}", std::process::id()));
    let all = measure_in(&place);
    fs::remove_dir_all(&place)?;
    all
}

/// Measures in directories below this one.
fn measure_in(place: &Path) -> std::io::Result<()> {
    let mut places = Vec::new();
    for files in ["none", "plain", "links"] {
        let workspace = place.join(files);
        make(&workspace, files == "links")?;
        let look = if files == "none" { Look::nowhere() } else { DISK };
        places.push((files, setup(&workspace.to_string_lossy()), look));
    }
    if let Ok(kind) = std::env::var("ENNEAD_GATE_ONCE") {
        let long = LONG.iter().find(|it| it.0 == kind);
        let other = || fs::read_to_string(&kind).unwrap_or_else(|_| ORDINARY.to_owned());
        let command = long.map_or_else(other, |it| repeated(it, 1_000));
        let files = std::env::var("ENNEAD_GATE_FILES").unwrap_or_default();
        let (_, setup, look) = places.iter().find(|it| it.0 == files).unwrap_or(&places[0]);
        // What is made at the first use is not part of it.
        black_box(judged::outcome_looking(setup, ORDINARY, *look));
        println!("{kind}: {:?}", judged_once(setup, &command, *look));
        return Ok(());
    }
    for (files, setup, look) in &places {
        let measure = |name: &str, command: &str, n| {
            println!("{files}, {name}: {}", measured(setup, command, *look, n));
        };
        measure("ordinary", ORDINARY, 2_000);
        for kind in &LONG {
            for size in SIZES {
                measure(&format!("{size} parts, {}", kind.0), &repeated(kind, size), 20);
            }
        }
    }
    Ok(())
}

/// Makes what the commands name; as links to elsewhere in the workspace if those are wanted.
fn make(workspace: &Path, with_links: bool) -> std::io::Result<()> {
    for name in ["a", "src", "c"] {
        let real = if with_links { format!("real/{name}") } else { name.to_owned() };
        fs::create_dir_all(workspace.join(&real))?;
        fs::write(workspace.join(&real).join("b"), "")?;
        fs::write(workspace.join(&real).join("f.rs"), "")?;
        if with_links {
            symlink(real, workspace.join(name))?;
        }
    }
    Ok(())
}

/// What lies at a path, the last link not followed.
fn found(path: &str) -> PathEntry {
    let Ok(meta) = fs::symlink_metadata(path) else { return PathEntry::Missing };
    let target = || fs::read_link(path).ok()?.into_os_string().into_string().ok();
    match meta.file_type() {
        it if it.is_symlink() => target().map_or(PathEntry::Special, PathEntry::Link),
        it if it.is_dir() => PathEntry::Directory,
        _ => PathEntry::File,
    }
}

/// Links and directories of a directory.
fn listed(directory: &str, max_read: usize) -> Option<Listing> {
    let mut listing = Listing::default();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten().take(max_read) {
        listing.n_read += 1;
        if entry.file_type().is_ok_and(|it| it.is_symlink() || it.is_dir()) {
            listing.names.push(entry.file_name().into_string().ok()?);
        }
    }
    Some(listing)
}

/// A command of this number of parts.
fn repeated((_, one, joint, n_parts): &(&str, &str, &str, usize), size: usize) -> String {
    vec![*one; size / n_parts].join(joint)
}

#[inline(never)]
fn judged_once(setup: &GateSetup, command: &str, look: Look) -> judged::Outcome {
    black_box(judged::outcome_looking(setup, black_box(command), look))
}

/// The best time of many runs.
fn measured(setup: &GateSetup, command: &str, look: Look, n: usize) -> String {
    let mut best = Duration::MAX;
    for _ in 0..n {
        #[expect(clippy::disallowed_methods, reason = "a benchmark asks the machine")]
        let started = Instant::now();
        black_box(judged::outcome_looking(setup, black_box(command), look));
        best = best.min(started.elapsed());
    }
    format!("{} bytes, {:.1} µs", command.len(), best.as_secs_f64() * 1e6)
}

fn setup(workspace: &str) -> GateSetup {
    let mut allow: Vec<String> = (0..RULES).map(|i| format!("Bash(tool{i} *)")).collect();
    allow.push("Bash(cargo *)".into());
    let ask: Vec<String> = (0..RULES).map(|i| format!("Bash(other{i} * x)")).collect();
    let deny = ["Bash(rm *)", "Bash(curl *)", "Read(.env)", "Read(secrets/**)"];
    let permissions = json!({ "allow": allow, "ask": ask, "deny": deny });
    judged::setup(PermissionMode::Default, workspace, &permissions)
}
