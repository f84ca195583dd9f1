//! Patterns of paths that the last sessions looked for, compiled.
//!
//! To compile a few costs as much as a whole turn of a session, and the sessions of a place have the same.

use std::sync::{Arc, Mutex};

use ennead_runtime::step7_permission_gate::path_rule::PathPattern;

use ennead_tools::locked::Locked as _;

/// Lists that are kept: what is hidden and what is left out, for a few places.
const MAX_LISTS: usize = 8;

/// Compiled patterns by the list that they are of, the oldest first.
#[derive(Debug, Default)]
pub(super) struct CompiledPatterns(Mutex<Vec<(Vec<String>, Arc<PathPattern>)>>);

impl CompiledPatterns {
    /// Returns the patterns of a list, compiled; `None` for an empty one.
    pub(super) fn of(&self, list: &[String]) -> Option<Arc<PathPattern>> {
        if list.is_empty() {
            return None;
        }
        // Whole entries are put in, so a panic elsewhere spoils nothing.
        let kept = || self.0.locked();
        if let Some((_, known)) = kept().iter().find(|it| it.0 == list) {
            return Some(Arc::clone(known));
        }
        let pattern = Arc::new(PathPattern::hidden(list));
        let mut kept = kept();
        if MAX_LISTS <= kept.len() {
            kept.remove(0);
        }
        kept.push((list.to_vec(), Arc::clone(&pattern)));
        Some(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_compiled_once_for_all_sessions_that_have_it() {
        let patterns = CompiledPatterns::default();
        let list = |name: &str| vec![format!("//w/**/{name}")];
        let first = patterns.of(&list("a")).unwrap();
        assert!(first.matches("/w/x/a") && !first.matches("/w/x/b"));
        assert!(Arc::ptr_eq(&first, &patterns.of(&list("a")).unwrap()));
        assert!(patterns.of(&list("b")).unwrap().matches("/w/x/b"));
        assert!(patterns.of(&[]).is_none());
    }

    #[test]
    fn no_more_lists_than_a_few_are_kept() {
        let patterns = CompiledPatterns::default();
        for n in 0..3 * MAX_LISTS {
            assert!(patterns.of(&[format!("//w/{n}")]).is_some());
        }
        assert_eq!(patterns.0.lock().unwrap().len(), MAX_LISTS);
    }
}
