//! What a confined command gets as a list of mounts, in their order: where Landlock grants, this covers.
//!
//! Pure, so that the order can be tested: what is named deeper counts, and of one name the wider right.

use std::path::{Path, PathBuf};

/// What a command may do with a file or directory, and with all below it; a later one is the wider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// Nothing: it does not see what is there.
    Nothing,
    /// Read what is there.
    Read,
    /// Read and write what is there.
    Write,
}

/// What a policy says of one path, which is absolute and has no links in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) is_directory: bool,
}

/// One mount, over a root that can be read only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SandboxMount {
    /// The path as it is, writable.
    Writable(PathBuf),
    /// The path as it is, read only.
    Readable(PathBuf),
    /// An empty directory in its place.
    EmptyDirectory(PathBuf),
    /// A file in its place that cannot be opened.
    ClosedFile(PathBuf),
}

/// Returns the mounts that carry these marks out.
pub(super) fn mounts(mut marks: Vec<Mark>) -> Vec<SandboxMount> {
    // Paths are compared by their names, so that a directory is followed by all that is below it.
    marks.sort_by(|a, b| a.path.cmp(&b.path).then(b.access.cmp(&a.access)));
    marks.dedup_by(|later, first| later.path == first.path);
    let mut mounts = Vec::new();
    let mut around = vec![(PathBuf::from("/"), Access::Read)];
    for mark in marks {
        while 1 < around.len() && around.last().is_some_and(|it| !mark.path.starts_with(&it.0)) {
            around.pop();
        }
        let Some((outer, has)) = around.last().cloned() else { continue };
        let is_had = match mark.access {
            Access::Nothing => has == Access::Nothing,
            Access::Read => has != Access::Nothing,
            Access::Write => has == Access::Write,
        };
        if is_had {
            continue;
        }
        if has == Access::Write {
            // Each once: mounted again, it would uncover what is covered in it by now.
            for directory in between(&outer, &mark.path) {
                mounts.push(SandboxMount::Writable(directory.clone()));
                around.push((directory, Access::Write));
            }
        }
        let path = mark.path.clone();
        mounts.push(match (mark.access, mark.is_directory) {
            (Access::Write, _) => SandboxMount::Writable(path),
            (Access::Read, _) => SandboxMount::Readable(path),
            (Access::Nothing, true) => SandboxMount::EmptyDirectory(path),
            (Access::Nothing, false) => SandboxMount::ClosedFile(path),
        });
        around.push((mark.path, mark.access));
    }
    mounts
}

/// The directories between a writable one and what is covered in it, the outermost first. Each is to be a mount, which
/// cannot be renamed: else a command could move what is covered to where the next command finds it uncovered.
fn between(outer: &Path, inner: &Path) -> Vec<PathBuf> {
    let on_the_way = inner.ancestors().skip(1).take_while(|it| *it != outer);
    let mut found: Vec<PathBuf> = on_the_way.map(Path::to_owned).collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::{Access::*, SandboxMount::*, *};

    fn plan(marks: &[(&str, Access)]) -> Vec<SandboxMount> {
        let mark = |&(path, access): &(&str, Access)| Mark {
            path: path.into(),
            access,
            is_directory: !path.contains('.'),
        };
        mounts(marks.iter().map(mark).collect())
    }

    // REQ: TOL-10
    #[test]
    fn what_is_named_deeper_is_mounted_later_and_the_wider_right_counts() {
        let found = plan(&[
            ("/home/u/keys/public", Read),
            ("/home/u/keys", Nothing),
            ("/home/u/.netrc", Nothing),
            ("/home/other", Nothing),
            ("/home/u/code", Write),
            ("/home/u/code", Nothing),
            ("/home/u/code/sub", Write),
            ("/home/u/code/docs", Read),
        ]);
        let expected = [
            EmptyDirectory("/home/other".into()),
            ClosedFile("/home/u/.netrc".into()),
            Writable("/home/u/code".into()),
            EmptyDirectory("/home/u/keys".into()),
            Readable("/home/u/keys/public".into()),
        ];
        assert_eq!(found, expected);
    }

    // REQ: TOL-10
    #[test]
    fn workspace_in_what_is_denied_is_writable_and_what_is_denied_in_it_is_covered() {
        let found = plan(&[
            ("/private", Nothing),
            ("/private/w", Write),
            ("/private/w/secret", Nothing),
            ("/private/w/secret/deep", Nothing),
            ("/private/w/secret/out", Write),
            ("/private/w2", Nothing),
        ]);
        let expected = [
            EmptyDirectory("/private".into()),
            Writable("/private/w".into()),
            EmptyDirectory("/private/w/secret".into()),
            Writable("/private/w/secret/out".into()),
        ];
        assert_eq!(found, expected);
    }

    // REQ: TOL-10
    #[test]
    fn directories_on_the_way_to_what_is_covered_cannot_be_renamed() {
        let found = plan(&[("/w", Write), ("/w/a/b/key.pem", Nothing), ("/w/a/c", Write)]);
        let expected = [
            Writable("/w".into()),
            Writable("/w/a".into()),
            Writable("/w/a/b".into()),
            ClosedFile("/w/a/b/key.pem".into()),
        ];
        assert_eq!(found, expected);
        let found = plan(&[
            ("/w", Write),
            ("/w/a/one", Nothing),
            ("/w/a/one/deep", Nothing),
            ("/w/a/two.pem", Nothing),
            ("/w/b/three.pem", Nothing),
        ]);
        let expected = [
            Writable("/w".into()),
            Writable("/w/a".into()),
            EmptyDirectory("/w/a/one".into()),
            ClosedFile("/w/a/two.pem".into()),
            Writable("/w/b".into()),
            ClosedFile("/w/b/three.pem".into()),
        ];
        assert_eq!(found, expected, "none is mounted again over what is covered in it");
        assert_eq!(plan(&[("/", Write), ("/a", Nothing)])[1], EmptyDirectory("/a".into()));
    }
}
