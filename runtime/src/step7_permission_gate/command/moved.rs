//! What gets another place while a command runs, with the links in it: `mv x/y z; cat z/link/key`.
//!
//! The text of a relative link leads elsewhere from there. So for a path below the new place, what lies at the
//! old one is looked at.

use std::collections::BTreeMap;

/// Things that may come to lie at one path; with more it is not known what is there.
const MAX_SOURCES: usize = 4;

/// Places that one thing takes one after the other and that are followed.
const MAX_STEPS: usize = 4;

/// What may lie at a path besides what lies there before the command runs.
#[derive(Clone, Debug, Default)]
pub(super) struct MovedPaths {
    /// The old paths, by the new one.
    sources: BTreeMap<String, Vec<String>>,
    n_choices: usize,
}

/// Which of the things that may lie at a path is looked at; `None` for what lies there before.
pub(super) type MoveIndex = Option<usize>;

impl MovedPaths {
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns whether that is new; `None` when there are too many for one path.
    pub(super) fn add(&mut self, from: String, to: String) -> Option<bool> {
        if from == to {
            return Some(false);
        }
        let all = self.sources.entry(to).or_default();
        if all.contains(&from) {
            return Some(false);
        }
        if all.len() == MAX_SOURCES {
            return None;
        }
        all.push(from);
        self.n_choices = self.n_choices.max(all.len());
        Some(true)
    }

    /// Returns all choices, one after the other.
    pub(super) fn choices(&self) -> impl Iterator<Item = MoveIndex> + use<> {
        [None].into_iter().chain((0..self.n_choices).map(Some))
    }

    /// Returns the names that things get in a directory.
    pub(super) fn names_in(&self, directory: &str) -> impl Iterator<Item = String> {
        let inside = format!("{directory}/");
        let below = self.sources.range(inside.clone()..).map(|it| it.0.clone());
        let below = below.map_while(move |it| it.strip_prefix(&inside).map(str::to_owned));
        below.filter(|it| !it.contains('/'))
    }

    /// Returns the old paths of what may be at this path, the latest first.
    pub(super) fn sources(&self, path: &str, choice: MoveIndex) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let Some(choice) = choice.filter(|_| !self.is_empty()) else { return found };
        let mut open = vec![path.to_owned()];
        for _ in 0..MAX_STEPS {
            let mut next = Vec::new();
            for path in &open {
                let slashes = path.match_indices('/').map(|it| it.0).filter(|it| *it > 0);
                for at in slashes.chain([path.len()]) {
                    let Some(all) = self.sources.get(&path[..at]) else { continue };
                    let Some(source) = all.get(choice).or(all.last()) else { continue };
                    let old = format!("{source}{}", &path[at..]);
                    if old != *path && !found.contains(&old) {
                        found.push(old.clone());
                        next.push(old);
                    }
                }
            }
            open = next;
        }
        found
    }
}
