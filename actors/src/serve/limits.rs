//! What tenants may use, and what all of them together use.
//!
//! Tokens are counted when a provider reports them, money and turns when a run has ended. A day is one of
//! UTC. What was used today survives a restart.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ennead_runtime::{catalogue::Money, ids::TenantId, time::Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    hosted::Held,
    problem::{Code, Problem},
};
use crate::storage::archive::files;

/// Milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// Bytes of the file of what was used at most.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Files and directories that are looked at to measure a tenant's.
const MAX_ENTRIES: usize = 500_000;

/// What one tenant may use, and all of them together. `None` is no limit.
///
/// ```
/// use ennead::serve::TenantLimits;
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
    /// Tokens in a day in all.
    pub all_tokens_per_day: Option<u64>,
    /// Millionths of a US dollar of one tenant in a day, as far as prices are known.
    pub micro_usd_per_day: Option<u64>,
    /// The same in all.
    pub all_micro_usd_per_day: Option<u64>,
    /// Bytes of the directories and transcripts of one tenant; looked at every half minute.
    pub disk_bytes: Option<u64>,
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
        }
    }
}

/// What was used in a day.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Spent {
    tokens: u64,
    micro_usd: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    /// Days since 1970.
    day: u64,
    of_tenant: BTreeMap<TenantId, Spent>,
    all: Spent,
    #[serde(skip)]
    disk: BTreeMap<TenantId, u64>,
}

/// What is used, and what may be.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) limits: TenantLimits,
    file: PathBuf,
    book: Mutex<Book>,
}

impl Limits {
    /// Goes on with what was used today before. A file that cannot be read counts as nothing used, and the
    /// log has it.
    pub(crate) fn load(limits: TenantLimits, file: PathBuf) -> Self {
        let read = || {
            let length = fs::metadata(&file)?.len();
            let text = if length <= MAX_FILE { fs::read(&file)? } else { Vec::new() };
            Ok::<Book, io::Error>(serde_json::from_slice(&text)?)
        };
        let book = match read() {
            Ok(book) => book,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Book::default(),
            Err(error) => {
                tracing::error!(%error, "what was used today is not known");
                Book::default()
            }
        };
        Self { limits, file, book: Mutex::new(book) }
    }

    /// Counts what a model call took.
    pub(crate) fn count_tokens(&self, tenant: &TenantId, tokens: u64, now: Timestamp) {
        let mut book = self.today(now);
        book.all.tokens = book.all.tokens.saturating_add(tokens);
        let spent = book.of_tenant.entry(tenant.clone()).or_default();
        spent.tokens = spent.tokens.saturating_add(tokens);
    }

    /// Counts what a run cost, and keeps it all. To be called where the disk may be waited for.
    pub(crate) fn count_money(&self, tenant: &TenantId, money: Money, now: Timestamp) {
        let text = {
            let mut book = self.today(now);
            let micro_usd = money.micro_usd();
            book.all.micro_usd = book.all.micro_usd.saturating_add(micro_usd);
            let spent = book.of_tenant.entry(tenant.clone()).or_default();
            spent.micro_usd = spent.micro_usd.saturating_add(micro_usd);
            serde_json::to_vec(&*book)
        };
        let kept = text.map_err(io::Error::from).and_then(|it| files::write_whole(&self.file, &it));
        if let Err(error) = kept {
            tracing::error!(%error, "what was used today cannot be kept");
        }
    }

    /// What keeps a run of this tenant from beginning now, and for how long at least.
    pub(crate) fn hold(&self, tenant: &TenantId, now: Timestamp) -> Option<(Held, Duration)> {
        let book = self.today(now);
        let spent = book.of_tenant.get(tenant).copied().unwrap_or_default();
        let over = |used: u64, limit: Option<u64>| limit.is_some_and(|it| it <= used);
        let limits = &self.limits;
        let until_tomorrow = Duration::from_millis(DAY - now.0 % DAY);
        if over(spent.tokens, limits.tokens_per_day)
            || over(book.all.tokens, limits.all_tokens_per_day)
        {
            return Some((Held::TokenLimit, until_tomorrow));
        }
        if over(spent.micro_usd, limits.micro_usd_per_day)
            || over(book.all.micro_usd, limits.all_micro_usd_per_day)
        {
            return Some((Held::MoneyLimit, until_tomorrow));
        }
        let disk = book.disk.get(tenant).copied().unwrap_or(0);
        over(disk, limits.disk_bytes).then_some((Held::DiskLimit, Duration::from_secs(30)))
    }

    /// Refuses a session too many.
    pub(crate) fn admit_session(&self, of_tenant: usize, all: usize) -> Result<(), Problem> {
        let wait = Duration::from_secs(60);
        if self.limits.sessions <= of_tenant {
            let detail = format!("the tenant has {} sessions; delete some", self.limits.sessions);
            return Err(Problem::new(Code::Sessions, detail).after(wait));
        }
        if self.limits.all_sessions <= all {
            return Err(Problem::new(Code::Sessions, "the server is full").after(wait));
        }
        Ok(())
    }

    /// Refuses a run that the tenant has nothing left for.
    pub(crate) fn admit_run(&self, tenant: &TenantId, now: Timestamp) -> Result<(), Problem> {
        let Some((held, wait)) = self.hold(tenant, now) else { return Ok(()) };
        let (code, detail) = match held {
            Held::TokenLimit => (Code::Tokens, "the tokens of the day are used up"),
            Held::MoneyLimit => (Code::Money, "the money of the day is used up"),
            _ => (Code::Disk, "the place on the disk is used up; delete something"),
        };
        Err(Problem::new(code, detail).after(wait))
    }

    /// Measures what a tenant has on the disk. To be called where the disk may be waited for.
    pub(crate) fn measure(&self, tenant: &TenantId, directories: [PathBuf; 2]) {
        let bytes = directories.iter().map(|it| size(it)).fold(0, u64::saturating_add);
        self.lock().disk.insert(tenant.clone(), bytes);
    }

    /// The book of this day; what was used before it counts no more.
    fn today(&self, now: Timestamp) -> MutexGuard<'_, Book> {
        let mut book = self.lock();
        let day = now.0 / DAY;
        if book.day != day {
            (book.day, book.all) = (day, Spent::default());
            book.of_tenant.clear();
        }
        book
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // Sums are whole after every step, so a panic elsewhere spoils nothing.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of the files below a directory; links are not followed.
fn size(top: &Path) -> u64 {
    let (mut open, mut bytes, mut n) = (vec![top.to_owned()], 0_u64, 0);
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            n += 1;
            if MAX_ENTRIES < n {
                return bytes;
            }
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp(20_000 * DAY + DAY / 2);

    // REQ: RUN-4, RUN-8
    #[test]
    fn tenant_that_used_its_tokens_waits_for_the_next_day_and_no_other_does() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("spent.json");
        let limits = TenantLimits { tokens_per_day: Some(100), ..TenantLimits::default() };
        let book = Limits::load(limits.clone(), file.clone());
        let (one, two) = (TenantId::from("one"), TenantId::from("two"));
        book.count_tokens(&one, 99, NOON);
        assert!(book.admit_run(&one, NOON).is_ok());
        book.count_tokens(&one, 1, NOON);
        assert_eq!(book.hold(&one, NOON), Some((Held::TokenLimit, Duration::from_secs(43_200))));
        assert_eq!(book.admit_run(&one, NOON).unwrap_err().code, Code::Tokens);
        assert_eq!(book.hold(&two, NOON), None);
        book.count_money(&one, Money::of_micro_usd(5), NOON);
        let again = Limits::load(limits, file);
        assert!(again.hold(&one, NOON).is_some(), "a restart forgets nothing");
        assert_eq!(again.hold(&one, Timestamp(NOON.0 + DAY / 2)), None, "the next day begins");
    }

    // REQ: RUN-7
    #[test]
    fn bytes_on_the_disk_are_counted_without_following_links() {
        let directory = tempfile::tempdir().unwrap();
        let (inside, outside) = (directory.path().join("in/a"), directory.path().join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(inside.join("f"), "12345").unwrap();
        fs::write(outside.join("g"), "x".repeat(1_000_000)).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let limits = TenantLimits { disk_bytes: Some(10_000), ..TenantLimits::default() };
        let book = Limits::load(limits, directory.path().join("spent.json"));
        let one = TenantId::from("one");
        book.measure(&one, [directory.path().join("in"), directory.path().join("none")]);
        assert_eq!(book.hold(&one, NOON), None);
        book.measure(&one, [directory.path().to_owned(), directory.path().join("none")]);
        assert_eq!(book.hold(&one, NOON).map(|it| it.0), Some(Held::DiskLimit));
    }
}
