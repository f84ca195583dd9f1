//! What a command puts somewhere under names that its text does not show: trees that are unpacked or checked
//! out, and what `find -exec mv` and `xargs mv` find. There may be links among it.
//!
//! Programs that a command starts may make links as well; those are not seen.

use super::{
    CommandContext, CommandPart, PathTarget,
    named::{named, values},
    part::base,
    unpackers::is_unpacker,
};
use crate::step7_permission_gate::{path_rule::lies_in, shell::word::Word};

/// Directories of one command that are followed; with more of them every path counts as below one.
const MAX_DIRECTORIES: usize = 64;

/// Programs that go through directories and hand others what they find.
const FINDERS: [&str; 7] = ["find", "fd", "fdfind", "bfs", "xargs", "parallel", "rust-parallel"];

/// Directories into which things of unknown names come.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// The part that puts them there, whether it may run at any time, and the directory.
    into: Vec<(usize, bool, String)>,
    is_cut: bool,
}

impl Unpacked {
    /// Returns what these parts put somewhere.
    pub(super) fn of(parts: &[CommandPart], around: &CommandContext) -> Self {
        let mut found = Self::default();
        for (i, part) in parts.iter().enumerate() {
            for start in part.starts.iter().copied() {
                let Some((name, args)) = part.words.get(start..).and_then(|it| it.split_first())
                else {
                    continue;
                };
                if is_unpacker(base(&name.text), args) || moves_what_is_found(part, start) {
                    found.add(i, args, part, around);
                }
            }
        }
        found
    }

    fn add(&mut self, at: usize, args: &[Word], part: &CommandPart, around: &CommandContext) {
        // Which word is the directory depends on the program; one too many costs a question.
        let here = Word::plain(".");
        let values = args.iter().flat_map(values);
        for word in values.chain([here]) {
            let place = named(&word, part, around);
            self.is_cut |= matches!(place.target, PathTarget::Open(_));
            for path in place.paths {
                if self.into.len() == MAX_DIRECTORIES {
                    self.is_cut = true;
                    return;
                }
                let one = (at, part.at_any_time, path);
                if !self.into.contains(&one) {
                    self.into.push(one);
                }
            }
        }
    }

    /// Returns whether nothing is put anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.into.is_empty() && !self.is_cut
    }

    /// Returns whether a path of this part may lead through what another part put there before.
    pub(super) fn may_hold(&self, path: &str, part: &CommandPart, at: usize) -> bool {
        self.is_cut
            || self.into.iter().any(|(by, is_any_time, directory)| {
                let is_before = *by < at || *by != at && (*is_any_time || part.at_any_time);
                is_before && path.len() > directory.len() && lies_in(path, directory)
            })
    }
}

/// Whether what begins there moves or copies, and something in front of it says what.
fn moves_what_is_found(part: &CommandPart, start: usize) -> bool {
    let name = part.words.get(start).map_or("", |it| base(&it.text));
    let before = part.words.get(..start).unwrap_or_default();
    matches!(name, "mv" | "cp" | "ln" | "rsync" | "install")
        && before.iter().any(|it| FINDERS.contains(&base(&it.text)))
}
