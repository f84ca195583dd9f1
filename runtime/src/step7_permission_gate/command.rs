//! A shell command in the parts that rules judge.
//!
//! A part is one simple command, with what is known of where it runs. Rules, the read-only set,
//! worktrees, transcripts and classes all look at the same parts.
//!
//! Its modules by idea:
//!
//! * **From the text to parts**: `walk`, `part`, `context`, `dirs`, `places`, `starts`, `piped`; programs in programs in
//!   `runners`, `wrappers`, `interpreters`, `shells`, `scripts`, `evaluated`.
//! * **What a part is judged by**: `rules` (allow, deny and ask rules), `read_only`, `escapes`, `class`, `edits`.
//! * **Files that a part names**: `named`, `mentions`, `suspects`, `file_url`, `git_files`, `lists`, `searches`.
//! * **What a part does to files**: `changes` is the value and `files` finds it, from `writers`, `written`, `outputs`;
//!   `changed_below`, `unpacked` and `unpackers` for files that the text does not name.
//! * **Links and other names**: `links`, `links_below`, `followed` (those that are there already), `moved`, `moves`.
//! * **Data about programs**: `programs`, `options`, `names`.

mod changed_below;
mod changes;
mod class;
mod composed;
mod context;
mod dirs;
pub(crate) mod edits;
mod escapes;
mod evaluated;
mod file_url;
mod files;
mod followed;
mod git_files;
mod interpreters;
mod links;
mod links_below;
mod lists;
mod mentions;
mod moved;
mod moves;
mod named;
mod names;
pub(crate) mod options;
mod outputs;
mod part;
mod piped;
mod places;
mod programs;
mod read_only;
mod rules;
mod runners;
mod scripts;
mod searches;
mod shells;
mod starts;
mod suspects;
mod unpacked;
mod unpackers;
mod vague;
mod values;
mod walk;
mod wrappers;
mod writers;
mod written;

use std::sync::OnceLock;

pub(crate) use changes::{ChangedBelow, Changes};
pub use class::CommandClass;
pub(crate) use context::CommandContext;
pub(crate) use dirs::{Dirs, PathTarget, target};
pub(super) use escapes::may_name_files;
pub(crate) use followed::Follower;
pub(crate) use followed::LinksSeen;
pub use followed::{Listing, Look};
pub(crate) use mentions::Mention;
pub(crate) use named::NamedFile;
pub(crate) use part::CommandPart;
pub(crate) use part::base;
pub(super) use read_only::{reads_elsewhere, reads_only};
pub(super) use rules::{CommandPattern, Ruled};
pub(crate) use walk::destination;

use super::shell::Fault;

/// Allow rules that an answer names.
const MAX_SUGGESTIONS: usize = 6;

/// A command in parts.
#[derive(Clone, Debug)]
pub(crate) struct ShellCommand {
    raw: String,
    parts: Vec<CommandPart>,
    /// What each of the parts does to files.
    changes: Vec<Changes>,
    /// Files that its words name.
    mentions: OnceLock<Vec<Mention>>,
    /// What its parts may become.
    vague: OnceLock<Vec<vague::VagueText>>,
    fault: Option<Fault>,
    around: CommandContext,
}

impl ShellCommand {
    /// Takes a command apart. Work is linear in its bytes.
    pub(crate) fn read(raw: &str, around: CommandContext) -> Self {
        let (mut parts, mut given, fault) = walk::parts(raw, &around);
        parts.iter_mut().for_each(rules::recognise);
        let changes_of = |part: &CommandPart| {
            let mut found = files::changes(part, &around);
            given.complete(part, &around, &mut found);
            found
        };
        let changes = parts.iter().map(changes_of).collect();
        let (mentions, vague) = (OnceLock::new(), OnceLock::new());
        Self { raw: raw.into(), parts, changes, mentions, vague, fault, around }
    }

    /// Returns the command as it was given.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    /// Returns everything in it that may run, scripts in scripts included.
    pub(crate) fn parts(&self) -> &[CommandPart] {
        &self.parts
    }

    /// Returns why the gate cannot read it.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Returns where the command runs.
    pub(crate) fn around(&self) -> &CommandContext {
        &self.around
    }

    /// Returns what its parts read, change and take away.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&CommandPart, &Changes)> {
        self.parts.iter().zip(&self.changes)
    }

    /// Returns the files that its words name, whatever its programs do with them. They are found when a rule first
    /// asks.
    pub(crate) fn mentions(&self) -> &[Mention] {
        self.mentions.get_or_init(|| mentions::mentioned(&self.parts, &self.around))
    }

    /// Returns what its parts may become once the shell has expanded them, where that is not known.
    fn vague(&self) -> &[vague::VagueText] {
        self.vague.get_or_init(|| self.parts.iter().flat_map(vague::texts).collect())
    }

    /// Returns the paths that get another name.
    pub(crate) fn linked(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().flat_map(|it| &it.links).flat_map(|it| &it.paths).map(String::as_str)
    }

    /// Returns files and directories that it changes, takes away or gives another name, with all that is in them.
    pub(crate) fn altered_trees(&self) -> impl Iterator<Item = (&PathTarget, &str)> {
        let trees = self.changes.iter().flat_map(|it| it.altered().chain(&it.links));
        trees.flat_map(|it| it.paths.iter().map(|path| (&it.target, path.as_str())))
    }

    /// Returns whether its paths may lead elsewhere than they read: it makes links and climbs afterwards, or links to
    /// something that is not known, or moves directories out of the workspace.
    pub(crate) fn is_relinked(&self) -> bool {
        let makes_links = self.changes.iter().any(|it| it.makes_links);
        let of = |it: &Changes| -> bool {
            let all = it.reads.iter().chain(&it.trees).chain(it.altered());
            all.chain(&it.links).any(|it| links::climbs(&it.target))
        };
        let climbs = || {
            self.changes.iter().any(of)
                || self.mentions().iter().any(|it| links::climbs(&it.named.target))
        };
        let is_open = |it: &NamedFile| matches!(it.target, PathTarget::Open(_));
        self.changes.iter().any(|it| it.leads_out || it.links.iter().any(is_open))
            || makes_links && climbs()
    }

    /// Returns whether it reads what lies after links that it meets on its way, and that the command does not name.
    pub(crate) fn follows_links(&self) -> bool {
        self.changes.iter().any(|it| it.follows_links)
    }

    /// Returns whether it may change what lies after such links.
    pub(crate) fn alters_through_links(&self) -> bool {
        self.changes.iter().any(|it| it.alters_through_links)
    }

    /// Returns whether it opens what lies below a directory into which it has put things that its text does not name.
    pub(crate) fn enters_unpacked(&self) -> bool {
        let unpacked = unpacked::Unpacked::of(&self.parts, &self.around);
        // git itself follows no link of its tree.
        let follows = |it: &CommandPart| {
            base(it.name()) != "git" || it.args().iter().any(|it| it.text == "--no-index")
        };
        let is_below = |(at, (part, it)): (usize, (&CommandPart, &Changes))| {
            let mut all = it.reads.iter().chain(&it.trees).chain(it.altered());
            follows(part)
                && all.any(|it| it.paths.iter().any(|path| unpacked.may_hold(path, part, at)))
        };
        !unpacked.is_empty() && self.changes().enumerate().any(is_below)
    }

    /// Returns the directories of which it reads all that is in them, those below included, each with the part that
    /// does.
    pub(crate) fn searched(&self) -> Vec<(&CommandPart, &PathTarget, &str)> {
        let mut found = Vec::new();
        for (part, changes) in self.changes().filter(|it| !it.1.trees.is_empty()) {
            let goes_down = searches::goes_down(part);
            // What is not in the repository git passes over.
            let is_tracked = || {
                base(part.name()) == "git" && !part.args().iter().any(|it| it.text == "--no-index")
            };
            // What comes through a pipe was searched for in front of it.
            if !goes_down && part.piped.is_none() || is_tracked() {
                continue;
            }
            // What a pattern meets may be a directory.
            let trees = changes.trees.iter();
            let trees = trees.filter(|it| goes_down || !matches!(it.target, PathTarget::Glob(_)));
            let paths = trees.flat_map(|it| it.paths.iter().map(|path| (&it.target, &**path)));
            found.extend(paths.map(|(target, path)| (part, target, path)));
        }
        // One after the other is mostly the same.
        let all_in = |part: &CommandPart| !searches::leaves_some_out(part);
        found.dedup_by(|(part, _, path), before| {
            *path == before.2 && all_in(part) && all_in(before.0)
        });
        found
    }

    /// Returns directories in which it changes or removes files that it does not name.
    pub(crate) fn changed_below(&self) -> impl Iterator<Item = &ChangedBelow> {
        self.changes.iter().flat_map(|it| &it.below)
    }

    /// Returns whether a search of this part leaves out files or directories of this name.
    pub(crate) fn leaves_out(part: &CommandPart, name: &str, is_directory: bool) -> bool {
        searches::leaves_out(part, name, is_directory)
    }

    /// Returns whether it writes to a place that the text does not show.
    pub(crate) fn writes_anywhere(&self) -> bool {
        let n_written = self.changes.iter().filter(|it| it.altered().next().is_some()).count();
        let is_known = |it: &NamedFile| matches!(it.target, PathTarget::Known(_));
        // A link alone changes nothing, and what it leads to is judged when it is known.
        let through_link = n_written > 1
            && self.changes.iter().any(|it| it.makes_links && !it.links.iter().all(is_known));
        through_link
            || self.changes().any(|(part, it)| {
                it.altered().any(|file| {
                    !part.leads(&file.target, &part.dirs)
                        || file.paths.is_empty()
                        || file.paths.iter().any(|it| self.around.is_of_process(it))
                        || it.makes_links && links::climbs(&file.target)
                })
            })
    }

    /// Returns paths that it recognisably changes or writes.
    pub(crate) fn altered(&self) -> impl Iterator<Item = &str> {
        let files = self.changes.iter().flat_map(|it| it.changes.iter().chain(&it.writes));
        files.flat_map(|it| &it.paths).map(String::as_str)
    }

    /// Returns paths that it recognisably removes or moves away.
    pub(crate) fn removed(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().flat_map(|it| &it.removes).flat_map(|it| &it.paths).map(String::as_str)
    }

    /// Returns paths that it recognisably reads.
    pub(crate) fn read_from(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().flat_map(|it| &it.reads).flat_map(|it| &it.paths).map(String::as_str)
    }

    /// Returns files and directories of which it reads all that is in them.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (&PathTarget, &str)> {
        let trees = self.changes.iter().flat_map(|it| it.trees.iter().chain(&it.doubtful_trees));
        trees.flat_map(|it| it.paths.iter().map(|path| (&it.target, path.as_str())))
    }

    /// Returns the patterns of paths that the shell expands: those that it reads or changes, or only those that it
    /// changes.
    pub(crate) fn globs(&self, only_altered: bool) -> impl Iterator<Item = &str> {
        let files = self.changes.iter().flat_map(move |it| {
            it.reads.iter().filter(move |_| !only_altered).chain(it.altered()).chain(&it.links)
        });
        let globs = files.filter(|it| matches!(it.target, PathTarget::Glob(_)));
        globs.flat_map(|it| &it.paths).map(String::as_str)
    }

    /// Returns whether it names a file whose directory is not known.
    pub(crate) fn is_placeless(&self) -> bool {
        self.changes().any(|(part, changes)| {
            let mut named = changes.reads.iter().chain(&changes.trees).chain(changes.altered());
            named.any(|it| !part.leads(&it.target, &part.dirs))
        }) || self.mentions().iter().any(|it| !it.is_placed)
    }

    /// Returns whether a part of it runs code that is not in the text.
    pub(crate) fn is_unseen(&self) -> bool {
        self.parts.iter().any(|it| it.is_unseen)
    }

    /// Returns whether it reads a file whose name the shell has yet to work out.
    pub(crate) fn is_nameless(&self) -> bool {
        // Options and variables of shells that let patterns meet names with a dot in front.
        let meets_dots = ["dotglob", "GLOBIGNORE", "globdots", "glob_dots", "GLOB_DOTS", "(D"]
            .iter()
            .any(|it| self.raw.contains(it));
        let mut reads = self.changes.iter().flat_map(|it| &it.reads);
        reads.any(|it| match it.target {
            PathTarget::Open(_) => true,
            PathTarget::Glob(_) => meets_dots,
            PathTarget::Known(_) => false,
        })
    }

    /// Suggests allow rules that would let these parts pass next time; at most six.
    pub(super) fn suggestions<'a>(uncovered: impl Iterator<Item = &'a CommandPart>) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for rule in uncovered.flat_map(rules::suggested) {
            if !found.contains(&rule) {
                found.push(rule);
            }
            if found.len() == MAX_SUGGESTIONS {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
