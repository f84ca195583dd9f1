//! Links that are there already: where the paths of a command lead besides what their text says.
//!
//! `cd link` keeps to the text of the path, `cd -P link` and every program that opens a file do not. So a
//! path is taken for each of the places that it may mean: as written, after each link, and at its end. A
//! pattern may meet links, so it is taken for the places of each that it meets.

mod pattern;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    rc::Rc,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use self::pattern::{first_pattern, name_pattern};
use super::{
    dirs::ProcessWalk,
    moved::{MoveIndex, MovedPaths},
};
use crate::step7_permission_gate::{
    path_resolution::{PathEntry, by_text, follow_noting},
    path_rule::lies_in,
    rule::wildcard,
};

/// Steps of expanding patterns with links that are known.
const STEPS: usize = 20_000;

/// Places that one path is followed to; each is compared with each rule.
const MAX_PLACES: usize = 16;

/// Moves of one command that are looked at. One from each of several places to each of several is many.
const MAX_MOVES: usize = 4_000;

/// How the gate looks at what lies on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// What lies at an absolute path, its last link not followed; asked about paths without links in their
    /// parents.
    pub at: fn(&str) -> PathEntry,
    /// What the directory at an absolute path holds, of which it reads as many entries as the number allows. `None`
    /// where there are more, or a link or directory has no name in UTF-8; empty where there is no
    /// directory that can be read.
    pub list: fn(&str, usize) -> Option<Listing>,
}

/// What a directory holds that may lead on.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Names of links and directories, in any order.
    pub names: Vec<String>,
    /// Entries that were read, files among them.
    pub n_read: usize,
}

impl Look {
    /// Returns a look that finds nothing anywhere.
    pub fn nowhere() -> Self {
        Self { at: |_| PathEntry::Missing, list: |_, _| Some(Listing::default()) }
    }
}

/// Links that the paths of one command lead through. The judgement of the command depends on nothing else
/// in the world, so with them it is made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinksSeen {
    /// Absolute paths of links, and the text of each.
    pub links: BTreeMap<String, String>,
    /// There were more paths than may be looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl LinksSeen {
    /// Returns whether there is nothing to be kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty() && !self.is_cut
    }
}

/// Follows the paths of one command. Cheap to clone; what one clone saw the others know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Follower {
    look: Option<Look>,
    seen: Rc<RefCell<PathCache>>,
}

#[derive(Debug, Default)]
struct PathCache {
    /// What lies at each path that was looked at.
    paths: BTreeMap<String, PathEntry>,
    /// Where whole paths lead besides.
    places: BTreeMap<String, Arc<[String]>>,
    /// Where patterns lead besides.
    patterns: BTreeMap<String, Arc<[String]>>,
    /// Names of links and directories in directories that were listed.
    names: BTreeMap<String, Rc<[String]>>,
    /// The homes that were named last; they are the same for all paths of a command.
    homes: Arc<[String]>,
    /// Paths that lead through what a process has open, or where it is.
    of_process: BTreeSet<String>,
    moved: MovedPaths,
    n_moves: usize,
    n_left: usize,
    is_cut: bool,
}

impl Follower {
    /// Looks at the world, at this many paths at most.
    pub(crate) fn looking(look: Look, n_looks: usize) -> Self {
        let seen = PathCache { n_left: n_looks, ..PathCache::default() };
        Self { look: Some(look), seen: Rc::new(RefCell::new(seen)) }
    }

    /// Makes a follower that knows these links and looks at nothing.
    pub(crate) fn remembering(seen: LinksSeen) -> Self {
        let paths =
            seen.links.into_iter().map(|(path, text)| (path, PathEntry::Link(text))).collect();
        let seen = PathCache { paths, is_cut: seen.is_cut, n_left: STEPS, ..PathCache::default() };
        Self { look: None, seen: Rc::new(RefCell::new(seen)) }
    }

    /// Returns the links on the way.
    pub(crate) fn links(&self) -> LinksSeen {
        let seen = self.seen.borrow();
        let link = |(path, found): (&String, &PathEntry)| match found {
            PathEntry::Link(text) => Some((path.clone(), text.clone())),
            _ => None,
        };
        let links = seen.paths.iter().filter_map(link).collect();
        LinksSeen { links, is_cut: seen.is_cut }
    }

    /// Returns whether a path was not looked at, since there were too many.
    pub(crate) fn is_cut(&self) -> bool {
        self.seen.borrow().is_cut
    }

    /// Returns whether a follower that knows nothing but these links gives the same answers to all that was asked. A
    /// caller that asks only for what earlier answers led to then asks it the same, and comes to the same end.
    pub(crate) fn is_repeated_by(&self, links: LinksSeen) -> bool {
        let again = Self::remembering(links);
        let seen = self.seen.borrow();
        // What is moved changes the answers on the way.
        seen.moved.is_empty()
            && seen.of_process.is_empty()
            && seen.places.iter().all(|it| again.places(it.0, &seen.homes) == *it.1)
            && seen.patterns.iter().all(|it| again.places_of_pattern(it.0, &seen.homes) == *it.1)
            && again.is_cut() == seen.is_cut
    }

    /// Returns where an absolute path leads besides what its text shows. Links that lead to one of `homes`, which are
    /// known as written and as they really are, do not count unless another link lies below.
    pub(crate) fn places(&self, path: &str, homes: &Arc<[String]>) -> Arc<[String]> {
        if path.contains('\0') {
            return Arc::default();
        }
        let seen = &mut *self.seen.borrow_mut();
        if let Some(places) = seen.places.get(path) {
            return Arc::clone(places);
        }
        seen.homes = Arc::clone(homes);
        let mut places = Vec::new();
        for choice in seen.moved.choices() {
            let mut is_linked = false;
            let mut walk = ProcessWalk::default();
            let mut below = |at: &str| {
                if walk.enters(at) || homes.iter().any(|home| lies_in(home, at)) {
                    PathEntry::Directory
                } else {
                    seen.look(self.look, at, choice)
                }
            };
            let _end = follow_noting(path, &mut below, &mut |_| is_linked = true);
            if !is_linked {
                continue;
            }
            let text = by_text(path);
            let mut note = |place: String| {
                if place != text && !places.contains(&place) {
                    places.push(place);
                }
            };
            let mut walk = ProcessWalk::default();
            let mut look = |at: &str| {
                if walk.enters(at) {
                    PathEntry::Directory
                } else {
                    seen.look(self.look, at, choice)
                }
            };
            let end = follow_noting(path, &mut look, &mut |it| note(by_text(&it)));
            let end = end.map(|it| it.0);
            if walk.leads_on(end.as_deref()) {
                seen.of_process.extend([path.to_owned(), text.clone()]);
            }
            end.into_iter().for_each(note);
        }
        // What is moved again and again may have come from anywhere.
        seen.is_cut |= MAX_PLACES < places.len();
        places.truncate(MAX_PLACES);
        let places: Arc<[String]> = places.into();
        seen.places.insert(path.to_owned(), Arc::clone(&places));
        places
    }
}

impl Follower {
    /// Returns where an absolute pattern leads besides what its text shows, by the links that it meets and those after
    /// them. What is left of the pattern after a link stays a pattern.
    pub(crate) fn places_of_pattern(&self, pattern: &str, homes: &Arc<[String]>) -> Arc<[String]> {
        if let Some(places) = self.seen.borrow().patterns.get(pattern) {
            return Arc::clone(places);
        }
        let mut found: Vec<String> = Vec::new();
        let mut is_of_process = false;
        let mut open = vec![(String::new(), pattern)];
        while let Some((base, rest)) = open.pop() {
            if !self.seen.borrow_mut().takes(1) {
                break;
            }
            let Some((above, name, rest)) = first_pattern(rest) else {
                let path = format!("{base}/{rest}");
                found.extend(self.places(&path, homes).iter().cloned());
                is_of_process |= self.is_of_process(&path);
                continue;
            };
            let above = format!("{base}/{above}");
            let elsewhere = self.places(&above, homes);
            is_of_process |= self.is_of_process(&above);
            found.extend(elsewhere.iter().map(|it| format!("{it}/{name}/{rest}")));
            let Some(name) = name_pattern(name) else { continue };
            for directory in elsewhere.iter().cloned().chain([by_text(&above)]) {
                let directory = directory.trim_end_matches('/');
                let names = self.seen.borrow_mut().list(self.look, directory);
                let met = names.iter().filter(|it| wildcard(&name, it));
                open.extend(met.map(|it| (format!("{directory}/{it}"), rest)));
            }
        }
        found.sort_unstable();
        found.dedup();
        let places: Arc<[String]> = found.into();
        let seen = &mut *self.seen.borrow_mut();
        if is_of_process {
            seen.of_process.insert(pattern.to_owned());
        }
        seen.patterns.insert(pattern.to_owned(), Arc::clone(&places));
        places
    }

    /// Returns whether a path or pattern that was followed leads through what a process has open, or where it is:
    /// another process is elsewhere.
    pub(crate) fn is_of_process(&self, path: &str) -> bool {
        self.seen.borrow().of_process.contains(path)
    }

    /// Notes that what is at `from` may be at `to` from now on, its links unchanged; both absolute.
    pub(crate) fn moves(&self, from: &str, to: &str) {
        let seen = &mut *self.seen.borrow_mut();
        if seen.n_moves == MAX_MOVES {
            seen.is_cut = true;
            return;
        }
        seen.n_moves += 1;
        match seen.moved.add(by_text(from), by_text(to)) {
            Some(true) => {
                seen.places.clear();
                seen.patterns.clear();
            }
            Some(false) => {}
            None => seen.is_cut = true,
        }
    }

    /// Returns links and directories that an absolute pattern meets, as written, patterns in the last name included.
    pub(crate) fn met(&self, pattern: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), pattern)];
        while let Some((base, rest)) = open.pop() {
            if !self.seen.borrow_mut().takes(1) {
                break;
            }
            let Some((above, name, rest)) = first_pattern(rest) else {
                found.push(by_text(&format!("{base}/{rest}")));
                continue;
            };
            let Some(name) = name_pattern(name) else { continue };
            let directory = by_text(&format!("{base}/{above}"));
            let directory = directory.trim_end_matches('/');
            let names = self.seen.borrow_mut().list(self.look, directory);
            let met = names.iter().filter(|it| wildcard(&name, it));
            open.extend(met.map(|it| (format!("{directory}/{it}"), rest)));
        }
        found
    }
}

impl PathCache {
    /// Takes `n` from what may still be looked at; false when there is not enough.
    fn takes(&mut self, n: usize) -> bool {
        let left = self.n_left.checked_sub(n);
        self.is_cut |= left.is_none();
        self.n_left = left.unwrap_or_default();
        left.is_some()
    }

    /// Names in a directory that may lead on, those that come to lie there included.
    fn list(&mut self, look: Option<Look>, directory: &str) -> Rc<[String]> {
        let names = self.list_at(look, directory);
        if self.moved.is_empty() {
            return names;
        }
        let mut names: Vec<String> = names.to_vec();
        names.extend(self.moved.names_in(directory));
        for choice in self.moved.choices() {
            for source in self.moved.sources(directory, choice) {
                names.extend(self.list_at(look, &source).iter().cloned());
            }
        }
        names.sort_unstable();
        names.dedup();
        names.into()
    }

    fn list_at(&mut self, look: Option<Look>, directory: &str) -> Rc<[String]> {
        if let Some(names) = self.names.get(directory) {
            return Rc::clone(names);
        }
        let names = match look {
            Some(look) => {
                let listed = (look.list)(directory, self.n_left);
                let n_read = listed.as_ref().map_or(usize::MAX, |it| it.n_read);
                if self.takes(n_read) { listed.unwrap_or_default().names } else { Vec::new() }
            }
            // Only what leads to links is remembered.
            None => {
                let inside = format!("{directory}/");
                let below = self.paths.range(inside.clone()..);
                let below = below.map_while(|it| it.0.strip_prefix(&inside));
                let mut names: Vec<String> =
                    below.filter_map(|it| it.split('/').next()).map(str::to_owned).collect();
                names.dedup();
                names
            }
        };
        let names: Rc<[String]> = names.into();
        self.names.insert(directory.to_owned(), Rc::clone(&names));
        names
    }

    /// What lies at a path, or may lie there once everything is moved.
    fn look(&mut self, look: Option<Look>, path: &str, choice: MoveIndex) -> PathEntry {
        let mut best = PathEntry::Missing;
        for source in self.moved.sources(path, choice) {
            match self.look_at(look, &source) {
                link @ PathEntry::Link(_) => return link,
                PathEntry::Missing => {}
                found => best = found,
            }
        }
        match (self.look_at(look, path), best) {
            (PathEntry::Missing, best) => best,
            (found, _) => found,
        }
    }

    fn look_at(&mut self, look: Option<Look>, path: &str) -> PathEntry {
        let entry = match self.paths.entry(path.to_owned()) {
            Entry::Occupied(known) => return known.get().clone(),
            Entry::Vacant(entry) => entry,
        };
        // Only links are remembered.
        let Some(look) = look else { return PathEntry::Directory };
        if self.n_left == 0 {
            self.is_cut = true;
            return PathEntry::Missing;
        }
        self.n_left -= 1;
        entry.insert((look.at)(path)).clone()
    }
}
