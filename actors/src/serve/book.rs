//! The sessions of a server, by id, by tenant and age, and those that are awake.
//!
//! A session is awake while it is an actor or its runs are in memory. Sweeps go through those alone, page by
//! page, so that no one holds the book for long however many sessions there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard},
};

use ennead_runtime::{
    ids::{SessionId, TenantId},
    time::Timestamp,
};

use super::{hosted::Hosted, record::Saved};
use ennead_tools::locked::Locked as _;

/// Sessions of a page of a [`Walk`].
const PAGE: usize = 256;

/// The sessions of a server.
#[derive(Debug, Default)]
pub(crate) struct SessionBook(Mutex<BookIndex>);

#[derive(Debug, Default)]
struct BookIndex {
    by_id: BTreeMap<SessionId, Arc<Hosted>>,
    by_age: ByAge,
    /// Also of tenants whose sessions are deleted: their directories may still be there.
    of_tenant: BTreeMap<TenantId, ByAge>,
    awake: BTreeSet<SessionId>,
    /// Sessions that are being made.
    coming: BTreeMap<TenantId, usize>,
}

/// The place of a session that is being made; given up when it is dropped.
#[derive(Debug)]
pub(crate) struct ReservedPlace<'a> {
    book: &'a SessionBook,
    tenant: TenantId,
}

impl Drop for ReservedPlace<'_> {
    fn drop(&mut self) {
        let mut inner = self.book.lock();
        let Some(n) = inner.coming.get_mut(&self.tenant) else { return };
        *n -= 1;
        if *n == 0 {
            inner.coming.remove(&self.tenant);
        }
    }
}

type ByAge = BTreeMap<Age, Arc<Hosted>>;

/// A place in the order of age; also the cursor of a list.
pub(crate) type Age = (Timestamp, SessionId);

/// Which sessions a walk goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// All sessions, asleep or awake.
    All,
    /// Sessions that are awake.
    Awake,
}

/// Goes through sessions in the order of their ids, a page at a time. One that is made or deleted meanwhile is
/// found or not.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    book: &'a SessionBook,
    walked: Walked,
    last: Option<SessionId>,
}

impl SessionBook {
    /// Makes the book of the sessions that an earlier process left.
    pub(crate) fn new(saved: Vec<Saved>) -> Self {
        let book = Self::default();
        for mut saved in saved {
            saved.record.tenant = book.known(saved.record.tenant);
            book.insert(Arc::new(Hosted::new(saved)));
        }
        book
    }

    /// Returns the same name of a tenant, in the place of one that has sessions.
    pub(crate) fn known(&self, tenant: TenantId) -> TenantId {
        let inner = self.lock();
        inner.of_tenant.get_key_value(&tenant).map_or(tenant, |(known, _)| known.clone())
    }

    pub(crate) fn insert(&self, hosted: Arc<Hosted>) {
        let mut inner = self.lock();
        let id = hosted.id().clone();
        let age = (hosted.record.created_at, id.clone());
        let of_tenant = inner.of_tenant.entry(hosted.tenant().clone()).or_default();
        of_tenant.insert(age.clone(), Arc::clone(&hosted));
        inner.by_age.insert(age, Arc::clone(&hosted));
        inner.by_id.insert(id, hosted);
    }

    pub(crate) fn remove(&self, id: &SessionId) {
        let mut inner = self.lock();
        inner.awake.remove(id);
        if let Some(hosted) = inner.by_id.remove(id) {
            let age = (hosted.record.created_at, id.clone());
            inner.by_age.remove(&age);
            if let Some(of_tenant) = inner.of_tenant.get_mut(hosted.tenant()) {
                of_tenant.remove(&age);
            }
        }
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<Arc<Hosted>> {
        self.lock().by_id.get(id).cloned()
    }

    /// Returns a session and marks it as awake.
    pub(crate) fn awaken(&self, id: &SessionId) -> Option<Arc<Hosted>> {
        let mut inner = self.lock();
        let hosted = inner.by_id.get(id).cloned()?;
        if !inner.awake.contains(id) {
            inner.awake.insert(id.clone());
        }
        Some(hosted)
    }

    /// Marks a session as asleep. To be called while its state is locked and holds nothing, so that one that is
    /// used again just then is awake afterwards.
    pub(crate) fn put_to_sleep(&self, id: &SessionId) {
        self.lock().awake.remove(id);
    }

    /// Returns at most `n` sessions, the youngest first, from before a place on, and whether there are more. With
    /// a tenant they are those of that tenant.
    pub(crate) fn youngest(
        &self,
        tenant: Option<&TenantId>,
        before: Option<&Age>,
        n: usize,
    ) -> (Vec<Arc<Hosted>>, bool) {
        let inner = self.lock();
        let by_age = match tenant {
            None => Some(&inner.by_age),
            Some(tenant) => inner.of_tenant.get(tenant),
        };
        let Some(by_age) = by_age else { return (Vec::new(), false) };
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        let range = by_age.range::<Age, _>((Bound::Unbounded, end)).rev();
        let mut found: Vec<_> = range.map(|it| it.1).take(n + 1).cloned().collect();
        let is_more = n < found.len();
        found.truncate(n);
        (found, is_more)
    }

    /// Walks through sessions by pages.
    pub(crate) fn walk(&self, walked: Walked) -> Walk<'_> {
        Walk { book: self, walked, last: None }
    }

    /// Returns all tenants that have had sessions.
    pub(crate) fn tenants(&self) -> Vec<TenantId> {
        self.lock().of_tenant.keys().cloned().collect()
    }

    /// Takes the place of a session that is to be made. `admit` decides by how many there are, of this tenant and
    /// in all, those that are being made included.
    pub(crate) fn reserve<E>(
        &self,
        tenant: &TenantId,
        admit: impl FnOnce(usize, usize) -> Result<(), E>,
    ) -> Result<ReservedPlace<'_>, E> {
        let mut inner = self.lock();
        let of_tenant = inner.of_tenant.get(tenant).map_or(0, BTreeMap::len);
        let coming = inner.coming.get(tenant).copied().unwrap_or(0);
        let all = inner.by_id.len() + inner.coming.values().sum::<usize>();
        admit(of_tenant + coming, all)?;
        *inner.coming.entry(tenant.clone()).or_default() += 1;
        Ok(ReservedPlace { book: self, tenant: tenant.clone() })
    }

    /// Returns how many sessions there are in all.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    fn lock(&self) -> MutexGuard<'_, BookIndex> {
        // A panic while it is held leaves a session in some of the maps at most.
        self.0.locked()
    }
}

impl Iterator for Walk<'_> {
    type Item = Vec<Arc<Hosted>>;

    /// Returns the next page; no page is empty, but where all of its sessions are deleted.
    fn next(&mut self) -> Option<Vec<Arc<Hosted>>> {
        let inner = self.book.lock();
        let start = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (start, Bound::Unbounded);
        let page: Vec<_> = match self.walked {
            Walked::All => {
                let rest = inner.by_id.range::<SessionId, _>(range);
                rest.map(|it| it.1).take(PAGE).cloned().collect()
            }
            Walked::Awake => {
                let rest = inner.awake.range::<SessionId, _>(range);
                rest.take(PAGE).filter_map(|it| inner.by_id.get(it).cloned()).collect()
            }
        };
        self.last = Some(page.last()?.id().clone());
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::record::{Record, Totals};

    fn saved(id: &str, tenant: &str, at: u64) -> Saved {
        let record = Record {
            id: id.into(),
            tenant: tenant.into(),
            title: None,
            directory: id.into(),
            model: None,
            mode: None,
            max_turns: None,
            system: None,
            created_at: Timestamp(at),
        };
        Saved { record, totals: Totals::default(), last_used_at: None, last_model: None }
    }

    fn ids(found: &[Arc<Hosted>]) -> Vec<&str> {
        found.iter().map(|it| it.id().as_str()).collect()
    }

    // REQ: RUN-4, SUR-5
    #[test]
    fn pages_of_a_tenant_have_its_own_sessions_alone_and_the_youngest_first() {
        let all = [("a", "one", 1), ("b", "two", 2), ("c", "one", 3), ("d", "one", 3)];
        let book = SessionBook::new(all.map(|(id, of, at)| saved(id, of, at)).into());
        let one = TenantId::from("one");
        let (page, is_more) = book.youngest(Some(&one), None, 2);
        assert_eq!((ids(&page), is_more), (vec!["d", "c"], true));
        let cursor = (Timestamp(3), SessionId::from("c"));
        let (page, is_more) = book.youngest(Some(&one), Some(&cursor), 2);
        assert_eq!((ids(&page), is_more), (vec!["a"], false));
        let (page, is_more) = book.youngest(None, Some(&cursor), 2);
        assert_eq!((ids(&page), is_more), (vec!["b", "a"], false));
        book.remove(&"a".into());
        assert_eq!(book.len(), 3);
        let mut seen = (0, 0);
        let place = book.reserve::<()>(&one, |of_tenant, all| {
            seen = (of_tenant, all);
            Ok(())
        });
        assert_eq!(seen, (2, 3));
        let counted = |of_tenant, all| Err((of_tenant, all));
        assert_eq!(book.reserve(&one, counted).unwrap_err(), (3, 4), "one is being made");
        drop(place);
        assert_eq!(book.reserve(&one, counted).unwrap_err(), (2, 3));
        assert_eq!(ids(&book.youngest(Some(&one), Some(&cursor), 2).0), Vec::<&str>::new());
        assert_eq!(book.youngest(Some(&"none".into()), None, 2).0.len(), 0);
    }

    // REQ: RUN-7
    #[test]
    fn walk_of_those_awake_passes_over_all_others_and_ends_after_the_last_page() {
        let all = (0..3 * PAGE).map(|n| saved(&format!("{n:04}"), "one", n as u64)).collect();
        let book = SessionBook::new(all);
        assert_eq!(book.walk(Walked::Awake).count(), 0);
        for n in (0..3 * PAGE).step_by(2) {
            assert!(book.awaken(&format!("{n:04}").as_str().into()).is_some());
        }
        book.put_to_sleep(&"0000".into());
        book.remove(&"0002".into());
        let pages: Vec<_> = book.walk(Walked::Awake).collect();
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [PAGE, PAGE / 2 - 2]);
        assert_eq!(ids(&pages[0])[..2], ["0004", "0006"]);
        assert_eq!(book.walk(Walked::All).map(|it| it.len()).sum::<usize>(), 3 * PAGE - 1);
        assert!(book.awaken(&"none".into()).is_none());
    }
}
