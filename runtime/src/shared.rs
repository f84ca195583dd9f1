//! A list and a set that only grow and whose clones share what is in them.
//!
//! The newest elements are in a vector of their own. When it is full it is sealed, and sealed parts
//! of one size are joined, as a counter carries: each is at least twice as long as the next, so
//! there are few of them, and an element is moved once for each doubling.

use std::{borrow::Borrow, sync::Arc};

/// Elements that are sealed together first.
const PART: usize = 32;

/// A list to which elements are added at its end.
#[derive(Clone, Debug)]
pub(crate) struct SharedList<T> {
    sealed: Vec<Arc<[T]>>,
    n_sealed: usize,
    newest: Vec<T>,
}

/// A set to which elements are added.
#[derive(Clone, Debug)]
pub(crate) struct SharedSet<T> {
    /// The parts that clones share, each in ascending order.
    sealed: Vec<Arc<[T]>>,
    newest: Vec<T>,
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { sealed: Vec::new(), n_sealed: 0, newest: Vec::new() }
    }
}

impl<T> Default for SharedSet<T> {
    fn default() -> Self {
        Self { sealed: Vec::new(), newest: Vec::new() }
    }
}

impl<T: Clone> SharedList<T> {
    pub(crate) fn push(&mut self, element: T) {
        self.newest.push(element);
        if self.newest.len() == PART {
            self.n_sealed += PART;
            seal(&mut self.sealed, std::mem::take(&mut self.newest), |_| ());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.n_sealed + self.newest.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let mut left = at;
        for part in &self.sealed {
            match part.get(left) {
                Some(found) => return Some(found),
                None => left -= part.len(),
            }
        }
        self.newest.get(left)
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.newest.last().or_else(|| self.sealed.last().and_then(|it| it.last()))
    }

    /// Returns whether both lists have `n` elements and the first `n` are the same. Of parts that they share, which are
    /// all but a few where one list was cloned from the other, no element is looked at.
    pub(crate) fn shares(&self, other: &Self, n: usize, is_same: impl Fn(&T, &T) -> bool) -> bool {
        if self.len().min(other.len()) < n {
            return false;
        }
        let mut at = 0;
        while at < n {
            let (Some((here, from)), Some((there, other_from))) = (self.part(at), other.part(at))
            else {
                return false;
            };
            let is_shared =
                from == other_from && here.as_ptr() == there.as_ptr() && here.len() == there.len();
            let (here, there) = (&here[at - from..], &there[at - other_from..]);
            let n_both = here.len().min(there.len()).min(n - at);
            let mut pairs = here.iter().zip(there).take(n_both);
            if !is_shared && !pairs.all(|(a, b)| is_same(a, b)) {
                return false;
            }
            at += n_both;
        }
        true
    }

    /// Returns the part that holds the element at this place, and the place of its first.
    fn part(&self, at: usize) -> Option<(&[T], usize)> {
        let mut from = 0;
        for part in &self.sealed {
            if at < from + part.len() {
                return Some((part, from));
            }
            from += part.len();
        }
        (at < self.len()).then_some((&self.newest, from))
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.sealed.iter().flat_map(|it| it.iter()).chain(&self.newest)
    }

    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = &T> {
        let mut before = 0;
        let parts = self.sealed.iter().map(|it| &**it).chain([&self.newest[..]]);
        parts.flat_map(move |part| {
            let from = first.saturating_sub(before).min(part.len());
            before += part.len();
            part[from..].iter()
        })
    }
}

impl<T: Clone + Ord> SharedSet<T> {
    pub(crate) fn insert(&mut self, element: T) {
        self.newest.push(element);
        if self.newest.len() == PART {
            // Of two ordered runs a sort makes one in a single pass.
            seal(&mut self.sealed, std::mem::take(&mut self.newest), |it| it.sort());
        }
    }

    pub(crate) fn contains<Q: Ord + ?Sized>(&self, element: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let is_in = |part: &[T]| part.binary_search_by(|it| it.borrow().cmp(element)).is_ok();
        self.newest.iter().any(|it| it.borrow() == element)
            || self.sealed.iter().any(|it| is_in(it))
    }
}

/// Seals a part, joined with those before it that are not longer.
fn seal<T: Clone>(sealed: &mut Vec<Arc<[T]>>, mut part: Vec<T>, settle: impl Fn(&mut Vec<T>)) {
    settle(&mut part);
    while let Some(before) = sealed.pop_if(|it| it.len() <= part.len()) {
        part = before.iter().cloned().chain(part).collect();
        settle(&mut part);
    }
    sealed.push(part.into());
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc};

    use super::*;

    /// A value that counts how often it is cloned.
    #[derive(Debug)]
    struct Counted(u32, Rc<Cell<u64>>);

    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.1.set(self.1.get() + 1);
            Self(self.0, Rc::clone(&self.1))
        }
    }

    /// Elements that are copied when a list is cloned before each of this many additions, as turns do.
    fn n_copied(n: u32) -> u64 {
        let count = Rc::new(Cell::new(0));
        let mut list = SharedList::default();
        let mut kept = SharedList::default();
        for i in 0..n {
            list.push(Counted(i, Rc::clone(&count)));
            kept = list.clone();
        }
        assert!(kept.iter().map(|it| it.0).eq(0..n));
        count.get()
    }

    #[test]
    fn element_of_a_list_is_found_by_its_place() {
        let mut list = SharedList::default();
        for i in 0..300_u32 {
            assert_eq!(list.last().copied(), i.checked_sub(1));
            list.push(i);
        }
        assert!((0..301).all(|i| list.get(i as usize).copied() == (i < 300).then_some(i)));
    }

    // REQ: SES-4
    #[test]
    fn cloning_before_each_addition_costs_in_proportion_to_the_additions() {
        // A list that is copied whole would take four times as much for twice as many.
        let (once, twice) = (n_copied(4_096), n_copied(8_192));
        assert!(twice < once * 5 / 2, "{once} and {twice}");
        assert!(twice < 8_192 * 64, "{twice}");
    }

    /// The elements that are compared to find that two lists share their first `n`.
    fn n_compared(here: &SharedList<u32>, there: &SharedList<u32>, n: usize) -> Option<u64> {
        let count = Cell::new(0);
        let shares = here.shares(there, n, |a, b| {
            count.set(count.get() + 1);
            a == b
        });
        shares.then(|| count.get())
    }

    // REQ: SES-4
    #[test]
    fn lists_share_what_equal_elements_say_and_look_at_what_they_have_apart() {
        let (mut list, mut before) = (SharedList::default(), SharedList::default());
        let mut n_all = 0;
        for i in 0..4_096_u32 {
            list.push(i);
            n_all += n_compared(&before, &list, i as usize).unwrap();
            before = list.clone();
        }
        // A walk over all each time would compare eight million.
        assert!(n_all < 4_096 * 64, "{n_all}");
        // What was made apart is compared, wherever its parts end.
        for n in (0..300).chain([4_095, 4_096]) {
            let mut apart = SharedList::default();
            (0..n).for_each(|it| apart.push(it));
            let n = n as usize;
            assert_eq!(n_compared(&apart, &list, n), Some(n as u64));
            assert_eq!(n_compared(&list, &apart, n + 1), None, "one of them has fewer");
        }
    }

    // REQ: SES-4
    #[test]
    fn list_with_another_element_shares_only_what_is_in_front_of_it() {
        for (n, other) in [(1, 0), (40, 31), (40, 32), (300, 0), (300, 255), (300, 299)] {
            let (mut list, mut changed) = (SharedList::default(), SharedList::default());
            for i in 0..n {
                list.push(i);
                changed.push(if i == other { n } else { i });
            }
            for up_to in 0..=n {
                let shares = n_compared(&list, &changed, up_to as usize).is_some();
                assert_eq!(shares, up_to <= other, "{n} {other} {up_to}");
            }
        }
    }

    #[test]
    fn element_of_a_set_is_found_wherever_it_lies() {
        let mut set = SharedSet::default();
        for i in (0..1000_u32).rev() {
            assert!(!set.contains(&i));
            set.insert(i);
        }
        assert!((0..1000).all(|it| set.contains(&it)) && !set.contains(&1000));
        assert!(set.sealed.len() <= 6, "{}", set.sealed.len());
    }
}
