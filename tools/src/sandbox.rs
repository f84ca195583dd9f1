//! Puts a [`SandboxPolicy`](ennead_runtime::sandbox::SandboxPolicy) into force: on the thread from
//! which a command is about to be started.
//!
//! The kernel enforces it from then on for the command and for all that it starts, and nothing can take
//! it back. Where it cannot be put into force the command is not started.

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
mod namespaces;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod network;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod processes;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod proxy;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod syscalls;

use serde::Serialize;

#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub(crate) use enforce::{confine, prepare};
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub use kernel::kernel;
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub use left_out::kernel;
#[cfg(all(target_os = "linux", not(feature = "sandbox")))]
pub(crate) use left_out::{PORT, Proxy, begin, confine, listen, prepare, separate};
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

/// What this kernel gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
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
            let why =
                "this program does not call `process_tree::reaper::serve`, or its helper failed";
            return Err(SandboxUnavailable(why.to_owned()));
        }
        Ok(())
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
