//! Where the directories of a session really are.
//!
//! The gate looks anew for each call; these are looked at once, when a session is
//! opened. They have most of their parts in common, and each part costs one `lstat`, about a
//! microsecond, where the lookup does not know that it is as it was.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use ennead_runtime::step7_permission_gate::{
    Listing, Look, PathKind,
    path_resolution::{self, PathEntry},
};

use super::source_files::SourceLookup;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct RealPaths {
    /// What looks; `None`: each path is looked at here.
    lookup: Option<Arc<dyn SourceLookup>>,
    seen: BTreeMap<String, PathEntry>,
    /// Directories that are reached through links: as written, and where they lead.
    pub(crate) real: BTreeMap<String, String>,
}

impl RealPaths {
    /// Makes what looks by `lookup`.
    pub(crate) fn by(lookup: Arc<dyn SourceLookup>) -> Self {
        Self { lookup: Some(lookup), ..Self::default() }
    }

    /// Follows an absolute path; `None` for a ring of links.
    pub(crate) fn follow(&mut self, path: &Path) -> Option<PathKind> {
        let Self { lookup, seen, .. } = self;
        let mut entries = lookup.as_ref().map(|it| it.entries());
        let mut look = |path: &str| match seen.get(path) {
            Some(seen) => seen.clone(),
            None => {
                let found = entries.as_mut().map_or_else(|| look_up(path), |it| it(path));
                seen.entry(path.to_owned()).or_insert(found).clone()
            }
        };
        let text = path.to_string_lossy();
        let (real, kind) = path_resolution::follow(&text, &mut look)?;
        if Path::new(&real) != path {
            self.real.insert(text.into_owned(), real);
        }
        Some(kind)
    }

    /// Follows an absolute path whose last part has a name that cannot have been used yet, so that it
    /// is not a link. A name that a directory does not hold is the dearest to look for.
    pub(crate) fn follow_new(&mut self, path: &Path) {
        let Some((directory, name)) = path.parent().zip(path.file_name()) else { return };
        self.follow(directory);
        if let Some(real) = self.real.get(&*directory.to_string_lossy()) {
            let real = Path::new(real).join(name).to_string_lossy().into_owned();
            self.real.insert(path.to_string_lossy().into_owned(), real);
        }
    }
}

/// Returns what is at an absolute path of this machine. The last link is not followed.
pub fn look_up(path: &str) -> PathEntry {
    let Ok(meta) = fs::symlink_metadata(path) else { return PathEntry::Missing };
    let kind = meta.file_type();
    if kind.is_symlink() {
        // A link that cannot be read leads nowhere that could be judged.
        let target = fs::read_link(path).ok().and_then(|it| it.into_os_string().into_string().ok());
        return target.map_or(PathEntry::Special, PathEntry::Link);
    }
    if kind.is_dir() {
        PathEntry::Directory
    } else if kind.is_file() {
        PathEntry::File
    } else {
        PathEntry::Special
    }
}

/// Looks at this machine.
pub(crate) const EYES: Look = Look { at: look_up, list: listed };

/// The links and directories in a directory of this machine.
fn listed(directory: &str, max_read: usize) -> Option<Listing> {
    let mut listing = Listing::default();
    let directory = if directory.is_empty() { "/" } else { directory };
    let Ok(entries) = fs::read_dir(directory) else { return Some(listing) };
    for entry in entries.flatten() {
        listing.n_read += 1;
        if max_read < listing.n_read {
            return None;
        }
        // What has no kind may be anything.
        if entry.file_type().is_ok_and(|it| !it.is_symlink() && !it.is_dir()) {
            continue;
        }
        listing.names.push(entry.file_name().into_string().ok()?);
    }
    Some(listing)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    // REQ: PRM-8
    #[test]
    fn directory_is_listed_without_its_files_and_not_beyond_the_bound() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("file"), "x").unwrap();
        symlink("nowhere", directory.path().join("link")).unwrap();
        let mut listing = listed(root, 3).unwrap();
        listing.names.sort();
        assert_eq!((listing.names, listing.n_read), (vec!["inner".into(), "link".into()], 3));
        assert!(listed(root, 2).is_none());
        assert_eq!(listed(&format!("{root}/file"), 2).unwrap().n_read, 0);
    }

    // REQ: PRM-8
    #[test]
    fn directories_behind_links_are_named_with_where_they_lead() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink("nowhere/../later", root.join("real/inner/dangling")).unwrap();
        let (plain, linked) = (root.join("real"), root.join("link/inner"));
        let (missing, slash) = (root.join("link/new/x"), root.join("real/"));
        let dangling = root.join("real/inner/dangling/x");
        let paths = [&plain, &linked, &missing, &slash, &dangling];
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut real_paths = RealPaths::default();
        let kinds = paths.map(|it| real_paths.follow(it));
        let (there, not_there) = (Some(PathKind::Directory), Some(PathKind::Missing));
        assert_eq!(kinds, [there, there, not_there, there, not_there]);
        let expected = [
            (text(&linked), text(&root.join("real/inner"))),
            (text(&missing), text(&root.join("real/new/x"))),
            (text(&dangling), text(&root.join("real/inner/later/x"))),
        ];
        assert_eq!(real_paths.real, BTreeMap::from(expected));
        let (beside, below) = (root.join("plain/new"), root.join("link/new"));
        let mut real_paths = RealPaths::default();
        [&beside, &below].into_iter().for_each(|it| real_paths.follow_new(it));
        let real = &real_paths.real;
        assert_eq!(real.get(&text(&below)), Some(&text(&root.join("real/new"))));
        assert!(!real.contains_key(&text(&beside)));
    }
}
