//! The commands of one session that run in the background, by name.
//!
//! Those that have ended are kept for a while, so that what they printed last can be read.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ennead_runtime::{
    ids::ShellId,
    ports::shells::{BackgroundShell, EndedShell, ShellState, ShellStatus, ShellsFull},
    step1_settings_resolution::ShellSettings,
};

use crate::locked::Locked as _;

/// Commands that are kept after their end.
const MAX_ENDED: usize = 32;

/// The commands of one session that run in the background, and those that ended lately.
#[derive(Debug, Default)]
pub struct Shells(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Names that were given.
    n_named: u64,
    /// Shells, in the order in which they were started.
    shells: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    shell: Arc<dyn BackgroundShell>,
    /// Whether its end was taken by [`Shells::take_ended`].
    is_taken: bool,
}

impl Shells {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing in here can be left half done.
        self.0.locked()
    }

    /// Counts the names that an earlier process gave, so that none is given again.
    pub fn resume(&self, n_named: u64) {
        let mut table = self.lock();
        table.n_named = table.n_named.max(n_named);
    }

    /// Returns a name that was not given before.
    pub fn new_name(&self) -> ShellId {
        let mut table = self.lock();
        table.n_named += 1;
        format!("bash_{}", table.n_named).into()
    }

    /// Registers a command.
    ///
    /// # Errors
    ///
    /// [`ShellsFull`] when as many as may are running.
    pub fn keep(
        &self,
        settings: ShellSettings,
        shell: Arc<dyn BackgroundShell>,
    ) -> Result<(), ShellsFull> {
        let mut table = self.lock();
        let runs = |it: &&Entry| it.shell.status().state == ShellState::Running;
        let n_running = table.shells.values().filter(runs).count();
        if let Some(full) = ShellsFull::if_full(settings, n_running) {
            return Err(full);
        }
        let next = table.shells.last_key_value().map_or(0, |it| it.0 + 1);
        table.shells.insert(next, Entry { shell, is_taken: false });
        let ended = table.shells.iter().filter(|it| it.1.is_taken).map(|it| *it.0);
        let ended: Vec<u64> = ended.collect();
        for oldest in ended.iter().take(ended.len().saturating_sub(MAX_ENDED)) {
            table.shells.remove(oldest);
        }
        Ok(())
    }

    /// Returns the command of this name.
    pub fn find(&self, shell: &ShellId) -> Option<Arc<dyn BackgroundShell>> {
        let table = self.lock();
        let mut all = table.shells.values().map(|it| &it.shell);
        all.find(|it| it.status().shell == *shell).cloned()
    }

    /// Returns those that run, oldest first.
    pub fn running(&self) -> Vec<ShellStatus> {
        let all = self.lock();
        let all = all.shells.values().map(|it| it.shell.status());
        all.filter(|it| it.state == ShellState::Running).collect()
    }

    /// Returns those that have ended since it was last called, oldest first.
    pub fn take_ended(&self) -> Vec<EndedShell> {
        let mut table = self.lock();
        let ended = table.shells.values_mut().filter(|it| !it.is_taken).filter_map(|entry| {
            let status = entry.shell.status();
            entry.is_taken = status.state != ShellState::Running;
            let is_known = entry.shell.is_end_known();
            entry.is_taken.then_some(EndedShell { status, is_known })
        });
        ended.collect()
    }
}
