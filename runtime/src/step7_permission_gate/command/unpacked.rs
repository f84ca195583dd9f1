//! What a command puts somewhere under names that its text does not show: trees that are unpacked or checked
//! out, and what `find -exec mv` and `xargs mv` find. There may be links among it.
//!
//! Programs that a command starts may make links as well; those are not seen.

use super::{
    CommandContext, Part, Target,
    escapes::call,
    files::named,
    names::Names,
    options::{has_letter, is_cluster, is_long, operands},
    part::base,
};
use crate::step7_permission_gate::{path_rule::lies_in, shell::word::Word};

/// Directories of one command that are followed; with more of them every path counts as below one.
const MAX_DIRECTORIES: usize = 64;

/// Programs that make links which an archive or another machine has. Sources: cpio 2.13, pax(1) of
/// POSIX, unzip 6.0, 7-Zip 23, unrar 6, dpkg 1.21, rpm 4.18, squashfs-tools 4.5, GNU patch 2.7, cabextract 1.9.
static UNPACKERS: Names = Names::of(&[
    "cpio",
    "bsdcpio",
    "pax",
    "unzip",
    "7z",
    "7za",
    "7zr",
    "7zz",
    "unrar",
    "unar",
    "dpkg",
    "dpkg-deb",
    "rpm2archive",
    "unsquashfs",
    "patch",
    "cabextract",
    "ouch",
    "atool",
    "aunpack",
]);

/// Commands of git that write files of another state of the tree. Source: the manual of git 2.39.
static CHECK_OUT: Names = Names::of(&[
    "am",
    "apply",
    "bisect",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clone",
    "merge",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "sparse-checkout",
    "stash",
    "submodule",
    "switch",
    "worktree",
]);

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
    /// What these parts put somewhere.
    pub(super) fn of(parts: &[Part], around: &CommandContext) -> Self {
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

    fn add(&mut self, at: usize, args: &[Word], part: &Part, around: &CommandContext) {
        // Which word is the directory depends on the program; one too many costs a question.
        let here = Word::plain(".");
        let values = args.iter().flat_map(super::outputs::values);
        for word in values.chain([here]) {
            let place = named(&word, part, around);
            self.is_cut |= matches!(place.target, Target::Open(_));
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

    /// Whether nothing is put anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.into.is_empty() && !self.is_cut
    }

    /// Whether a path of this part may lead through what another part put there before.
    pub(super) fn may_hold(&self, path: &str, part: &Part, at: usize) -> bool {
        self.is_cut
            || self.into.iter().any(|(by, is_any_time, directory)| {
                let is_before = *by < at || *by != at && (*is_any_time || part.at_any_time);
                is_before && path.len() > directory.len() && lies_in(path, directory)
            })
    }
}

/// Whether a program puts things somewhere under names that its words do not show.
pub(super) fn is_unpacker(name: &str, args: &[Word]) -> bool {
    let has_remote = || operands(args).any(|it| it.text.contains(':'));
    match name {
        "tar" | "gtar" | "bsdtar" => {
            args.first().is_some_and(|it| is_cluster(&it.text, 'x'))
                || args.iter().any(|it| {
                    has_letter(&it.text, 'x', "bCfgFHIKLNTVX")
                        || is_long(&it.text, "--extract")
                        || is_long(&it.text, "--get")
                })
        }
        "git" => CHECK_OUT.contains(call(args).command),
        "hg" | "svn" | "jj" | "fossil" | "bzr" => true,
        "rsync" => has_remote(),
        "docker" | "podman" | "nerdctl" | "kubectl" => args.iter().any(|it| it.text == "cp"),
        _ => UNPACKERS.contains(name),
    }
}

/// Whether what begins there moves or copies, and something in front of it says what.
fn moves_what_is_found(part: &Part, start: usize) -> bool {
    let name = part.words.get(start).map_or("", |it| base(&it.text));
    let before = part.words.get(..start).unwrap_or_default();
    matches!(name, "mv" | "cp" | "ln" | "rsync" | "install")
        && before.iter().any(|it| FINDERS.contains(&base(&it.text)))
}
