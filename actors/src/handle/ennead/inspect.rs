//! What those see of an `Ennead` who look and change nothing.

use super::Ennead;
use crate::{groundwork::directory::Directory, ports::events::AllEvents};

impl Ennead {
    /// Who lives in it.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The events of all its sessions from now on, those that are opened later included.
    pub fn events(&self) -> AllEvents {
        self.events.0.subscribe()
    }

    /// The clock that its sessions read.
    #[cfg(feature = "serve")]
    pub(crate) fn clock(&self) -> &dyn ennead_runtime::ports::Clock {
        &*self.options.clock
    }
}
