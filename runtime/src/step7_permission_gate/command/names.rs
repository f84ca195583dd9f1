//! Sets of names, made when the program is compiled.

use std::ops::Deref;

/// Slots of a [`Glance`].
const SLOTS: usize = 1024;

/// What is known of a name at a glance: that it is in none of some lists. Most names are in none of most
/// lists, and each command is looked up in many of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glance([u64; SLOTS / 64]);

impl Glance {
    pub(super) const fn new() -> Self {
        Self([0; SLOTS / 64])
    }

    pub(super) const fn with(mut self, names: &[&str]) -> Self {
        let mut i = 0;
        while i < names.len() {
            let slot = slot(names[i].as_bytes());
            self.0[slot / 64] |= 1 << (slot % 64);
            i += 1;
        }
        self
    }

    /// Returns whether the name may be in one of the lists.
    pub(super) const fn may_hold(&self, name: &str) -> bool {
        let slot = slot(name.as_bytes());
        self.0[slot / 64] & (1 << (slot % 64)) != 0
    }
}

const fn slot(name: &[u8]) -> usize {
    if name.is_empty() {
        return 0;
    }
    let n = name.len();
    (n * 7 + name[0] as usize * 37 + name[n / 2] as usize * 101 + name[n - 1] as usize * 11) % SLOTS
}

/// A list of names.
#[derive(Debug)]
pub(crate) struct Names {
    all: &'static [&'static str],
    glance: Glance,
}

impl Names {
    pub(crate) const fn of(all: &'static [&'static str]) -> Self {
        Self { all, glance: Glance::new().with(all) }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.glance.may_hold(name) && self.all.contains(&name)
    }
}

impl Deref for Names {
    type Target = [&'static str];

    fn deref(&self) -> &Self::Target {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_its_names_and_no_others() {
        static SOME: Names = Names::of(&["", "a", "ls", "grep", "[["]);
        for name in SOME.iter() {
            assert!(SOME.contains(name), "{name:?}");
        }
        for name in ["b", "aa", "sl", "gerp", "[", "greps", "LS"] {
            assert!(!SOME.contains(name), "{name:?}");
        }
    }
}
