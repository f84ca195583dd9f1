//! Confining a thread: Landlock holds files, signals and TCP, where that is not done by what
//! [`bubblewrap`](super::bubblewrap) has made around it; a filter of system calls holds the rest.

use std::io;

use ennead_runtime::sandbox::{SandboxNetwork, SandboxPolicy};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::{
    process::{Resource, Rlimit, setrlimit},
    thread::{CapabilitySet, remove_capability_from_bounding_set},
};

use super::{Confinement, files, syscalls};

/// The rights that are enforced. The sixth version is the first to hold signals and abstract sockets,
/// without which a command could end the process that confines it.
pub(super) const RIGHTS: ABI = ABI::V6;

/// What a command of root keeps: to work on files of others, where Landlock lets it.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Sets up for the whole process what a command is to inherit: to be called by its helper alone.
///
/// # Errors
///
/// When directories cannot be made, or the limit cannot be set.
pub(crate) fn prepare(policy: &SandboxPolicy) -> io::Result<()> {
    let directories = [policy.home.as_ref(), policy.tmpdir.as_ref()];
    for directory in directories.into_iter().flatten() {
        std::fs::create_dir_all(directory)?;
    }
    // What the one that started us has left open is nothing of the command's.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    // A dump of its memory would be written by the kernel, which no rule holds.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// Confines the calling thread, and what it starts, for good.
///
/// # Errors
///
/// When any part of it cannot be enforced. Other parts may be in force by then: the thread is to end.
pub(crate) fn confine(policy: &SandboxPolicy, by: Confinement) -> io::Result<()> {
    if by == Confinement::Landlock {
        restrict(policy).map_err(io::Error::other)?;
    }
    drop_capabilities();
    syscalls::filter(policy.network).map_err(io::Error::other)
}

/// The part of Landlock.
fn restrict(policy: &SandboxPolicy) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(RIGHTS))?
        .scope(Scope::from_all(RIGHTS))?;
    if policy.network == SandboxNetwork::Off {
        rules = rules.handle_access(AccessNet::from_all(RIGHTS))?;
    }
    let mut rules = rules.create()?;
    for grant in files::grants(policy)? {
        let rights = if grant.is_writable {
            AccessFs::from_all(RIGHTS)
        } else {
            AccessFs::from_read(RIGHTS)
        };
        // A device is used by reading and writing alone.
        let without = if grant.is_directory {
            AccessFs::MakeChar | AccessFs::MakeBlock
        } else {
            !AccessFs::from_file(RIGHTS)
        };
        let rights = (rights & !without) & !AccessFs::IoctlDev;
        rules = rules.add_rule(PathBeneath::new(grant.file, rights))?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        other => Err(format!("Landlock is {other:?}").into()),
    }
}

/// Takes from the programs of root what makes root more than the owner of files.
fn drop_capabilities() {
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        // Not allowed to who is not root, whose programs get none.
        let _has_none = remove_capability_from_bounding_set(capability);
    }
}
