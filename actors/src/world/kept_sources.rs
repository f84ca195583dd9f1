//! The sources that the sessions of one `Ennead` have encoded.

use std::sync::{Arc, Mutex};

use ennead_runtime::step3_context_assembly::{KeepSources, MadeSources};
use ennead_tools::locked::Locked as _;

/// How many are kept. Sub-agents have others than the session above them, and each type its own.
const MAX_KEPT: usize = 4;

/// The sources that were encoded last, newest first.
#[derive(Debug, Default)]
pub(crate) struct KeptSources(Mutex<Vec<Arc<MadeSources>>>);

impl KeepSources for KeptSources {
    fn find(&self, is_same: &dyn Fn(&MadeSources) -> bool) -> Option<Arc<MadeSources>> {
        self.0.locked().iter().find(|it| is_same(it)).cloned()
    }

    fn keep(&self, made: Arc<MadeSources>) {
        let mut kept = self.0.locked();
        kept.insert(0, made);
        kept.truncate(MAX_KEPT);
    }
}
