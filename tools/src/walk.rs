//! Walks a directory in a fixed order, leaving out what the permit hides.

mod ignored;

use std::{
    fs,
    path::{Path, PathBuf},
};

use ennead_runtime::step7_permission_gate::ResolvedPath;
use ignore::{DirEntry, WalkBuilder, overrides::Override};

use crate::hidden::Hidden;
pub(crate) use ignored::IgnoreFiles;
use ignored::Ignored;

/// Where a search starts.
#[derive(Clone, Debug)]
pub(crate) struct SearchRoot {
    /// The path that results name.
    pub(crate) named: PathBuf,
    pub(crate) real: PathBuf,
}

impl SearchRoot {
    /// Returns the root that the gate decided about.
    pub(crate) fn of(path: &ResolvedPath) -> Self {
        Self { named: (&*path.lexical).into(), real: (&*path.real).into() }
    }

    /// Returns a path below the root as it is named in results.
    pub(crate) fn name(&self, real: &Path) -> PathBuf {
        match real.strip_prefix(&self.real) {
            Ok(below) if below.as_os_str().is_empty() => self.named.clone(),
            Ok(below) => self.named.join(below),
            Err(_) => real.to_owned(),
        }
    }
}

/// Version control keeps its own files there.
const VERSION_CONTROL: [&str; 6] = [".git", ".svn", ".hg", ".bzr", ".jj", ".sl"];

/// Whether the walk goes into the directories of version control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionControl {
    /// The walk shows them.
    Shown,
    /// The walk leaves them out.
    LeftOut,
}

/// What a walk leaves out.
pub(crate) struct Filter {
    /// What the permit hides.
    pub(crate) hidden: Hidden,
    /// What ignore files name.
    pub(crate) ignore_files: IgnoreFiles,
    /// What a search asks for by a glob, which ignore files then do not leave out.
    pub(crate) wanted: Override,
    /// The directories of version control.
    pub(crate) version_control: VersionControl,
}

/// Finishes a walk: sorted by path, links not followed, hidden paths neither listed nor entered.
pub(crate) fn entries(
    builder: &mut WalkBuilder,
    root: &SearchRoot,
    filter: Filter,
) -> impl Iterator<Item = Result<DirEntry, ignore::Error>> + use<> {
    let Filter { hidden, ignore_files, wanted, version_control } = filter;
    let (root, ignored) = (root.clone(), Ignored::new(ignore_files));
    // The walk does not ask its filter about where it starts.
    let starts_hidden = hidden.hides(&root.real) || hidden.hides(&root.named);
    builder
        .ignore(false)
        .git_ignore(false)
        .git_exclude(false)
        .git_global(false)
        .parents(false)
        .overrides(wanted.clone())
        .follow_links(false)
        .sort_by_file_path(Ord::cmp)
        .filter_entry(move |entry| {
            let in_version_control = version_control == VersionControl::LeftOut
                && entry.depth() > 0
                && VERSION_CONTROL.iter().any(|name| entry.file_name() == *name);
            let is_dir = entry.file_type().is_some_and(|it| it.is_dir());
            let is_left_out = !wanted.matched(entry.path(), is_dir).is_whitelist()
                && ignored.leaves_out(entry.path(), is_dir);
            !in_version_control && !is_left_out && !is_hidden(entry, &root, &hidden)
        })
        .build()
        .filter(move |_| !starts_hidden)
}

fn is_hidden(entry: &DirEntry, root: &SearchRoot, hidden: &Hidden) -> bool {
    if hidden.is_empty() {
        return false;
    }
    let path = entry.path();
    // A rule may name either side of a link above the root, or what a link below it leads to.
    hidden.hides(path)
        || hidden.hides(&root.name(path))
        || entry.path_is_symlink()
            && fs::canonicalize(path).is_ok_and(|target| hidden.hides(&target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{World, resolve};

    fn names(world: &World, start: &str, patterns: &[String]) -> Vec<String> {
        let root = SearchRoot::of(&resolve(&world.path(start)));
        let filter = Filter {
            hidden: Hidden::new(patterns),
            ignore_files: IgnoreFiles::None,
            wanted: Override::empty(),
            version_control: VersionControl::LeftOut,
        };
        let mut builder = WalkBuilder::new(&root.real);
        entries(&mut builder, &root, filter)
            .map(|entry| root.name(entry.unwrap().path()))
            .map(|path| path.strip_prefix(&world.root).unwrap().display().to_string())
            .collect()
    }

    #[test]
    fn a_rule_hides_whichever_side_of_a_link_it_names() {
        let world = World::new();
        world.file("real/a", "");
        world.file("real/b", "");
        std::os::unix::fs::symlink(world.root.join("real"), world.root.join("link")).unwrap();
        let root = world.root.display();
        assert_eq!(names(&world, "link", &[]), ["link", "link/a", "link/b"]);
        for side in ["real", "link"] {
            let pattern = format!("/{root}/{side}/a");
            assert_eq!(names(&world, "link", &[pattern]), ["link", "link/b"], "{side}");
        }
        let none: [&str; 0] = [];
        assert_eq!(names(&world, "real", &[format!("/{root}/real")]), none);
    }
}
