//! This program as its own helper: the names under which it is started once more, and whether that works.
//!
//! The [reaper](crate::process_tree::reaper) is what runs under these names; the sandbox asks by them what
//! the kernel gives.

use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering},
};

/// The name under which a helper is started.
pub(crate) const NAME: &str = "ennead-reaper";

/// In place of what becomes of the rest: whether it can have a network of its own is all that is asked.
pub(crate) const PROBE: &str = "probe-network";

/// In place of what becomes of the rest: a reaper is to be the first process of a PID namespace, and this
/// process makes that.
pub(crate) const OUTER: &str = "outer";

/// In place of what becomes of the rest: this is the first process of its PID namespace.
pub(crate) const FIRST: &str = "first";

/// In place of what becomes of the rest: a reaper is to be the first process in what `bwrap` makes, and this process
/// starts that.
pub(crate) const BUBBLEWRAP: &str = "bubblewrap";

/// In place of what becomes of the rest: this is the first process in what `bwrap` has made.
pub(crate) const INSIDE: &str = "inside";

/// The path by which `bwrap` starts a helper, with the number of a descriptor after it; [`NAME`] is its first argument
/// then, as no other name can be given to it.
pub(crate) const BY_DESCRIPTOR: &str = "/proc/self/fd/";

/// After [`OUTER`], [`BUBBLEWRAP`] and [`INSIDE`]: whether that can be had is all that is asked.
pub(crate) const PROBE_PROCESSES: &str = "probe-processes";

/// Returns whether the words that a process was started with are those of a helper, and leaves those after that name.
pub(crate) fn is_started(words: &mut impl Iterator<Item = OsString>) -> bool {
    let Some(first) = words.next() else { return false };
    let is_wrapped = first.to_str().is_some_and(|it| it.starts_with(BY_DESCRIPTOR));
    first == NAME || is_wrapped && words.next().is_some_and(|it| it == NAME)
}

/// Whether the executable of this process is a helper under that name.
static OFFERED: AtomicBool = AtomicBool::new(false);

/// Records that the executable of this process is a helper under that name.
pub(crate) fn offer() {
    OFFERED.store(true, Ordering::Relaxed);
}

/// Returns whether a helper can be started.
pub(crate) fn is_offered() -> bool {
    OFFERED.load(Ordering::Relaxed)
}

/// Records that a helper could not be used, so that none is started again.
pub(crate) fn give_up() {
    OFFERED.store(false, Ordering::Relaxed);
}
