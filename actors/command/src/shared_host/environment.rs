//! Whether a host does for a client what the client would do itself: its commands, settings and keys follow from the
//! environment.

use std::{collections::BTreeMap, ffi::OsString, fs, path::Path};

use ennead_runtime::digest::Digest;
use ennead_tools::withdrawn_keys;

/// Variables that differ from process to process and change nothing of what is done.
const OF_NO_CONCERN: [&str; 17] = [
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "PYTHONUNBUFFERED",
    "PYTEST_CURRENT_TEST",
    // Terminals, and the manager of services.
    "WINDOWID",
    "TMUX_PANE",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "TRACEPARENT",
    "TRACESTATE",
    "BAGGAGE",
    // Set by SDKs for themselves.
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_AGENT_SDK_VERSION",
    // How this process was started with keys that it has taken out.
    withdrawn_keys::SOCKET,
];

/// Variables with directories. One that starts from the working directory means another one in each.
const DIRECTORIES: [&str; 4] = ["HOME", "CLAUDE_CONFIG_DIR", "XDG_RUNTIME_DIR", "TMPDIR"];

/// What a process has besides its variables that its commands inherit, as `/proc/self/status` names it.
const INHERITED: [&str; 6] = ["Umask", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapEff"];

/// The namespaces that a process is in.
const NAMESPACES: [&str; 6] = ["mnt", "pid", "net", "user", "ipc", "uts"];

/// Variables by which a program chooses how it is served: each client has its own.
pub(crate) const OF_PROGRAM: [&str; 10] = [
    "ANTHROPIC_MODEL",
    "CLAUDE_AGENT_SDK_CLIENT_APP",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
    "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "ENNEAD_UNTRUSTED",
    "MAX_THINKING_TOKENS",
];

/// Names that are shown of those that differ.
const N_SHOWN: usize = 8;

/// Returns the variables that this process was started with and what else its commands inherit, each with a digest of its
/// value. To be called before limits are changed.
pub fn of_process() -> BTreeMap<String, Digest> {
    let mut all = digests(withdrawn_keys::variables());
    let starts_here = |name: &&str| {
        withdrawn_keys::variable(name)
            .is_some_and(|it| !it.is_empty() && !Path::new(&it).is_absolute())
    };
    if DIRECTORIES.iter().any(starts_here) {
        let here = std::env::current_dir().unwrap_or_default();
        all.insert("working directory".into(), Digest::of(here.as_os_str().as_encoded_bytes()));
    }
    // Other systems do not say.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let fields = status.lines().filter_map(|it| it.split_once(':'));
    for (name, value) in fields.filter(|(name, _)| INHERITED.contains(name)) {
        all.insert(name.to_lowercase(), Digest::of(value.trim().as_bytes()));
    }
    if let Ok(limits) = fs::read("/proc/self/limits") {
        all.insert("limits".into(), Digest::of(&limits));
    }
    for name in NAMESPACES {
        if let Ok(namespace) = fs::read_link(format!("/proc/self/ns/{name}")) {
            let text = namespace.as_os_str().as_encoded_bytes();
            all.insert(format!("{name} namespace"), Digest::of(text));
        }
    }
    all
}

/// Returns those variables of this process by which a program chooses how it is served.
pub fn of_program() -> BTreeMap<String, String> {
    let value = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    OF_PROGRAM.into_iter().filter_map(value).collect()
}

fn digests(variables: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, Digest> {
    let of = |(name, value): (OsString, OsString)| {
        (name.to_string_lossy().into_owned(), Digest::of(value.as_encoded_bytes()))
    };
    let counts = |name: &str| !OF_NO_CONCERN.contains(&name) && !OF_PROGRAM.contains(&name);
    variables.map(of).filter(|(name, _)| counts(name)).collect()
}

/// Says which variables are not the same in both; `None` when all are.
pub fn difference(
    ours: &BTreeMap<String, Digest>,
    theirs: &BTreeMap<String, Digest>,
) -> Option<String> {
    let names = ours.keys().chain(theirs.keys().filter(|it| !ours.contains_key(*it)));
    let differing: Vec<&str> =
        names.filter(|it| ours.get(*it) != theirs.get(*it)).map(String::as_str).collect();
    let more = differing.len().saturating_sub(N_SHOWN);
    let shown = differing.get(..N_SHOWN).unwrap_or(&differing).join(", ");
    match (shown.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> BTreeMap<String, Digest> {
        digests(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    // REQ: SUR-3
    #[test]
    fn variables_that_concern_what_is_done_are_compared_by_name_and_value() {
        let ours = of(&[("PATH", "/bin"), ("HOME", "/h"), ("PWD", "/a"), ("_", "x")]);
        let same =
            of(&[("HOME", "/h"), ("PATH", "/bin"), ("ANTHROPIC_MODEL", "m"), ("SHLVL", "2")]);
        assert_eq!(difference(&ours, &same), None);
        let other = of(&[("HOME", "/h"), ("PATH", "/usr/bin"), ("TERM", "dumb")]);
        assert_eq!(difference(&ours, &other).as_deref(), Some("PATH, TERM"));
        assert_eq!(difference(&other, &ours).as_deref(), Some("PATH, TERM"));
    }

    // REQ: SUR-3
    #[test]
    fn of_many_differences_the_first_are_named() {
        let names: Vec<String> = (0..20).map(|it| format!("V{it:02}")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "")).collect();
        let said = difference(&of(&many), &of(&[])).unwrap();
        assert_eq!(said, "V00, V01, V02, V03, V04, V05, V06, V07 and 12 more");
    }
}
