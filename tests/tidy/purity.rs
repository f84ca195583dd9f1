//! `runtime` decides and does nothing else: checked on the code it compiles, tests left out.

use super::code::Code;

/// What of the standard library a pure crate may name, by module. The rest touches the world, or
/// has not been needed yet.
const ALLOWED_STD: [&str; 32] = [
    "any",
    "array",
    "ascii",
    "borrow",
    "boxed",
    "cell",
    "char",
    "cmp",
    "collections",
    "convert",
    "default",
    "error",
    "fmt",
    "future",
    "hash",
    "io",
    "iter",
    "marker",
    "mem",
    "num",
    "ops",
    "option",
    "path",
    "pin",
    "rc",
    "result",
    "slice",
    "str",
    "string",
    "sync",
    "time",
    "vec",
];

/// Addresses, which are numbers; the rest of their module is sockets.
const ADDRESSES: [&str; 3] = ["std::net::IpAddr", "std::net::Ipv4Addr", "std::net::Ipv6Addr"];

/// What of those modules is out after all, each with everything below it.
const REFUSED_STD: [&str; 16] = [
    // The clock. A `use` of the whole module would let it in by another name.
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::UNIX_EPOCH",
    "std::time::*",
    // The terminal.
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::io::*",
    // Waiting for somebody, and state that two could share.
    "std::sync::Mutex",
    "std::sync::RwLock",
    "std::sync::Condvar",
    "std::sync::atomic",
    "std::sync::*",
    // Their order differs from run to run.
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::collections::*",
];

/// Methods of `Path` that look at the disk.
const DISK_METHODS: [&str; 5] =
    ["canonicalize", "read_dir", "read_link", "symlink_metadata", "try_exists"];

fn runtime() -> Code {
    Code::of_crate("runtime/src/lib.rs")
}

/// Whether a pure crate may not name this path.
fn is_refused(path: &str) -> bool {
    let path = ["core::", "alloc::"]
        .iter()
        .find_map(|it| path.strip_prefix(it))
        .map_or_else(|| path.to_owned(), |rest| format!("std::{rest}"));
    if path == "std" || path == "std::time" {
        // Under another name, or with the clock in tow.
        return true;
    }
    let listed = REFUSED_STD.iter().any(|refused| {
        path.strip_prefix(refused).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    });
    let module = path.strip_prefix("std::").and_then(|rest| rest.split("::").next());
    let unknown = module.is_some_and(|module| !ALLOWED_STD.contains(&module));
    // Date libraries, too, have a `now` and know the zone of the machine.
    listed
        || unknown && !ADDRESSES.contains(&path.as_str())
        || path.ends_with("::now")
        || path.ends_with("TimeZone::system")
}

#[test]
fn the_runtime_names_nothing_that_touches_the_world() {
    let wrong: Vec<String> = runtime()
        .paths
        .iter()
        .filter(|(_, path)| is_refused(path))
        .map(|(file, path)| format!("{}: {path}", file.display()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_runtime_asks_no_path_about_the_disk() {
    let code = runtime();
    let wrong: Vec<_> =
        DISK_METHODS.iter().filter_map(|name| Some((name, code.words.get(*name)?))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_runtime_has_no_globals() {
    let code = runtime();
    // A table that nobody can change is no state.
    let inner = ["mut", "Lock", "Cell", "Mutex", "Atomic", "Once"];
    let wrong: Vec<_> =
        code.statics.iter().filter(|item| inner.iter().any(|it| item.contains(it))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!code.calls_macro("thread_local"));
}

#[test]
fn the_runtime_names_no_actor_and_no_executor() {
    let code = runtime();
    let wrong: Vec<_> = ["ractor", "tokio", "ennead", "ennead_tools"]
        .iter()
        .filter_map(|name| Some((name, code.words.get(*name)?)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn tools_name_no_actor() {
    let code = Code::of_crate("tools/src/lib.rs");
    let wrong: Vec<_> =
        code.paths.iter().filter(|(_, it)| it.split("::").any(|it| it == "ractor")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[track_caller]
fn check(path: &str, refused: bool) {
    assert_eq!(is_refused(path), refused, "{path}");
}

#[test]
fn the_rule_tells_the_world_from_plain_values() {
    for path in [
        "std::time::Duration",
        "std::sync::Arc",
        "std::collections::BTreeMap",
        "std::net::IpAddr",
        "fs::read",
    ] {
        check(path, false);
    }
    for path in [
        "std",
        "std::fs",
        "std::fs::read",
        "core::time::Instant",
        "std::time",
        "std::time::SystemTime::now",
        "std::env::var",
        "std::process::Command",
        "std::thread::spawn",
        "std::net",
        "std::net::TcpStream",
        "std::collections::HashMap",
        "std::sync::atomic::AtomicU64",
        "jiff::Timestamp::now",
        "Timestamp::now",
    ] {
        check(path, true);
    }
}

/// Files of the library that read the environment of the process, or set it for a child, and why. What else wants a
/// variable or a directory asks `Environment`, which an embedder can replace.
const ENVIRONMENT_READERS: [(&str, &str); 8] = [
    ("actors/src/world/environment.rs", "is the `Environment` of a process"),
    ("actors/src/world/git.rs", "takes the variables of git from a child, whatever they are"),
    ("tools/src/process_tree.rs", "marks the processes below this one"),
    ("tools/src/process_tree/reaper.rs", "is the helper, which is ordered by its arguments"),
    (
        "tools/src/sandbox/bubblewrap.rs",
        "is the helper, which has a command begin where it is itself",
    ),
    ("tools/src/sandbox/kernel.rs", "has one level of the sandbox taken for the whole process"),
    ("tools/src/withdrawn_keys.rs", "takes the keys out of the environment of the process"),
    ("tools/src/withdrawn_keys/again.rs", "starts the process again without its keys"),
];

/// Whether what is named by this path reads variables, arguments or directories of the process.
fn reads_environment(path: &str) -> bool {
    let of_std = path.strip_prefix("std::env").is_some_and(|it| !it.starts_with("::consts"));
    // Those that take a directory end with `_in`.
    let temporary = ["tempfile::tempfile", "tempfile::tempdir", "tempfile::NamedTempFile::new"];
    of_std || temporary.contains(&path) || path.ends_with("TempDir::new")
}

#[test]
fn only_the_environment_reads_that_of_the_process() {
    let (mut wrong, mut unused) = (Vec::new(), Vec::from(ENVIRONMENT_READERS.map(|it| it.0)));
    for top in ["tools/src/lib.rs", "actors/src/lib.rs"] {
        for (file, path) in Code::of_crate(top).paths {
            if reads_environment(&path) {
                let file = file.display().to_string();
                unused.retain(|it| *it != file);
                if !ENVIRONMENT_READERS.iter().any(|it| it.0 == file) {
                    wrong.push(format!("{file}: {path}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these read the environment of the process: {wrong:#?}");
    assert!(unused.is_empty(), "these do not read it: {unused:?}");
    for path in ["std::env::var", "std::env::temp_dir", "std::env", "tempfile::tempfile"] {
        assert!(reads_environment(path), "{path}");
    }
    for path in ["std::env::consts::OS", "tempfile::tempfile_in", "std::fs::read"] {
        assert!(!reads_environment(path), "{path}");
    }
}

/// Files of the actors in which a lock or an atomic is, with what it is for. None of them holds
/// state of a turn: that is one value, owned by one actor.
const LOCKS: &[(&str, &str)] = &[
    ("turn/approval/pending.rs", "which questions are open, and the way to the turns that ask"),
    ("turn/hook_runner/detached.rs", "what a turn waits for, let go once"),
    ("storage/archive.rs", "the lock file, kept by the archive while writers come and go"),
    (
        "handle/ennead.rs",
        "the count of sessions, for placing them, and settings that were merged before",
    ),
    ("ports/events.rs", "what goes out to listeners"),
    ("services/governor.rs", "the gates of an `Ennead`, by provider and key"),
    (
        "services/governor/provider_limiter.rs",
        "what all calls to one provider and key have in common",
    ),
    (
        "services/mcp_server/server.rs",
        "the servers of an `Ennead`, and what outlives a crash of one",
    ),
    ("services/mcp_server/status.rs", "how far the servers of a session are, for whoever shows it"),
    (
        "turn/model_call/learned.rs",
        "what servers named of their models, for sessions that open later",
    ),
    ("ports/events/everywhere.rs", "what waits for readers of all events, which only look on"),
    (
        "storage/redaction.rs",
        "the numbers of secrets, so that a placeholder means one in a whole session",
    ),
    ("storage/redaction/values.rs", "what the session opened last looks for, for the next one"),
    ("session/agents/report.rs", "a guard that is disarmed once"),
    ("world/hook_exports.rs", "what hooks have commands begin with, which no turn decides by"),
    ("session/background.rs", "how agents in the background are, for the tools that ask"),
    ("session/watcher.rs", "how watched files were, for the leaf that looks next"),
    ("session/session_effects.rs", "replies that are given once"),
    (
        "session/tools.rs",
        "the tools of a session by name; which of them a turn may call it knows itself",
    ),
    ("storage/checkpoint.rs", "how far a file is acknowledged, for the writer after a crash"),
    ("world/clock.rs", "a clock that is moved by hand"),
    ("ports/transcript_store/faulty.rs", "which accesses a test has fail"),
    ("world/http/pools.rs", "the HTTP clients of a thread"),
    ("world/simulated.rs", "the simulated server's log"),
    (
        "world/kept_sources.rs",
        "sources that sessions of a place have encoded; each is what a turn would make",
    ),
    ("world/local_files/last_good.rs", "settings files that could be read"),
    ("world/compiled_patterns.rs", "patterns of paths that sessions of a place have"),
    ("world/file_states.rs", "what was seen at paths, as long as no change is reported"),
    ("world/kept_trees.rs", "the trees of working directories"),
    ("world/web_pages.rs", "what secures connections to pages, made of files"),
    (
        "world/web_pages/cache.rs",
        "pages that a session has fetched; a turn sees what its calls bring of them",
    ),
    ("world/negative_dir_cache.rs", "directories that held nothing for a session"),
    ("serve/book.rs", "which sessions the server hosts; none of their turns looks at it"),
    ("serve/drain.rs", "whether the server is about to end"),
    ("serve/hosted.rs", "what the page shows of a session, and its runs that wait"),
    ("serve/hosting.rs", "who reads or writes the files of a session just now"),
    ("serve/limits.rs", "sums of what tenants used"),
    ("serve/metrics.rs", "counters"),
    ("serve/rates.rs", "how fast tokens ask"),
    ("serve/ring.rs", "events that have happened, for readers outside of the tree"),
    ("serve/shares.rs", "a count of streams and readers by tenants"),
    ("serve/slots.rs", "a count of connections and readers"),
    ("serve/tokens.rs", "the file of the tokens as it was read last"),
    ("serve/turnstile.rs", "which runs wait for a place, before any turn of theirs begins"),
];

// REQ: TRN-8
#[test]
fn no_state_of_a_turn_is_shared_by_lock() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../actors/src/");
    let mut folders = vec![std::path::PathBuf::from(root)];
    let mut wrong = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let locks = ["Mutex", "RwLock", "Atomic"].iter().any(|it| code.contains(it));
            let is_listed = LOCKS.iter().any(|(file, _)| *file == name);
            if locks && !is_listed && !name.ends_with("tests.rs") {
                wrong.push(name);
            }
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "a lock that is not listed: {wrong:#?}");
}
