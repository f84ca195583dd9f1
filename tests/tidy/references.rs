//! What a text refers to can be found by the one that reads it: requirements, files, and nothing of
//! a numbering that the repository does not hold.

use std::path::{Component, Path, PathBuf};

use super::{files_below, read, requirements, root};

/// Texts of ours: code and pages. The cases come from outside and speak of themselves.
fn texts() -> Vec<(PathBuf, String)> {
    let ours = |path: &PathBuf| {
        let extension = path.extension().and_then(|it| it.to_str());
        matches!(extension, Some("rs" | "md" | "toml")) && !path.starts_with("tests/cases")
    };
    let found: Vec<_> =
        files_below("").into_iter().filter(ours).map(|it| (it.clone(), read(it))).collect();
    assert!(400 < found.len(), "{}", found.len());
    found
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "md")
}

/// The words of a text, without the signs around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/' | '_' | ':')))
        .map(|it| it.trim_matches(['.', ':', '-']))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// Whether a word is a number in somebody's own list: `T9.19` or `D74`.
fn is_private_number(word: &str) -> bool {
    match word.as_bytes().first() {
        Some(b'T') => word[1..].split_once('.').is_some_and(|(a, b)| is_number(a) && is_number(b)),
        Some(b'D') => 2 < word.len() && is_number(&word[1..]),
        _ => false,
    }
}

#[test]
fn no_text_cites_a_numbering_that_is_not_in_the_repository() {
    let mut wrong = Vec::new();
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            let about = line.split_once("//").map_or(line, |(_, comment)| comment);
            let cites_section = about.contains(concat!("comp", "at ")) && !is_page(&path);
            if cites_section || words(about).any(is_private_number) {
                wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    wrong.retain(|it| !it.starts_with("tests/tidy/references.rs"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_requirement_that_a_text_names_exists() {
    let known = requirements::known();
    let areas: Vec<&str> = known.iter().filter_map(|it| it.split('-').next()).collect();
    let mut wrong = Vec::new();
    for (path, text) in texts() {
        for word in words(&text).filter(|it| requirements::is_id(it)) {
            if areas.iter().any(|it| word.starts_with(it)) && !known.contains(word) {
                wrong.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The path that a link on this page leads to, from the root.
fn target(page: &Path, link: &str) -> PathBuf {
    let mut parts: Vec<Component<'_>> = page.parent().unwrap_or(page).components().collect();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts.iter().collect()
}

/// The anchors of a page, as they are made of its headings.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|it| it.starts_with('#'));
    let anchor = |it: &str| {
        let text = it.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    let mut n_links = 0;
    for (page, text) in texts().into_iter().filter(|(path, _)| is_page(path)) {
        for link in text.split("](").skip(1).filter_map(|it| it.split_once(')')).map(|it| it.0) {
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            n_links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { page.clone() } else { target(&page, file) };
            let is_there = root().join(&file).exists()
                && (anchor.is_empty() || anchors(&read(&file)).iter().any(|it| it == anchor));
            if !is_there {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(20 < n_links, "{n_links}");
}

/// Names of code that are examples, or files of another project.
const NOT_OURS: [&str; 3] = ["foo.rs", "mod.rs", "redirect.rs"];

/// Whether a word is the path of a file of ours, or the end of one. What is below `src` belongs to an example.
fn names_file(word: &str) -> bool {
    let folders = ["docs/", "runtime/", "tools/", "actors/", "tests/", "examples/"];
    let is_page = [".md", ".toml"].iter().any(|it| word.ends_with(it));
    let is_example =
        ["/", "src/", "a/"].iter().any(|it| word.starts_with(it)) || word.contains(':');
    let is_code = word.ends_with(".rs") && !is_example && !NOT_OURS.contains(&word);
    is_code || is_page && folders.iter().any(|it| word.starts_with(it))
}

#[test]
fn every_file_that_a_comment_or_a_page_names_exists() {
    let (mut wrong, mut n_named) = (Vec::new(), 0);
    let files = files_below("");
    for (path, text) in texts() {
        // In code only comments are read: tests make files of their own.
        let is_read = |line: &&str| is_page(&path) || line.trim_start().starts_with("//");
        for word in text.lines().filter(is_read).flat_map(words).filter(|it| names_file(it)) {
            n_named += 1;
            if !files.iter().any(|it| it.ends_with(word)) {
                wrong.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(100 < n_named, "{n_named}");
}
