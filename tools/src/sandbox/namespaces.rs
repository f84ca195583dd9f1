//! New namespaces of the kernel for the helper, and for what it starts.

use std::{fs, io};

use rustix::{
    process::{getegid, geteuid},
    thread::UnshareFlags,
};

/// Moves this process into new namespaces. To be called by the helper alone, while it has one thread.
///
/// # Errors
///
/// When the kernel has no such namespaces for this user.
pub(super) fn enter(what: UnshareFlags) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    // Root needs no other users for it, and would have no right over their files then.
    if user.is_root() && unshare(what).is_ok() {
        return Ok(());
    }
    unshare(UnshareFlags::NEWUSER | what)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

#[expect(
    deprecated,
    reason = "it is unsafe for tables of open files alone, which are not asked for"
)]
fn unshare(what: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(what)
}
