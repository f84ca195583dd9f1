//! Where a path leads: by text, and link by link as the kernel walks it.
//!
//! Pure: the caller looks at the file system. So the walk can be tested on
//! trees that cannot be made everywhere.

use super::{PathKind, ResolvedPath};

/// Links followed before a walk counts as a ring; Linux' own limit.
const MAX_LINKS: u32 = 40;

/// What lies at an absolute path, the last link not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEntry {
    /// Nothing, or nothing that can be looked at.
    Missing,
    /// The path names a regular file.
    File,
    /// The path names a directory.
    Directory,
    /// A device, FIFO or socket.
    Special,
    /// A link and its text.
    Link(String),
}

/// Resolves `given` (cases B1). `~` and `~/` lead to `home`, a relative path starts in `cwd`; both
/// absolute. `look` is asked about absolute paths without links in their parents.
pub fn resolve(
    given: &str,
    cwd: &str,
    home: &str,
    look: &mut dyn FnMut(&str) -> PathEntry,
) -> ResolvedPath {
    let absolute = absolute(given, cwd, home);
    let lexical = by_text(&absolute);
    let mut path = ResolvedPath {
        given: given.into(),
        real: lexical.clone(),
        passed: vec![lexical.clone()],
        lexical,
        kind: PathKind::Invalid,
    };
    if given.is_empty() || given.contains('\0') {
        return path;
    }
    let passed = &mut path.passed;
    if let Some((real, kind)) = walk(&absolute, look, |it| note(passed, by_text(&it))) {
        path.real = real;
        path.kind = kind;
        note(&mut path.passed, path.real.clone());
    }
    path
}

/// Returns whether a resolved path can be that of `given`, as far as text alone can show.
pub(crate) fn can_be(path: &ResolvedPath, given: &str, cwd: &str, home: &str) -> bool {
    if path.given != given {
        return false;
    }
    let lexical = lexical(given, cwd, home);
    // The one that could not look at all says no more than what was given.
    let is_unknown = path.kind == PathKind::Invalid && path.lexical == given;
    let names = path.passed.first() == Some(&path.lexical) && path.passed.contains(&path.real);
    is_unknown || path.lexical == lexical && (names || path.kind == PathKind::Invalid)
}

/// Returns where a path leads by text. `~` and `~/` lead to `home`, a relative path starts in `cwd`; both absolute.
pub(crate) fn lexical(given: &str, cwd: &str, home: &str) -> String {
    by_text(&absolute(given, cwd, home))
}

fn absolute(given: &str, cwd: &str, home: &str) -> String {
    if given.starts_with('/') {
        given.to_owned()
    } else if given == "~" || given.starts_with("~/") {
        format!("{home}/{}", given.trim_start_matches('~'))
    } else {
        format!("{cwd}/{given}")
    }
}

/// Returns where an absolute path leads, and what is there; `None` for a ring of links.
pub fn follow(
    absolute: &str,
    look: &mut dyn FnMut(&str) -> PathEntry,
) -> Option<(String, PathKind)> {
    walk(absolute, look, |_| {})
}

/// Follows an absolute path as [`follow`] does; `pass` is called with what each link makes of the path.
pub(crate) fn follow_noting(
    absolute: &str,
    look: &mut dyn FnMut(&str) -> PathEntry,
    pass: &mut dyn FnMut(String),
) -> Option<(String, PathKind)> {
    walk(absolute, look, pass)
}

/// Calls `pass` with what each link makes of the path.
fn walk(
    absolute: &str,
    look: &mut dyn FnMut(&str) -> PathEntry,
    mut pass: impl FnMut(String),
) -> Option<(String, PathKind)> {
    let (mut rest, mut from) = (absolute.to_owned(), 0);
    let (mut at, mut kind, mut n_links) = (String::new(), PathKind::Directory, 0);
    while from < rest.len() {
        let end = rest[from..].find('/').map_or(rest.len(), |it| from + it);
        let name = &rest[from..end];
        from = end + 1;
        match name {
            "" | "." => continue,
            ".." => {
                at.truncate(at.rfind('/').unwrap_or(0));
                kind = PathKind::Directory;
                continue;
            }
            _ => {}
        }
        let parent = at.len();
        at.push('/');
        at.push_str(name);
        // Below what is not there nothing can be.
        let found = if kind == PathKind::Directory { look(&at) } else { PathEntry::Missing };
        kind = match found {
            PathEntry::Missing => PathKind::Missing,
            PathEntry::File => PathKind::File,
            PathEntry::Directory => PathKind::Directory,
            PathEntry::Special => PathKind::Special,
            PathEntry::Link(target) => {
                n_links += 1;
                if n_links > MAX_LINKS {
                    return None;
                }
                let after = rest.get(from..).unwrap_or_default();
                pass(format!("{at}/{after}"));
                rest = format!("{target}/{after}");
                from = 0;
                at.truncate(if target.starts_with('/') { 0 } else { parent });
                PathKind::Directory
            }
        };
    }
    Some((if at.is_empty() { "/".into() } else { at }, kind))
}

fn note(passed: &mut Vec<String>, path: String) {
    if !passed.contains(&path) {
        passed.push(path);
    }
}

/// Removes `.`, `..` and doubled slashes by text.
pub(crate) fn by_text(absolute: &str) -> String {
    let mut path = String::with_capacity(absolute.len() + 1);
    append(&mut path, absolute);
    if path.is_empty() {
        path.push('/');
    }
    path
}

/// Returns where a path leads from a directory, by text. The directory is absolute, and so is the result.
pub(crate) fn joined(directory: &str, path: &str) -> String {
    let mut all = String::with_capacity(directory.len() + path.len() + 2);
    append(&mut all, directory);
    append(&mut all, path);
    if all.is_empty() {
        all.push('/');
    }
    all
}

/// Goes on from a path that has no slash at its end.
fn append(at: &mut String, path: &str) {
    let mut rest = path;
    while !rest.is_empty() {
        // Names are short: a search made for long texts costs more than it saves.
        let end = rest.bytes().position(|it| it == b'/').unwrap_or(rest.len());
        match &rest[..end] {
            "" | "." => {}
            ".." => at.truncate(at.rfind('/').unwrap_or(0)),
            part => {
                at.push('/');
                at.push_str(part);
            }
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(path: &str) -> PathEntry {
        match path {
            "/w" | "/data" | "/data/x" => PathEntry::Directory,
            "/w/file" | "/data/secret" => PathEntry::File,
            "/w/d" => PathEntry::Link("/data/x".into()),
            "/w/a" => PathEntry::Link("./b".into()),
            "/w/b" => PathEntry::Link("file".into()),
            "/w/loop" => PathEntry::Link("loop".into()),
            "/w/pipe" => PathEntry::Special,
            _ => PathEntry::Missing,
        }
    }

    #[track_caller]
    fn check(given: &str, lexical: &str, real: &str, kind: PathKind, passed: &[&str]) {
        let path = resolve(given, "/w", "/h", &mut look);
        assert!(can_be(&path, given, "/w", "/h"), "{path:?}");
        assert_eq!((path.lexical.as_str(), path.real.as_str()), (lexical, real));
        assert_eq!(path.kind, kind);
        assert_eq!(path.passed, passed);
    }

    // REQ: PRM-8
    #[test]
    fn links_are_followed_as_the_kernel_does() {
        check("file", "/w/file", "/w/file", PathKind::File, &["/w/file"]);
        check(
            "d/../secret",
            "/w/secret",
            "/data/secret",
            PathKind::File,
            &["/w/secret", "/data/secret"],
        );
        check("a", "/w/a", "/w/file", PathKind::File, &["/w/a", "/w/b", "/w/file"]);
        check(
            "d/new/k",
            "/w/d/new/k",
            "/data/x/new/k",
            PathKind::Missing,
            &["/w/d/new/k", "/data/x/new/k"],
        );
        check("~/x//y", "/h/x/y", "/h/x/y", PathKind::Missing, &["/h/x/y"]);
        check(".", "/w", "/w", PathKind::Directory, &["/w"]);
        check("/", "/", "/", PathKind::Directory, &["/"]);
        check("pipe", "/w/pipe", "/w/pipe", PathKind::Special, &["/w/pipe"]);
    }

    #[test]
    fn rings_nul_and_nothing_are_invalid() {
        for given in ["loop", "loop/x", "file\0.png", ""] {
            assert_eq!(resolve(given, "/w", "/h", &mut look).kind, PathKind::Invalid, "{given:?}");
        }
        assert_eq!(follow("/w/loop/x", &mut look), None);
    }
}
