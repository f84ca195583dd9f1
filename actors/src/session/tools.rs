//! The tools of a session, by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, RwLock},
};

use ennead_runtime::{ids::ToolName, ports::Tool};
use ennead_tools::locked::SharedLocked as _;

/// The tools of a session and its sub-agents, by name. Grows when a server answers that was starting;
/// which of them a turn may call is in its facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionTools(Arc<RwLock<BTreeMap<ToolName, Arc<dyn Tool>>>>);

impl SessionTools {
    /// Makes the set of these tools; of two of one name the last.
    pub(crate) fn new(tools: &[Arc<dyn Tool>]) -> Self {
        let by_name = |it: &Arc<dyn Tool>| (it.spec().name.clone(), Arc::clone(it));
        Self(Arc::new(RwLock::new(tools.iter().map(by_name).collect())))
    }

    /// Returns the tool of this name.
    pub(crate) fn get(&self, name: &ToolName) -> Option<Arc<dyn Tool>> {
        // A whole tool is put in at once, so a panic elsewhere spoils nothing.
        self.0.for_reading().get(name).cloned()
    }

    /// Returns the names that are taken.
    pub(crate) fn names(&self) -> BTreeSet<ToolName> {
        self.0.for_reading().keys().cloned().collect()
    }

    /// Adds tools whose names are free.
    pub(crate) fn join(&self, tools: &[Arc<dyn Tool>]) {
        let mut all = self.0.for_writing();
        for tool in tools {
            all.entry(tool.spec().name.clone()).or_insert_with(|| Arc::clone(tool));
        }
    }
}
