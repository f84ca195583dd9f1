//! What a part does to files, as a value. [`files`](super::files) finds it.

use super::named::NamedFile;
use crate::step7_permission_gate::{rule::wildcard, shell::word::Word};

/// What a part does to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Files that it reads.
    pub(crate) reads: Vec<NamedFile>,
    /// Files and directories of which it reads all that is in them.
    pub(crate) trees: Vec<NamedFile>,
    /// More of them, if some operand is none.
    pub(crate) doubtful_trees: Vec<NamedFile>,
    /// Files that operands name which it changes.
    pub(crate) changes: Vec<NamedFile>,
    /// Targets of redirections and operands of `tee`.
    pub(crate) writes: Vec<NamedFile>,
    /// Files and directories that it removes or moves away; `dir/*` for the files in it that have no
    /// dot in front, `dir/**` for the directories, too.
    pub(crate) removes: Vec<NamedFile>,
    /// Directories below which it changes or removes files that it does not name.
    pub(crate) below: Vec<ChangedBelow>,
    /// Files and directories that it gives another name, or that it shows elsewhere.
    pub(crate) links: Vec<NamedFile>,
    /// Some of those are links: what climbs from there climbs from where they lead.
    pub(crate) makes_links: bool,
    /// It puts whole directories out of the workspace, or to a place that is not known.
    pub(crate) leads_out: bool,
    /// It goes through links that it meets below what it names, and reads what is there.
    pub(crate) follows_links: bool,
    /// The same, and it changes or removes what is there, or hands it on to what may.
    pub(crate) alters_through_links: bool,
    /// Protected paths that it names, of a program whose use of them is not known.
    pub(crate) suspected: Vec<NamedFile>,
    /// Words of which nothing is known and that it removes with all that is below.
    pub(super) unknown_trees: Vec<Word>,
    /// It removes something that needs a question first.
    pub(crate) is_critical: bool,
}

impl Changes {
    /// Returns everything that is changed afterwards.
    pub(crate) fn altered(&self) -> impl Iterator<Item = &NamedFile> {
        self.changes.iter().chain(&self.writes).chain(&self.removes)
    }
}

/// A directory in which files are changed or removed, on any level below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedBelow {
    pub(crate) directory: NamedFile,
    /// The pattern of names that are chosen, with `*` alone; `None`: any may be.
    pub(super) chosen: Option<String>,
    /// Files are put there and none is taken away, so that only rules about edits are about it.
    pub(crate) only_brings: bool,
}

impl ChangedBelow {
    pub(super) fn all_in(directory: NamedFile) -> Self {
        Self { directory, chosen: None, only_brings: false }
    }

    pub(super) fn brought_to(directory: NamedFile) -> Self {
        Self { directory, chosen: None, only_brings: true }
    }

    /// Returns whether nothing of this name is changed. In a directory there may be any names.
    pub(crate) fn leaves_out(&self, name: &str, is_directory: bool) -> bool {
        let is_other = |it: &String| !wildcard(it, name);
        !is_directory && self.chosen.as_ref().is_some_and(is_other)
    }
}
