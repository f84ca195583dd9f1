//! What this kernel gives, found out by putting a policy into force on a thread that ends with it.

use std::{sync::OnceLock, thread};

use super::{
    Kernel, SandboxLevel,
    enforce::{RIGHTS, confine},
    escapes, network, processes, syscalls,
};
use ennead_runtime::sandbox::{HostRules, SandboxNetwork, SandboxPolicy};
use landlock::{
    ABI, Access, AccessFs, LandlockStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetError,
};

/// Returns what this kernel offers. It is asked once.
pub fn kernel() -> &'static Kernel {
    static FOUND: OnceLock<Kernel> = OnceLock::new();
    FOUND.get_or_init(|| {
        let landlock = on_thread(landlock_version).unwrap_or_default();
        let seccomp = on_thread(|| syscalls::filter(SandboxNetwork::Off).is_ok()).unwrap_or(false);
        let lacks = on_thread(|| confine(&probe())).map_or_else(
            || Some("a thread cannot be made".to_owned()),
            |confined| confined.err().map(|it| it.to_string()),
        );
        let own_network = network::is_there();
        let own_processes = processes::is_there();
        let from =
            |name, version, holds| SandboxLevel { name, is_there: version <= landlock, holds };
        let levels = vec![
            from(
                "landlock 1: files",
                1,
                "what is read, written and executed; ptrace and /proc of processes outside",
            ),
            from("landlock 2: refer", 2, "links and renames from one place to another"),
            from("landlock 3: truncate", 3, "files that are made shorter"),
            from("landlock 4: tcp", 4, "TCP, in addition to the filter of sockets"),
            from("landlock 5: ioctl", 5, "commands to devices"),
            from("landlock 6: scope", 6, "signals to processes outside, abstract sockets"),
            SandboxLevel {
                name: "seccomp",
                is_there: seccomp,
                holds: "sockets, namespaces, mounts, ptrace, io_uring, bpf, keys, modules",
            },
            SandboxLevel {
                name: "network namespace",
                is_there: own_network,
                holds: "with an allow-list of hosts: all but the proxy",
            },
            SandboxLevel {
                name: "pid namespace",
                is_there: own_processes,
                holds: "names, numbers and command lines of processes outside",
            },
        ];
        let escapes = escapes::table(lacks.is_none(), own_network, own_processes);
        Kernel { landlock, seccomp, own_network, own_processes, lacks, levels, escapes }
    })
}

/// A policy that names nothing; its directories are there already.
fn probe() -> SandboxPolicy {
    SandboxPolicy {
        write: Vec::new(),
        read: Vec::new(),
        deny: Vec::new(),
        user_home: "/".to_owned(),
        network: SandboxNetwork::Off,
        hosts: HostRules::default(),
        home: None,
        tmpdir: None,
    }
}

fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| scope.spawn(work).join().ok())
}

/// The version that the kernel has; one that this program does not know counts as the kernel says.
fn landlock_version() -> i32 {
    let restrict = || {
        let rules = Ruleset::default().handle_access(AccessFs::from_all(RIGHTS))?.create()?;
        Ok::<_, RulesetError>(RulesetCreated::restrict_self(rules)?.landlock)
    };
    match restrict() {
        Ok(LandlockStatus::Available { effective_abi, kernel_abi }) => {
            kernel_abi.unwrap_or(effective_abi as i32)
        }
        Ok(_) | Err(_) => ABI::Unsupported as i32,
    }
}
