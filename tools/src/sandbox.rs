//! Puts a [`SandboxPolicy`] into force: on the thread from
//! which a command is about to be started.
//!
//! The kernel enforces it from then on for the command and for all that it starts, and nothing can take
//! it back. Where it cannot be put into force the command is not started.

#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod bubblewrap;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod enforce;
mod escapes;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod files;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod kernel;
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
mod left_out;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod mounts;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod namespaces;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod network;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod processes;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod proxy;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod syscalls;

#[cfg(target_os = "linux")]
use ennead_runtime::sandbox::{HostRules, SandboxNetwork, SandboxPolicy};
use serde::Serialize;

#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub use bubblewrap::bubblewrap;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub(crate) use bubblewrap::{begin_inside, wrap};
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub(crate) use enforce::{confine, prepare};
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub use kernel::kernel;
#[cfg(all(target_os = "linux", not(feature = "sandbox")))]
pub(crate) use left_out::{
    PORT, Proxy, begin, begin_inside, confine, listen, prepare, separate, wrap,
};
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub use left_out::{bubblewrap, kernel};
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub(crate) use network::{PORT, listen};
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub(crate) use processes::{begin, separate};
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub(crate) use proxy::Proxy;

pub use escapes::SandboxEscape;

/// Why commands cannot be confined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("commands cannot be confined: {0}")]
pub struct SandboxUnavailable(pub String);

/// Why a program confines nothing, whatever the kernel gives.
#[cfg(target_os = "linux")]
const NO_HELPER: &str =
    "this program does not call `process_tree::reaper::serve`, or its helper failed";

/// A policy that names nothing; its directories are there already.
#[cfg(target_os = "linux")]
pub(crate) fn probe() -> SandboxPolicy {
    SandboxPolicy {
        write: Vec::new(),
        own_files: Vec::new(),
        read: Vec::new(),
        deny: Vec::new(),
        user_home: "/".to_owned(),
        network: SandboxNetwork::Off,
        hosts: HostRules::default(),
        home: None,
        tmpdir: None,
    }
}

/// How commands are confined: two ways to carry out the same policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confinement {
    /// By Landlock and a filter of system calls, in namespaces where they can be had.
    Landlock,
    /// By namespaces and mounts that `bwrap` makes, and the same filter of system calls.
    Bubblewrap,
}

/// The program `bwrap` of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bubblewrap {
    /// Where it is, if it is there and can be trusted.
    pub path: Option<&'static str>,
    /// Why it confines no command here, if it does not.
    pub lacks: Option<String>,
}

/// What this kernel gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// How commands are confined; `None`: they cannot be.
    pub confinement: Option<Confinement>,
    /// Version of Landlock; 0: there is none.
    pub landlock: i32,
    /// Whether filters of system calls are taken.
    pub seccomp: bool,
    /// Whether a command can have a network of its own, which an allow-list of hosts needs.
    pub own_network: bool,
    /// Whether a command has a PID namespace of its own, and sees no other processes.
    pub own_processes: bool,
    /// Why commands cannot be confined, if they cannot.
    pub lacks: Option<String>,
    /// What is reached of it, in the order in which it is put into force.
    pub levels: Vec<SandboxLevel>,
    /// Ways out of the sandbox, and whether it prevents them here.
    pub escapes: Vec<SandboxEscape>,
}

/// One part of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SandboxLevel {
    /// The part of the kernel that it is done with.
    pub name: &'static str,
    /// Whether this kernel has it.
    pub is_there: bool,
    /// What this part keeps commands from, in words.
    pub holds: &'static str,
}

impl Kernel {
    /// Checks whether commands of this process can be confined.
    ///
    /// # Errors
    ///
    /// [`SandboxUnavailable`]: the kernel lacks something, or this program is not its own helper.
    pub fn check(&self) -> Result<(), SandboxUnavailable> {
        if let Some(why) = &self.lacks {
            return Err(SandboxUnavailable(why.clone()));
        }
        #[cfg(target_os = "linux")]
        if !crate::helper::is_offered() {
            return Err(SandboxUnavailable(NO_HELPER.to_owned()));
        }
        Ok(())
    }

    /// Returns the word for a helper that is to make what a command is confined by, if there is something to make.
    #[cfg(target_os = "linux")]
    pub(crate) fn helper_word(&self) -> Option<&'static str> {
        match self.confinement {
            Some(Confinement::Bubblewrap) => Some(crate::helper::BUBBLEWRAP),
            Some(Confinement::Landlock) | None => {
                self.own_processes.then_some(crate::helper::OUTER)
            }
        }
    }

    /// Checks whether commands of this process can be confined to some hosts.
    ///
    /// # Errors
    ///
    /// [`SandboxUnavailable`]: that of [`Kernel::check`], or the kernel gives this user no network of its own.
    pub fn check_hosts(&self) -> Result<(), SandboxUnavailable> {
        self.check()?;
        if self.own_network {
            Ok(())
        } else {
            let why =
                "an allow-list of hosts needs network namespaces, which this user cannot make";
            Err(SandboxUnavailable(why.to_owned()))
        }
    }
}
