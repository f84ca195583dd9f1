//! Looks at an `Ennead` and changes nothing.

use super::Ennead;
use crate::{groundwork::directory::Directory, ports::events::AllEvents};

impl Ennead {
    /// Returns the actors that live in it.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Subscribes to the events of all its sessions from now on, those that are opened later included.
    pub fn events(&self) -> AllEvents {
        self.events.0.subscribe()
    }

    /// Returns the clock that its sessions read.
    #[cfg(feature = "serve")]
    pub(crate) fn clock(&self) -> &dyn ennead_runtime::ports::Clock {
        &*self.options.clock
    }
}
