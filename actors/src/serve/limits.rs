//! Holds runs to what tenants may use, and keeps on the disk what they used today, so that it survives a restart.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use ennead_runtime::{
    catalogue::Money,
    ids::TenantId,
    serve::ledger::{SessionLimit, TenantLimits, UsageLedger, UsedUp},
    time::Timestamp,
};

use super::{
    hosted::StartBlocker,
    problem::{Code, Problem},
};
use crate::groundwork::files;
use ennead_tools::locked::Locked as _;

/// Bytes of the file of what was used at most.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Files and directories that are looked at to measure a tenant's.
const MAX_ENTRIES: usize = 500_000;

/// What is used, and what may be.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) limits: TenantLimits,
    file: PathBuf,
    ledger: Mutex<UsageLedger>,
}

impl Limits {
    /// Loads what was used today before. A file that cannot be read counts as nothing used, and the log has it. To be
    /// called where the disk may be waited for.
    pub(crate) fn load(limits: TenantLimits, file: PathBuf) -> Self {
        let read = || {
            let length = fs::metadata(&file)?.len();
            let text = if length <= MAX_FILE { fs::read(&file)? } else { Vec::new() };
            Ok::<UsageLedger, io::Error>(serde_json::from_slice(&text)?)
        };
        let ledger = match read() {
            Ok(ledger) => ledger,
            Err(error) if error.kind() == io::ErrorKind::NotFound => UsageLedger::default(),
            Err(error) => {
                tracing::error!(%error, "what was used today is not known");
                UsageLedger::default()
            }
        };
        Self { limits, file, ledger: Mutex::new(ledger) }
    }

    /// Counts what a model call took.
    pub(crate) fn count_tokens(&self, tenant: &TenantId, tokens: u64, now: Timestamp) {
        self.lock().count_tokens(tenant, tokens, now);
    }

    /// Counts what a run cost, and keeps it all. To be called where the disk may be waited for.
    pub(crate) fn count_money(&self, tenant: &TenantId, money: Money, now: Timestamp) {
        let text = {
            let mut ledger = self.lock();
            ledger.count_money(tenant, money, now);
            serde_json::to_vec(&*ledger)
        };
        let kept = text.map_err(io::Error::from).and_then(|it| files::write_whole(&self.file, &it));
        if let Err(error) = kept {
            tracing::error!(%error, "what was used today cannot be kept");
        }
    }

    /// Returns what keeps a run of this tenant from beginning now, and for how long at least.
    pub(crate) fn hold(
        &self,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Option<(StartBlocker, Duration)> {
        let (what, wait) = self.used_up(tenant, now)?;
        let held = match what {
            UsedUp::Tokens => StartBlocker::TokenLimit,
            UsedUp::Money => StartBlocker::MoneyLimit,
            UsedUp::Disk => StartBlocker::DiskLimit,
            UsedUp::Memory => StartBlocker::MemoryLimit,
        };
        Some((held, wait))
    }

    /// Refuses a session too many.
    pub(crate) fn admit_session(&self, of_tenant: usize, all: usize) -> Result<(), Problem> {
        let detail = match SessionLimit::reached(&self.limits, of_tenant, all) {
            None => return Ok(()),
            Some(SessionLimit::OfTenant(n)) => format!("the tenant has {n} sessions; delete some"),
            Some(SessionLimit::OfServer) => "the server is full".to_owned(),
        };
        Err(Problem::new(Code::Sessions, detail).after(Duration::from_secs(60)))
    }

    /// Refuses a run that the tenant has nothing left for.
    pub(crate) fn admit_run(&self, tenant: &TenantId, now: Timestamp) -> Result<(), Problem> {
        let Some((what, wait)) = self.used_up(tenant, now) else { return Ok(()) };
        let (code, detail) = match what {
            UsedUp::Tokens => (Code::Tokens, "the tokens of the day are used up"),
            UsedUp::Money => (Code::Money, "the money of the day is used up"),
            UsedUp::Disk => (Code::Disk, "the place on the disk is used up; delete something"),
            UsedUp::Memory => (Code::Memory, "the sessions that are at work take all memory"),
        };
        Err(Problem::new(code, detail).after(wait))
    }

    /// Measures what a tenant has on the disk. To be called where the disk may be waited for.
    pub(crate) fn measure(&self, tenant: &TenantId, directories: [PathBuf; 2]) {
        let bytes = directories.iter().map(|it| size(it)).fold(0, u64::saturating_add);
        self.lock().set_disk(tenant, bytes);
    }

    /// Takes in what sessions take of the memory. Returns the tenants of which idle ones are to become no actors.
    pub(crate) fn set_memory(&self, memory: BTreeMap<TenantId, u64>) -> Vec<TenantId> {
        let mut ledger = self.lock();
        ledger.set_memory(memory);
        ledger.above_memory(&self.limits)
    }

    fn used_up(&self, tenant: &TenantId, now: Timestamp) -> Option<(UsedUp, Duration)> {
        let (what, wait_ms) = self.lock().used_up(&self.limits, tenant, now)?;
        Some((what, Duration::from_millis(wait_ms)))
    }

    fn lock(&self) -> MutexGuard<'_, UsageLedger> {
        // Sums are whole after every step, so a panic elsewhere spoils nothing.
        self.ledger.locked()
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

    const NOON: Timestamp = Timestamp(20_000 * 86_400_000 + 43_200_000);

    // REQ: RUN-4, RUN-9
    #[test]
    fn what_was_used_today_is_read_after_a_restart_and_a_damaged_file_counts_as_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("spent.json");
        let mut limits = TenantLimits::default();
        limits.micro_usd_per_day = Some(5);
        let one = TenantId::from("one");
        let first = Limits::load(limits.clone(), file.clone());
        assert!(first.admit_run(&one, NOON).is_ok());
        first.count_money(&one, Money::of_micro_usd(5), NOON);
        let again = Limits::load(limits.clone(), file.clone());
        assert_eq!(again.admit_run(&one, NOON).unwrap_err().code, Code::Money);
        assert_eq!(again.hold(&one, NOON).map(|it| it.0), Some(StartBlocker::MoneyLimit));
        fs::write(&file, "{").unwrap();
        assert_eq!(Limits::load(limits, file).hold(&one, NOON), None);
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
        let mut limits = TenantLimits::default();
        limits.disk_bytes = Some(10_000);
        let limits = Limits::load(limits, directory.path().join("spent.json"));
        let one = TenantId::from("one");
        limits.measure(&one, [directory.path().join("in"), directory.path().join("none")]);
        assert_eq!(limits.hold(&one, NOON), None);
        limits.measure(&one, [directory.path().to_owned(), directory.path().join("none")]);
        assert_eq!(limits.hold(&one, NOON).map(|it| it.0), Some(StartBlocker::DiskLimit));
    }
}
