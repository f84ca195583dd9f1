//! Links that are there already: where the paths of a command lead besides what their text says.
//!
//! `cd link` keeps to the text of the path, `cd -P link` and every program that opens a file do not. So a
//! path is taken for each of the places that it may mean: as written, after each link, and at its end.

use std::{
    cell::RefCell,
    collections::{BTreeMap, btree_map::Entry},
    rc::Rc,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::step7_permission_gate::{
    path_resolution::{Found, by_text, follow_noting},
    path_rule::lies_in,
};

/// What lies at an absolute path, its last link not followed; asked about paths without links in their
/// parents.
pub type Look = fn(&str) -> Found;

/// Links that the paths of one command lead through. The judgement of the command depends on nothing else
/// in the world, so with them it is made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinksSeen {
    /// Absolute paths of links, and the text of each.
    pub links: BTreeMap<String, String>,
    /// There were more paths than may be looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl LinksSeen {
    /// Whether there is nothing to be kept.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && !self.is_cut
    }
}

/// Follows the paths of one command. Cheap to clone; what one clone saw the others know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Follower {
    look: Option<Look>,
    seen: Rc<RefCell<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// What lies at each path that was looked at.
    paths: BTreeMap<String, Found>,
    /// Where whole paths lead besides.
    places: BTreeMap<String, Arc<[String]>>,
    n_left: usize,
    is_cut: bool,
}

impl Follower {
    /// Looks at the world, at this many paths at most.
    pub(crate) fn looking(look: Look, n_looks: usize) -> Self {
        let seen = Seen { n_left: n_looks, ..Seen::default() };
        Self { look: Some(look), seen: Rc::new(RefCell::new(seen)) }
    }

    /// Knows these links and looks at nothing.
    pub(crate) fn remembering(seen: LinksSeen) -> Self {
        let paths = seen.links.into_iter().map(|(path, text)| (path, Found::Link(text))).collect();
        let seen = Seen { paths, is_cut: seen.is_cut, ..Seen::default() };
        Self { look: None, seen: Rc::new(RefCell::new(seen)) }
    }

    /// The links on the way.
    pub(crate) fn links(&self) -> LinksSeen {
        let seen = self.seen.borrow();
        let link = |(path, found): (&String, &Found)| match found {
            Found::Link(text) => Some((path.clone(), text.clone())),
            _ => None,
        };
        let links = seen.paths.iter().filter_map(link).collect();
        LinksSeen { links, is_cut: seen.is_cut }
    }

    /// Whether a path was not looked at, since there were too many.
    pub(crate) fn is_cut(&self) -> bool {
        self.seen.borrow().is_cut
    }

    /// Where an absolute path leads besides what its text says. Links that lead to one of `homes`, which are
    /// known as written and as they really are, do not count unless another link lies below.
    pub(crate) fn places(&self, path: &str, homes: &[String]) -> Arc<[String]> {
        if path.contains('\0') {
            return Arc::default();
        }
        let seen = &mut *self.seen.borrow_mut();
        if let Some(places) = seen.places.get(path) {
            return Arc::clone(places);
        }
        let mut is_linked = false;
        let mut below = |at: &str| match homes.iter().any(|home| lies_in(home, at)) {
            true => Found::Directory,
            false => seen.look(self.look, at),
        };
        let _end = follow_noting(path, &mut below, &mut |_| is_linked = true);
        let mut places = Vec::new();
        if is_linked {
            let text = by_text(path);
            let mut note = |place: String| {
                if place != text && !places.contains(&place) {
                    places.push(place);
                }
            };
            let mut look = |at: &str| seen.look(self.look, at);
            let end = follow_noting(path, &mut look, &mut |it| note(by_text(&it)));
            if let Some((real, _)) = end {
                note(real);
            }
        }
        let places: Arc<[String]> = places.into();
        seen.places.insert(path.to_owned(), Arc::clone(&places));
        places
    }
}

impl Seen {
    fn look(&mut self, look: Option<Look>, path: &str) -> Found {
        let entry = match self.paths.entry(path.to_owned()) {
            Entry::Occupied(known) => return known.get().clone(),
            Entry::Vacant(entry) => entry,
        };
        // Only links are remembered.
        let Some(look) = look else { return Found::Directory };
        if self.n_left == 0 {
            self.is_cut = true;
            return Found::Missing;
        }
        self.n_left -= 1;
        entry.insert(look(path)).clone()
    }
}
