//! What the sandbox prevents here: ways out by kind, each of which a test takes.
//!
//! The tests of the command hold the names of the ways: none is named that is not tried.

use serde::Serialize;

use super::Confinement;

/// A kind of way out of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SandboxEscape {
    /// Name of the kind, in words.
    pub name: &'static str,
    /// Whether the sandbox prevents it on this kernel.
    pub is_prevented: bool,
    /// The parts of the sandbox that prevent it, as documents of the kernel call them.
    pub by: &'static str,
    /// The ways that tests take.
    pub ways: &'static [&'static str],
}

/// What a kind of way out is prevented by, in addition to all that a sandbox needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    OwnNetwork,
    OwnProcesses,
}

/// The parts of the sandbox that prevent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The same, whatever commands are confined by.
    Both(&'static str),
    /// Those of Landlock and around it, and those that `bwrap` makes.
    Each(&'static str, &'static str),
}

/// Kinds of ways out: name, what prevents them, what that needs, and the ways.
const KINDS: &[(&str, By, Needs, &[&str])] = &[
    (
        "write outside",
        By::Each("Landlock", "mounts"),
        Needs::Nothing,
        &[
            "write outside",
            "append outside",
            "truncate outside",
            "remove outside",
            "make a directory outside",
            "make a link outside",
            "write to the home directory",
            "write through a link",
        ],
    ),
    (
        "read a key",
        By::Each("Landlock", "mounts"),
        Needs::Nothing,
        &["read a key", "list keys", "read what is denied", "link to a key", "passwords"],
    ),
    (
        "link or rename out and in",
        By::Each("Landlock", "mounts"),
        Needs::Nothing,
        &["link a key in", "rename out", "rename in", "link out"],
    ),
    (
        "network, switched off",
        By::Each("seccomp, Landlock", "seccomp, network namespace"),
        Needs::Nothing,
        &["tcp", "udp", "unix socket", "raw socket", "socket", "socket of x32"],
    ),
    (
        "hosts that are not listed",
        By::Both("network namespace"),
        Needs::OwnNetwork,
        &["another host through the proxy", "past the proxy"],
    ),
    (
        "tricks with /proc",
        By::Each("Landlock", "PID namespace, mounts"),
        Needs::Nothing,
        &[
            "by the root of itself",
            "by a directory that is open",
            "environment of another",
            "map of another",
            "memory of another",
            "memory of the helper",
            "root of another",
            "descriptors of another",
        ],
    ),
    (
        "see processes outside",
        By::Both("PID namespace"),
        Needs::OwnProcesses,
        &["command lines of others"],
    ),
    (
        "ptrace",
        By::Both("seccomp"),
        Needs::Nothing,
        &["ptrace", "ptrace of x32", "process_vm_readv", "process_vm_writev", "pidfd_getfd"],
    ),
    (
        "setuid and rights of root",
        By::Both("no_new_privs, dropped capabilities"),
        Needs::Nothing,
        &["privileges by programs", "another user", "a larger dump"],
    ),
    (
        "leftover descriptors",
        By::Both("closed at the start"),
        Needs::Nothing,
        &["leftover descriptor"],
    ),
    (
        "kill of the host",
        By::Each("Landlock", "PID namespace"),
        Needs::Nothing,
        &["kill another", "kill the helper", "kill the host"],
    ),
    (
        "namespaces within",
        By::Both("seccomp"),
        Needs::Nothing,
        &["network namespace", "mount namespace", "user namespace", "unshare", "setns", "clone3"],
    ),
    (
        "mounts and devices",
        By::Each(
            "seccomp, Landlock, dropped capabilities",
            "seccomp, mounts, dropped capabilities",
        ),
        Needs::Nothing,
        &["mount", "change root", "make a device", "pivot_root", "open_by_handle_at"],
    ),
    (
        "other parts of the kernel",
        By::Both("seccomp"),
        Needs::Nothing,
        &[
            "kexec_load",
            "init_module",
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "keyctl",
            "add_key",
            "io_uring_setup",
            "shmget",
        ],
    ),
];

/// Returns the table, for what commands are confined by and what they have of their own.
pub(super) fn table(
    confinement: Option<Confinement>,
    own_network: bool,
    own_processes: bool,
) -> Vec<SandboxEscape> {
    let row = |&(name, by, needs, ways): &(&'static str, _, _, _)| {
        let has = match needs {
            Needs::Nothing => true,
            Needs::OwnNetwork => own_network,
            Needs::OwnProcesses => own_processes,
        };
        let by = match (by, confinement) {
            (By::Each(_, by), Some(Confinement::Bubblewrap)) => by,
            (By::Both(by) | By::Each(by, _), _) => by,
        };
        SandboxEscape { name, is_prevented: confinement.is_some() && has, by, ways }
    };
    KINDS.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-10
    #[test]
    fn way_out_is_prevented_only_where_the_kernel_has_what_that_needs() {
        let open = |confinement, network, processes| {
            let rows = table(confinement, network, processes).into_iter();
            rows.filter(|it| !it.is_prevented).map(|it| it.name).collect::<Vec<_>>()
        };
        let by = Some(Confinement::Landlock);
        assert_eq!(open(by, true, true), Vec::<&str>::new());
        assert_eq!(open(by, false, true), ["hosts that are not listed"]);
        assert_eq!(open(by, true, false), ["see processes outside"]);
        assert_eq!(open(None, true, true).len(), KINDS.len());
    }
}
