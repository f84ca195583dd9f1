//! Programs that put files somewhere whose names the command does not say.

use super::{
    escapes::call,
    names::Names,
    options::{has_letter, is_cluster, is_long, operands},
};
use crate::step7_permission_gate::shell::word::Word;

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

/// Returns whether a program puts things somewhere under names that its words do not show.
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
