//! This program as its own helper: the names under which it is started once more, and whether that works.
//!
//! The [reaper](crate::process_tree::reaper) is what runs under these names; the sandbox asks by them what
//! the kernel gives.

use std::sync::atomic::{AtomicBool, Ordering};

/// The name under which a helper is started.
pub(crate) const NAME: &str = "ennead-reaper";

/// In place of what becomes of the rest: whether it can have a network of its own is all that is asked.
pub(crate) const PROBE: &str = "probe-network";

/// In place of what becomes of the rest: a reaper is to be the first process of a PID namespace, and this
/// process makes that.
pub(crate) const OUTER: &str = "outer";

/// In place of what becomes of the rest: this is the first process of its PID namespace.
pub(crate) const FIRST: &str = "first";

/// After [`OUTER`]: whether there can be such a namespace is all that is asked.
pub(crate) const PROBE_PROCESSES: &str = "probe-processes";

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
