//! Instruction files: imports are found and put in, comments taken out.
//!
//! Pure; the one that has a file system reads the files that are asked for.

use std::collections::BTreeSet;

use crate::step7_permission_gate::path_resolution::by_text;

/// Hops an import may be away from the file that the reader began with.
pub(crate) const MAX_HOPS: u32 = 4;

/// One file of a tree of imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Absolute path of the file.
    pub path: String,
    /// The file that imports it; `None` for the first one.
    pub parent: Option<String>,
    /// Text of the file without block comments.
    pub text: String,
}

/// Returns the file and everything it imports, each file once, importing files first. `load` is asked for the text of
/// an absolute path and may return `None`; then the mention stays what it is, text.
pub fn with_imports(
    path: &str,
    text: &str,
    home: &str,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> Vec<Imported> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([by_text(path)]);
    add(
        Imported { path: by_text(path), parent: None, text: text.into() },
        0,
        home,
        load,
        &mut seen,
        &mut found,
    );
    found
}

fn add(
    mut file: Imported,
    hop: u32,
    home: &str,
    load: &mut dyn FnMut(&str) -> Option<String>,
    seen: &mut BTreeSet<String>,
    found: &mut Vec<Imported>,
) {
    file.text = without_block_comments(&file.text);
    let path = file.path.clone();
    let targets: Vec<String> = if hop < MAX_HOPS {
        mentions(&file.text).into_iter().map(|it| target(it, &path, home)).collect()
    } else {
        Vec::new()
    };
    found.push(file);
    for target in targets {
        if seen.contains(&target) || !is_text(&target) {
            continue;
        }
        if let Some(text) = load(&target) {
            seen.insert(target.clone());
            let next = Imported { path: target, parent: Some(path.clone()), text };
            add(next, hop + 1, home, load, seen, found);
        }
    }
}

/// Joins the file and what it imports to one text for the model, each imported file under its path.
pub fn join_imports(files: &[Imported]) -> String {
    let mut text = String::new();
    for file in files {
        if file.parent.is_some() {
            text.push_str(&format!("\n\nContents of {}:\n\n", file.path));
        }
        text.push_str(file.text.trim());
    }
    text
}

/// Finds paths mentioned as `@path` in running text, in order: at the start of a line or after a blank, not inside
/// code.
pub(crate) fn mentions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (line, _) in lines(text).filter(|(_, is_code)| !is_code) {
        let n_ticks = line.matches('`').count();
        for (i, part) in line.split('`').enumerate() {
            // A backtick that is never closed begins no span.
            if i % 2 == 1 && i < n_ticks {
                continue;
            }
            // What is glued to a span is not after a blank.
            let glued = i > 0 && !part.starts_with(char::is_whitespace);
            for word in part.split_whitespace().skip(usize::from(glued)) {
                let Some(path) = word.strip_prefix('@') else { continue };
                let path = path.trim_end_matches([',', ';', ':', '!', '?', ')', '"', '\'', '.']);
                if !path.is_empty() {
                    found.push(path);
                }
            }
        }
    }
    found
}

fn target(mention: &str, importing: &str, home: &str) -> String {
    if let Some(rest) = mention.strip_prefix("~/") {
        return by_text(&format!("{home}/{rest}"));
    }
    if mention.starts_with('/') {
        return by_text(mention);
    }
    let directory = importing.rsplit_once('/').map_or("", |(directory, _)| directory);
    by_text(&format!("{directory}/{mention}"))
}

/// Pictures and other files that are not text are mentioned, never put in.
fn is_text(path: &str) -> bool {
    const OTHERS: &[&str] = &[
        "png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "pdf", "zip", "gz", "tar", "mp3", "mp4",
        "mov", "wasm", "exe", "so", "dylib", "dll", "bin",
    ];
    let extension = path.rsplit('/').next().and_then(|it| it.rsplit_once('.'));
    !extension.is_some_and(|(_, it)| OTHERS.contains(&it.to_ascii_lowercase().as_str()))
}

/// Takes out HTML comments that begin a line; those inside code stay.
pub(crate) fn without_block_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_comment = false;
    for (line, is_code) in lines(text) {
        let mut rest = line;
        if !in_comment {
            if is_code || !line.trim_start().starts_with("<!--") {
                out.push_str(line);
                continue;
            }
            in_comment = true;
            rest = line.trim_start();
        }
        if let Some((_, after)) = rest.split_once("-->") {
            in_comment = false;
            if !after.trim().is_empty() {
                out.push_str(after);
            }
        }
    }
    out
}

/// Lines with their ends, and whether each belongs to a fenced block.
fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut fence: Option<&str> = None;
    text.split_inclusive('\n').map(move |line| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|it| start.starts_with(it));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                (line, true)
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                (line, true)
            }
            (open, _) => (line, open.is_some()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, files: &[(&str, &str)], expected: &[&str]) {
        let mut load = |path: &str| files.iter().find(|it| it.0 == path).map(|it| it.1.to_owned());
        let found = with_imports("/r/CLAUDE.md", text, "/h", &mut load);
        let paths: Vec<_> = found[1..].iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, expected);
    }

    // REQ: CTX-2
    #[test]
    fn imports_are_followed_outside_code_only() {
        let files = &[("/r/docs/a.md", "@c.md"), ("/r/docs/c.md", "c"), ("/r/b.md", "b")];
        check("See @docs/a.md and `@b.md`", files, &["/r/docs/a.md", "/r/docs/c.md"]);
        check("```\n@b.md\n```\n", files, &[]);
        check("mail x@b.md, see @b.md.", files, &["/r/b.md"]);
        let home = &[("/h/a", "a"), ("/h/b", "b"), ("/r/i.png", "no")];
        check("@~/a @~/b @i.png @missing", home, &["/h/a", "/h/b"]);
    }

    // REQ: CTX-2
    #[test]
    fn chains_end_after_four_hops_and_rings_are_cut() {
        let chain =
            &[("/r/1", "@2"), ("/r/2", "@3"), ("/r/3", "@4"), ("/r/4", "@5"), ("/r/5", "too far")];
        check("@1", chain, &["/r/1", "/r/2", "/r/3", "/r/4"]);
        check("@a", &[("/r/a", "@b @CLAUDE.md"), ("/r/b", "@a")], &["/r/a", "/r/b"]);
    }

    // REQ: CTX-2
    #[test]
    fn block_comments_are_removed_but_not_from_code() {
        let text = "a\n<!-- note\nmore -->\nb <!-- inline -->\n```\n<!-- kept -->\n```\n";
        assert_eq!(without_block_comments(text), "a\nb <!-- inline -->\n```\n<!-- kept -->\n```\n");
    }

    #[test]
    fn imports_stand_behind_their_file_under_their_path() {
        let mut load = |_: &str| Some("imported".to_owned());
        let files = with_imports("/r/CLAUDE.md", "see @x.md", "/h", &mut load);
        assert_eq!(join_imports(&files), "see @x.md\n\nContents of /r/x.md:\n\nimported");
    }
}
