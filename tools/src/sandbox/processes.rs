//! Processes of a command's own: a PID namespace whose first process is a helper, and a `/proc` that shows
//! no other. When that helper ends the kernel ends all that is in there.
//!
//! Two helpers take part: only what a process starts is in a PID namespace that it made.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{Signal, set_parent_process_death_signal},
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set,
        configure_capability_in_ambient_set, set_capabilities,
    },
};

use super::namespaces;
use crate::helper;

/// Makes the next process that this one starts the first of a new namespace, with the right to mount. To be called by
/// the outer helper alone, while it has one thread.
///
/// # Errors
///
/// When the kernel has no such namespace for this user.
pub(crate) fn separate() -> io::Result<()> {
    namespaces::enter(UnshareFlags::NEWPID | UnshareFlags::NEWNS)?;
    // A program that is not of root gets no right by having been started.
    let right = CapabilitySet::SYS_ADMIN;
    let own = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: own.inheritable | right, ..own })?;
    Ok(configure_capability_in_ambient_set(right, true)?)
}

/// Makes this process, the first of its namespace, see its own processes, and end with the outer helper. To be called
/// by the inner helper alone, before all else.
///
/// # Errors
///
/// When `/proc` cannot be mounted: it may be partly hidden from this process itself.
pub(crate) fn begin() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // What is mounted later is seen in here, and what is mounted in here nowhere else.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    clear_ambient_capability_set()?;
    let own = capabilities(None)?;
    let inheritable = own.inheritable.difference(CapabilitySet::SYS_ADMIN);
    Ok(set_capabilities(None, CapabilitySets { inheritable, ..own })?)
}

/// Returns whether the kernel lets this program's helpers do so.
pub(super) fn is_there() -> bool {
    let mut probe = Command::new("/proc/self/exe");
    probe.arg0(helper::NAME).args([helper::OUTER, helper::PROBE_PROCESSES]);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    helper::is_offered() && probe.status().is_ok_and(|it| it.success())
}
