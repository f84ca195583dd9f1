//! A limited number of slots of which no tenant takes more than its share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use ennead_runtime::ids::TenantId;

use ennead_tools::locked::Locked as _;

/// Slots that tenants share. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    taken: Arc<Mutex<BTreeMap<TenantId, usize>>>,
    max: usize,
    max_of_one: usize,
}

/// A slot of a tenant that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct TakenShare {
    shares: Shares,
    tenant: TenantId,
}

impl Shares {
    /// Makes `max` slots, of which one tenant takes `max_of_one`.
    pub(crate) fn new(max: usize, max_of_one: usize) -> Self {
        Self { taken: Arc::default(), max, max_of_one }
    }

    /// Takes a slot; `None` when the tenant has its share, or none is left.
    pub(crate) fn take(&self, tenant: &TenantId) -> Option<TakenShare> {
        // Every change is whole before the lock goes, so a panic elsewhere spoils nothing.
        let mut taken = self.taken.locked();
        let own = taken.get(tenant).copied().unwrap_or(0);
        if self.max_of_one <= own || self.max <= taken.values().sum() {
            return None;
        }
        taken.insert(tenant.clone(), own + 1);
        Some(TakenShare { shares: self.clone(), tenant: tenant.clone() })
    }

    /// Returns how many slots are taken.
    pub(crate) fn n_taken(&self) -> usize {
        self.taken.locked().values().sum()
    }
}

impl Drop for TakenShare {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.locked();
        let Some(own) = taken.get_mut(&self.tenant) else { return };
        *own -= 1;
        if *own == 0 {
            taken.remove(&self.tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-4, RUN-8
    #[test]
    fn tenant_takes_its_share_and_leaves_the_rest_to_others() {
        let shares = Shares::new(3, 2);
        let (one, two, three) = ("one".into(), "two".into(), "three".into());
        let first = shares.take(&one).unwrap();
        let _second = shares.take(&one).unwrap();
        assert!(shares.take(&one).is_none(), "it has its share");
        let _third = shares.take(&two).unwrap();
        assert!(shares.take(&three).is_none(), "none is left");
        drop(first);
        assert!(shares.take(&three).is_some());
        assert_eq!(shares.n_taken(), 2);
        assert_eq!(shares.taken.locked().len(), 2, "one that has none is not kept");
    }
}
