//! How often Stop hooks may hold a run open.

/// Times in a row that Stop hooks may keep a run from ending (HKS-6). Counted anew
/// with each prompt of a person.
pub(crate) const MAX_STOP_HOLDS: u32 = 8;

/// Returns whether Stop hooks that have held the run `n_held` times in a row may do so again. If not, the run ends and
/// the user receives an alert.
pub(crate) fn may_hold(n_held: u32) -> bool {
    n_held < MAX_STOP_HOLDS
}
