//! What this kernel gives, found out by putting a policy into force on a thread that ends with it; and where that is
//! not enough, whether `bwrap` can do the rest.

use std::{sync::OnceLock, thread};

use super::{
    Confinement, Kernel, SandboxLevel,
    bubblewrap::bubblewrap,
    enforce::{RIGHTS, confine},
    escapes, network, probe, processes, syscalls,
};
use ennead_runtime::sandbox::SandboxNetwork;
use landlock::{
    ABI, Access, AccessFs, LandlockStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetError,
};

/// Returns what this kernel offers. It is asked once.
pub fn kernel() -> &'static Kernel {
    static FOUND: OnceLock<Kernel> = OnceLock::new();
    FOUND.get_or_init(|| {
        let landlock = on_thread(landlock_version).unwrap_or_default();
        let seccomp = on_thread(|| syscalls::filter(SandboxNetwork::Off).is_ok()).unwrap_or(false);
        let lacks = || {
            on_thread(|| confine(&probe(), Confinement::Landlock)).map_or_else(
                || Some("a thread cannot be made".to_owned()),
                |confined| confined.err().map(|it| it.to_string()),
            )
        };
        let chosen = std::env::var_os("ENNEAD_SANDBOX_LEVEL");
        let chosen = chosen.as_ref().map(|it| it.to_string_lossy());
        let found = choose(chosen.as_deref(), lacks, || bubblewrap().lacks.clone());
        let (confinement, lacks) = (found.as_ref().ok().copied(), found.err());
        let is_wrapped = confinement == Some(Confinement::Bubblewrap);
        let own_network = is_wrapped || network::is_there();
        let own_processes = is_wrapped || processes::is_there();
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
        let escapes = escapes::table(confinement, own_network, own_processes);
        Kernel {
            confinement,
            landlock,
            seccomp,
            own_network,
            own_processes,
            lacks,
            levels,
            escapes,
        }
    })
}

/// Returns how commands are confined, or why they cannot be. What is `chosen` is taken and nothing else. The two functions return what the one and the other lack;
/// the second is asked only where the first lacks something, or is not wanted.
fn choose(
    chosen: Option<&str>,
    landlock: impl FnOnce() -> Option<String>,
    bubblewrap: impl FnOnce() -> Option<String>,
) -> Result<Confinement, String> {
    let by_landlock = || landlock().map_or(Ok(Confinement::Landlock), Err);
    let by_bubblewrap = || bubblewrap().map_or(Ok(Confinement::Bubblewrap), Err);
    match chosen {
        None | Some("") => by_landlock().or_else(|landlock| {
            by_bubblewrap().map_err(|it| format!("{landlock}; and by bubblewrap neither: {it}"))
        }),
        Some("landlock") => by_landlock(),
        Some("bubblewrap") => by_bubblewrap(),
        Some(_) => {
            let why = "ENNEAD_SANDBOX_LEVEL is neither `landlock` nor `bubblewrap`";
            Err(why.to_owned())
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-10
    #[test]
    fn bubblewrap_is_asked_only_where_landlock_lacks_something_or_is_not_wanted() {
        let lacks = |what: &str| Some(what.to_owned());
        let unasked = || -> Option<String> { panic!("it is asked for nothing") };
        assert_eq!(choose(None, || None, unasked), Ok(Confinement::Landlock));
        assert_eq!(choose(None, || lacks("scope"), || None), Ok(Confinement::Bubblewrap));
        assert_eq!(choose(Some("bubblewrap"), unasked, || None), Ok(Confinement::Bubblewrap));
        let neither = choose(None, || lacks("scope"), || lacks("it is not there")).unwrap_err();
        assert!(neither.contains("scope") && neither.contains("it is not there"), "{neither}");
        // What is wanted and cannot be had is replaced by nothing.
        assert_eq!(choose(Some("landlock"), || lacks("scope"), unasked), Err("scope".to_owned()));
        assert_eq!(choose(Some("bubblewrap"), unasked, || lacks("gone")), Err("gone".to_owned()));
        assert!(
            choose(Some("none"), unasked, unasked).unwrap_err().contains("ENNEAD_SANDBOX_LEVEL")
        );
    }
}
