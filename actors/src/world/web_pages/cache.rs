//! Pages that were fetched lately, of one session and its sub-agents. No other session sees them: what one tenant
//! reads is nothing that another learns by how fast it gets it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ennead_runtime::ports::web::FetchedPage;
use ennead_tools::locked::Locked as _;

/// Pages that are kept.
const MAX_PAGES: usize = 32;

/// Bytes of their texts and addresses together.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The pages of a session. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageCache(Arc<Mutex<Vec<KeptPage>>>);

/// A page, with when it was fetched.
#[derive(Debug)]
struct KeptPage {
    key: String,
    page: FetchedPage,
    at: Duration,
}

impl KeptPage {
    fn n_bytes(&self) -> usize {
        self.key.len() + self.page.url.len() + self.page.text.len()
    }
}

impl PageCache {
    /// Returns the page that was kept under `key`, if that is not longer ago than `ttl`.
    pub(super) fn get(&self, key: &str, now: Duration, ttl: Duration) -> Option<FetchedPage> {
        let mut pages = self.0.locked();
        pages.retain(|it| now.saturating_sub(it.at) < ttl);
        pages.iter().find(|it| it.key == key).map(|it| it.page.clone())
    }

    /// Keeps a page; the oldest make way for it.
    pub(super) fn put(&self, key: String, page: FetchedPage, now: Duration, ttl: Duration) {
        let mut pages = self.0.locked();
        pages.retain(|it| it.key != key && now.saturating_sub(it.at) < ttl);
        let new = KeptPage { key, page, at: now };
        let mut n_bytes = new.n_bytes() + pages.iter().map(KeptPage::n_bytes).sum::<usize>();
        while !pages.is_empty() && (MAX_PAGES <= pages.len() || MAX_BYTES < n_bytes) {
            n_bytes -= pages.remove(0).n_bytes();
        }
        if !ttl.is_zero() {
            pages.push(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(900);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    // REQ: TOL-6
    #[test]
    fn page_is_kept_for_its_time_and_not_longer() {
        let cache = PageCache::default();
        cache.put("a".into(), FetchedPage::new("a", "x"), at(0), TTL);
        assert!(cache.get("a", at(899), TTL).is_some());
        assert!(cache.get("a", at(900), TTL).is_none());
        cache.put("b".into(), FetchedPage::new("b", "x"), at(0), Duration::ZERO);
        assert!(cache.get("b", at(0), Duration::ZERO).is_none());
        assert!(PageCache::default().get("a", at(0), TTL).is_none(), "sessions share nothing");
    }

    // REQ: TOL-6
    #[test]
    fn oldest_pages_make_way_by_number_and_by_bytes() {
        let cache = PageCache::default();
        for n in 0..=MAX_PAGES {
            cache.put(format!("{n}"), FetchedPage::new("u", "x"), at(0), TTL);
        }
        assert!(cache.get("0", at(1), TTL).is_none() && cache.get("1", at(1), TTL).is_some());
        let long = || FetchedPage::new("u", "x".repeat(MAX_BYTES / 3));
        for n in 0..4 {
            cache.put(format!("long {n}"), long(), at(1), TTL);
        }
        let n_kept = (0..4).filter(|n| cache.get(&format!("long {n}"), at(1), TTL).is_some());
        assert_eq!(n_kept.count(), 2);
    }
}
