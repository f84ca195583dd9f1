//! What tenants may use, and what they have used today.
//!
//! Tokens are counted when a provider reports them, money when a run has ended. A day is one of UTC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{catalogue::Money, ids::TenantId, time::Timestamp};

/// Milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// Milliseconds after which the disk is looked at again.
const SOON: u64 = 30 * 1000;

/// Milliseconds after which the memory is looked at again.
const VERY_SOON: u64 = 5 * 1000;

/// What one tenant may use, and all of them together. `None` means no limit.
///
/// ```
/// use ennead_runtime::serve::ledger::TenantLimits;
///
/// let mut limits = TenantLimits::default();
/// limits.tokens_per_day = Some(5_000_000);
/// limits.runs = 4;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TenantLimits {
    /// Sessions of one tenant; 10,000.
    pub sessions: usize,
    /// Sessions in all; 200,000.
    pub all_sessions: usize,
    /// Runs of one tenant at once; 64.
    pub runs: usize,
    /// Runs at once in all; 1,024.
    pub all_runs: usize,
    /// Tokens of one tenant in a day, of all kinds together.
    pub tokens_per_day: Option<u64>,
    /// Tokens of all tenants in a day, of all kinds together.
    pub all_tokens_per_day: Option<u64>,
    /// Millionths of a US dollar of one tenant in a day, as far as prices are known.
    pub micro_usd_per_day: Option<u64>,
    /// Millionths of a US dollar of all tenants in a day, as far as prices are known.
    pub all_micro_usd_per_day: Option<u64>,
    /// Bytes of the directories and transcripts of one tenant; looked at every half minute.
    pub disk_bytes: Option<u64>,
    /// Bytes of the directories and transcripts of all tenants.
    pub all_disk_bytes: Option<u64>,
    /// Bytes of memory that the sessions of one tenant take that are actors; looked at every five seconds.
    pub memory_bytes: Option<u64>,
    /// Bytes of memory that the sessions of all tenants take that are actors.
    pub all_memory_bytes: Option<u64>,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            all_sessions: 200_000,
            runs: 64,
            all_runs: 1024,
            tokens_per_day: None,
            all_tokens_per_day: None,
            micro_usd_per_day: None,
            all_micro_usd_per_day: None,
            disk_bytes: None,
            all_disk_bytes: None,
            memory_bytes: None,
            all_memory_bytes: None,
        }
    }
}

/// A limit on the number of sessions that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLimit {
    /// The tenant has this number of sessions, as many as it may.
    OfTenant(usize),
    /// The server has as many sessions as it may.
    OfServer,
}

impl SessionLimit {
    /// Returns the limit that refuses one more session, where the tenant has `of_tenant` and the server `all`.
    pub fn reached(limits: &TenantLimits, of_tenant: usize, all: usize) -> Option<Self> {
        if limits.sessions <= of_tenant {
            return Some(Self::OfTenant(limits.sessions));
        }
        (limits.all_sessions <= all).then_some(Self::OfServer)
    }
}

/// What a tenant, or all tenants together, has nothing left of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedUp {
    /// The tokens of the day.
    Tokens,
    /// The money of the day.
    Money,
    /// The place on the disk.
    Disk,
    /// The memory of the process.
    Memory,
}

/// What was used in a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DayUse {
    tokens: u64,
    micro_usd: u64,
}

impl DayUse {
    fn add(&mut self, tokens: u64, micro_usd: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.micro_usd = self.micro_usd.saturating_add(micro_usd);
    }
}

/// What tenants have used today. Serialises to what has to survive a restart.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct UsageLedger {
    /// The day that the sums are of, as its number since 1970-01-01.
    day: u64,
    of_tenant: BTreeMap<TenantId, DayUse>,
    all: DayUse,
    /// Bytes on the disk, as they were measured last.
    #[serde(skip)]
    disk: BTreeMap<TenantId, u64>,
    /// Bytes of memory, as they were measured last.
    #[serde(skip)]
    memory: BTreeMap<TenantId, u64>,
}

impl UsageLedger {
    /// Counts what a model call took.
    pub fn count_tokens(&mut self, tenant: &TenantId, tokens: u64, now: Timestamp) {
        self.count(tenant, tokens, 0, now);
    }

    /// Counts what a run cost.
    pub fn count_money(&mut self, tenant: &TenantId, money: Money, now: Timestamp) {
        self.count(tenant, 0, money.micro_usd(), now);
    }

    /// Sets what a tenant has on the disk, in bytes.
    pub fn set_disk(&mut self, tenant: &TenantId, bytes: u64) {
        self.disk.insert(tenant.clone(), bytes);
    }

    /// Takes in what the sessions of all tenants take of the memory, in bytes. One that is not named takes none.
    pub fn set_memory(&mut self, memory: BTreeMap<TenantId, u64>) {
        self.memory = memory;
    }

    /// Returns the tenants whose sessions take more memory than they may: all that take any where all together do.
    pub fn above_memory(&self, limits: &TenantLimits) -> Vec<TenantId> {
        let are_all = is_over(sum(&self.memory), limits.all_memory_bytes);
        let is_above = |used: u64| are_all || is_over(used, limits.memory_bytes);
        self.memory.iter().filter(|it| is_above(*it.1)).map(|it| it.0.clone()).collect()
    }

    /// Returns what keeps a run of this tenant from beginning, and after how many milliseconds at the earliest
    /// that may be otherwise.
    pub fn used_up(
        &mut self,
        limits: &TenantLimits,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Option<(UsedUp, u64)> {
        self.begin_day(now);
        let spent = self.of_tenant.get(tenant).copied().unwrap_or_default();
        let until_tomorrow = DAY - now.0 % DAY;
        if is_over(spent.tokens, limits.tokens_per_day)
            || is_over(self.all.tokens, limits.all_tokens_per_day)
        {
            return Some((UsedUp::Tokens, until_tomorrow));
        }
        if is_over(spent.micro_usd, limits.micro_usd_per_day)
            || is_over(self.all.micro_usd, limits.all_micro_usd_per_day)
        {
            return Some((UsedUp::Money, until_tomorrow));
        }
        let of = |measured: &BTreeMap<TenantId, u64>| measured.get(tenant).copied().unwrap_or(0);
        if is_over(of(&self.disk), limits.disk_bytes)
            || is_over(sum(&self.disk), limits.all_disk_bytes)
        {
            return Some((UsedUp::Disk, SOON));
        }
        let is_above = is_over(of(&self.memory), limits.memory_bytes)
            || is_over(sum(&self.memory), limits.all_memory_bytes);
        is_above.then_some((UsedUp::Memory, VERY_SOON))
    }

    fn count(&mut self, tenant: &TenantId, tokens: u64, micro_usd: u64, now: Timestamp) {
        self.begin_day(now);
        self.all.add(tokens, micro_usd);
        self.of_tenant.entry(tenant.clone()).or_default().add(tokens, micro_usd);
    }

    /// Forgets what was used before this day.
    fn begin_day(&mut self, now: Timestamp) {
        let day = now.0 / DAY;
        if self.day != day {
            (self.day, self.all) = (day, DayUse::default());
            self.of_tenant.clear();
        }
    }
}

/// Whether nothing is left of what there is a limit for.
fn is_over(used: u64, limit: Option<u64>) -> bool {
    limit.is_some_and(|it| it <= used)
}

fn sum(measured: &BTreeMap<TenantId, u64>) -> u64 {
    measured.values().fold(0, |sum, it| sum.saturating_add(*it))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp(20_000 * DAY + DAY / 2);

    // REQ: RUN-4, RUN-8
    #[test]
    fn tenant_that_used_its_tokens_waits_for_the_next_day_and_no_other_does() {
        let limits = TenantLimits { tokens_per_day: Some(100), ..TenantLimits::default() };
        let mut ledger = UsageLedger::default();
        let (one, two) = (TenantId::from("one"), TenantId::from("two"));
        ledger.count_tokens(&one, 99, NOON);
        assert_eq!(ledger.used_up(&limits, &one, NOON), None);
        ledger.count_tokens(&one, 1, NOON);
        assert_eq!(ledger.used_up(&limits, &one, NOON), Some((UsedUp::Tokens, DAY / 2)));
        assert_eq!(ledger.used_up(&limits, &two, NOON), None);
        let text = serde_json::to_string(&ledger).unwrap();
        let mut again: UsageLedger = serde_json::from_str(&text).unwrap();
        assert!(again.used_up(&limits, &one, NOON).is_some(), "a restart forgets nothing");
        let midnight = Timestamp(NOON.0 + DAY / 2);
        assert_eq!(again.used_up(&limits, &one, midnight), None, "the next day begins");
    }

    // REQ: RUN-4, RUN-8
    #[test]
    fn limits_of_all_tenants_hold_each_of_them_up_and_tokens_come_before_money_and_disk() {
        let limits = TenantLimits {
            all_tokens_per_day: Some(10),
            all_micro_usd_per_day: Some(10),
            disk_bytes: Some(10),
            ..TenantLimits::default()
        };
        let mut ledger = UsageLedger::default();
        let (one, two) = (TenantId::from("one"), TenantId::from("two"));
        ledger.set_disk(&two, 10);
        assert_eq!(ledger.used_up(&limits, &one, NOON), None);
        assert_eq!(ledger.used_up(&limits, &two, NOON), Some((UsedUp::Disk, SOON)));
        ledger.count_money(&one, Money::of_micro_usd(10), NOON);
        assert_eq!(ledger.used_up(&limits, &two, NOON), Some((UsedUp::Money, DAY / 2)));
        ledger.count_tokens(&one, 10, NOON);
        assert_eq!(ledger.used_up(&limits, &two, NOON), Some((UsedUp::Tokens, DAY / 2)));
    }

    // REQ: RUN-4, RUN-7
    #[test]
    fn memory_and_disk_of_a_tenant_hold_up_itself_and_those_of_all_hold_up_everybody() {
        let (one, two, idle) = (TenantId::from("one"), TenantId::from("two"), "idle".into());
        let memory = BTreeMap::from([(one.clone(), 10), (two.clone(), 9)]);
        let mut ledger = UsageLedger::default();
        ledger.set_memory(memory);
        let mut limits = TenantLimits { memory_bytes: Some(10), ..TenantLimits::default() };
        let above = Some((UsedUp::Memory, VERY_SOON));
        assert_eq!(ledger.used_up(&limits, &one, NOON), above);
        assert_eq!(ledger.used_up(&limits, &two, NOON), None);
        assert_eq!(ledger.above_memory(&limits), std::slice::from_ref(&one));
        limits.all_memory_bytes = Some(20);
        assert_eq!(ledger.used_up(&limits, &two, NOON), None, "19 of 20");
        limits.all_memory_bytes = Some(19);
        assert_eq!(ledger.used_up(&limits, &two, NOON), above);
        assert_eq!(ledger.used_up(&limits, &idle, NOON), above, "it would take more");
        assert_eq!(ledger.above_memory(&limits), [one.clone(), two.clone()]);
        ledger.set_memory(BTreeMap::new());
        assert_eq!(ledger.used_up(&limits, &one, NOON), None);
        ledger.set_disk(&one, 5);
        ledger.set_disk(&two, 6);
        limits.all_disk_bytes = Some(11);
        assert_eq!(ledger.used_up(&limits, &idle, NOON), Some((UsedUp::Disk, SOON)));
    }

    // REQ: RUN-7
    #[test]
    fn session_at_the_limit_is_refused_and_one_below_it_is_not() {
        let limits = TenantLimits { sessions: 2, all_sessions: 3, ..TenantLimits::default() };
        assert_eq!(SessionLimit::reached(&limits, 1, 2), None);
        assert_eq!(SessionLimit::reached(&limits, 2, 2), Some(SessionLimit::OfTenant(2)));
        assert_eq!(SessionLimit::reached(&limits, 1, 3), Some(SessionLimit::OfServer));
    }
}
