//! How long to wait before a request is made again.
//!
//! Waits grow and have jitter, so that sessions which failed together do not come back together.

/// Retries per model and turn, unless the settings say otherwise.
pub const DEFAULT_RETRIES: u32 = 10;

/// The most that settings can raise [`DEFAULT_RETRIES`] to.
pub const MAX_RETRIES: u32 = 15;

/// The first wait, in milliseconds; each further one is twice as long.
pub(crate) const BACKOFF_BASE_MS: u64 = 500;

/// The longest wait of our own choosing, in milliseconds.
pub(crate) const BACKOFF_CAP_MS: u64 = 32_000;

/// The longest wait that a provider may ask a turn for, 10 minutes in milliseconds. A longer one is
/// no pause but a quota: the chain is tried, or the failure remains.
pub(crate) const MAX_RETRY_AFTER_MS: u64 = 600_000;

/// Returns the wait before retry `n` in milliseconds, counted from 0: between half and all of the exponential step.
pub fn backoff(n: u32, draw: u64) -> u64 {
    let step = BACKOFF_BASE_MS.checked_shl(n.min(16)).unwrap_or(u64::MAX).min(BACKOFF_CAP_MS);
    let half = step / 2;
    half + draw % (step - half + 1)
}
