//! Has the session watch files for hooks of FileChanged, which it fires itself.

use super::{Effect, Turn};
use crate::{
    hook::{HookEvent, WatchedFile},
    run::facts::FIRES_AT_FILES,
    turn::effect::WatchOrder,
};

impl Turn {
    /// Hands the session what it watches files by: the settings in force, the working directory, and `named`, what hooks
    /// want watched in place of what they named before. Where no hook waits for changes, nothing is done.
    pub(super) fn watch_files(&mut self, named: Option<Vec<WatchedFile>>) {
        if self.facts.revision < FIRES_AT_FILES || self.facts.agent.is_some() {
            return;
        }
        let Some(derived) = self.memory.derived_settings.clone() else { return };
        let hooks = derived.settings().hooks.get(&HookEvent::FileChanged);
        let waits = hooks.is_some_and(|it| !it.is_empty());
        if waits || self.memory.watches {
            self.memory.watches = waits;
            let order = WatchOrder { derived, cwd: self.cwd().into(), named };
            self.effects.push(Effect::WatchFiles(Box::new(order)));
        }
    }
}
