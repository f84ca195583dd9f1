//! The sessions of a server, by id and by age.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ennead_runtime::{
    ids::{SessionId, TenantId},
    time::Timestamp,
};

use super::hosted::Hosted;

/// The sessions of a server.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_id: BTreeMap<SessionId, Arc<Hosted>>,
    by_age: BTreeMap<Age, Arc<Hosted>>,
    of_tenant: BTreeMap<TenantId, usize>,
}

/// A place in the order of age; also the cursor of a list.
pub(crate) type Age = (Timestamp, SessionId);

impl Book {
    pub(crate) fn insert(&self, hosted: Arc<Hosted>) {
        let mut inner = self.lock();
        let id = hosted.id().clone();
        inner.by_age.insert((hosted.record.created_at, id.clone()), Arc::clone(&hosted));
        *inner.of_tenant.entry(hosted.tenant().clone()).or_default() += 1;
        inner.by_id.insert(id, hosted);
    }

    pub(crate) fn remove(&self, id: &SessionId) {
        let mut inner = self.lock();
        if let Some(hosted) = inner.by_id.remove(id) {
            inner.by_age.remove(&(hosted.record.created_at, id.clone()));
            if let Some(n) = inner.of_tenant.get_mut(hosted.tenant()) {
                *n = n.saturating_sub(1);
            }
        }
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<Arc<Hosted>> {
        self.lock().by_id.get(id).cloned()
    }

    /// At most `n` that `wanted` wants, the youngest first, from before a place on; and whether there may
    /// be more.
    pub(crate) fn youngest(
        &self,
        before: Option<&Age>,
        n: usize,
        wanted: impl Fn(&Hosted) -> bool,
    ) -> (Vec<Arc<Hosted>>, bool) {
        let inner = self.lock();
        let mut found: Vec<_> = match before {
            Some(age) => {
                let range = inner.by_age.range(..age.clone()).rev();
                range.map(|it| it.1).filter(|it| wanted(it)).take(n + 1).cloned().collect()
            }
            None => {
                let all = inner.by_age.values().rev();
                all.filter(|it| wanted(it)).take(n + 1).cloned().collect()
            }
        };
        let is_more = n < found.len();
        found.truncate(n);
        (found, is_more)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Hosted>> {
        self.lock().by_id.values().cloned().collect()
    }

    /// All tenants that have had sessions.
    pub(crate) fn tenants(&self) -> Vec<TenantId> {
        self.lock().of_tenant.keys().cloned().collect()
    }

    /// How many sessions there are, of this tenant and in all.
    pub(crate) fn count(&self, tenant: &TenantId) -> (usize, usize) {
        let inner = self.lock();
        (inner.of_tenant.get(tenant).copied().unwrap_or(0), inner.by_id.len())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while it is held leaves a session in one of the maps at most.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
