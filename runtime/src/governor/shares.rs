//! Who uses how much right now, and the part that is kept for those who use little.
//!
//! Turns alone make a quiet tenant wait until a call of a noisy one ends. So where something is
//! scarce and several tenants share it, an eighth of it is out of reach for who has more than a fair
//! share, and a quiet tenant finds it free.

use std::collections::BTreeMap;

use super::Tenant;
use crate::saturating::Saturating as _;

/// The part that is kept back: an eighth.
pub(crate) const RESERVE_DIVISOR: u64 = 8;

/// How long a tenant counts as present after it last asked, in milliseconds; a minute is the period
/// of providers' limits.
const PRESENT_MS: u64 = 60_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    in_flight: u32,
    seen: u64,
}

/// Calls under way, by tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    tenants: BTreeMap<Tenant, Share>,
    in_flight: u32,
    pruned_at: u64,
}

impl Shares {
    /// Notes that a tenant has asked.
    pub(crate) fn note_request(&mut self, now: u64, tenant: &Tenant) {
        if PRESENT_MS <= now.saturating_sub(self.pruned_at) {
            self.pruned_at = now;
            let is_present =
                |it: &Share| 0 < it.in_flight || now.saturating_sub(it.seen) < PRESENT_MS;
            self.tenants.retain(|_, it| is_present(it));
        }
        match self.tenants.get_mut(tenant) {
            Some(share) => share.seen = now,
            None => {
                self.tenants.insert(tenant.clone(), Share { in_flight: 0, seen: now });
            }
        }
    }

    /// Counts a call of this tenant that is sent.
    pub(crate) fn count_start(&mut self, tenant: &Tenant) {
        self.in_flight += 1;
        if let Some(share) = self.tenants.get_mut(tenant) {
            share.in_flight += 1;
        }
    }

    /// Counts a call of this tenant that has ended.
    pub(crate) fn count_end(&mut self, tenant: &Tenant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(share) = self.tenants.get_mut(tenant) {
            share.in_flight = share.in_flight.saturating_sub(1);
        }
    }

    /// Returns the number of calls under way.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns how many of these slots this tenant cannot have.
    pub(crate) fn slots_kept_from(&self, tenant: &Tenant, slots: u32) -> u32 {
        let fair = (slots / self.n_present()).max(1);
        if self.n_present() < 2 || slots < 2 || self.of(tenant) < fair {
            return 0;
        }
        (slots / RESERVE_DIVISOR as u32).max(1)
    }

    /// Returns whether a part of every bucket is kept from this tenant.
    pub(crate) fn is_kept_from_reserves(&self, tenant: &Tenant) -> bool {
        let (own, present) = (u64::from(self.of(tenant)), u64::from(self.n_present()));
        1 < present && u64::from(self.in_flight) < own * present
    }

    fn of(&self, tenant: &Tenant) -> u32 {
        self.tenants.get(tenant).map_or(0, |it| it.in_flight)
    }

    fn n_present(&self) -> u32 {
        u32::saturating(self.tenants.len()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-4
    #[test]
    fn a_part_is_kept_only_from_who_has_much_while_others_are_there() {
        let (noisy, quiet) = ("noisy".into(), "quiet".into());
        let mut shares = Shares::default();
        shares.note_request(0, &noisy);
        (0..20).for_each(|_| shares.count_start(&noisy));
        assert_eq!(shares.slots_kept_from(&noisy, 32), 0);
        shares.note_request(0, &quiet);
        assert_eq!(shares.slots_kept_from(&noisy, 32), 4);
        assert_eq!(shares.slots_kept_from(&quiet, 32), 0);
        assert!(shares.is_kept_from_reserves(&noisy) && !shares.is_kept_from_reserves(&quiet));
        // One slot cannot be divided.
        assert_eq!(shares.slots_kept_from(&noisy, 1), 0);
        shares.note_request(60_000, &noisy);
        assert_eq!(shares.slots_kept_from(&noisy, 32), 0);
    }
}
