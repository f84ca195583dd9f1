//! The figures of the structure: what they may be at most, and that the page which shows them does so truly.
//!
//! `.ci/house` prints the same figures, and those of another checkout. A figure on the page may differ by a fiftieth
//! from what is counted here, so that not every change of a line changes the page.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use super::{
    code::{is_cfg_test, item_length},
    doc_verbs, files,
    floors::largest_circle,
    public_names, read, rust_files,
};

/// The folders of the crates, by the order in which `.ci/house` prints them.
const CRATES: [&str; 5] =
    ["runtime/src", "runtime/simulated/src", "tools/src", "actors/src", "actors/command/src"];

/// Lines of a file, its own tests included: half of the files have at most the first, nine of ten at most the second.
const MAX_MEDIAN_LINES: usize = 150;
const MAX_P90_LINES: usize = 311;

/// Doc comments of three words or fewer, in thousandths of all.
const MAX_SHORT_COMMENTS: usize = 20;

/// Words of the two pages that a newcomer reads to the end.
const MAX_WORDS: [(&str, usize); 2] = [("README.md", 900), ("ARCHITECTURE.md", 4_050)];

/// The median, the 90th percentile and the largest of some values.
struct Spread {
    median: usize,
    p90: usize,
    longest: usize,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = usize>) -> Self {
        let mut values: Vec<usize> = values.into_iter().collect();
        values.sort_unstable();
        let at = |it: usize| values[it];
        let (half, last) = (values.len() / 2, values.len() - 1);
        let median = if values.len().is_multiple_of(2) {
            (at(half - 1) + at(half)).div_ceil(2)
        } else {
            at(half)
        };
        Self { median, p90: at(values.len() * 9 / 10), longest: at(last) }
    }
}

/// The Rust files of the crates with their texts; those of `tests/` and `examples/` are no part of one.
fn sources() -> Vec<(PathBuf, String)> {
    let files = rust_files().into_iter().filter(|it| CRATES.iter().any(|top| it.starts_with(top)));
    files.map(|it| (it.clone(), read(it))).collect()
}

fn is_for_tests(file: &Path) -> bool {
    file.with_extension("").iter().any(|it| it == "tests")
}

fn words_of(page: &str) -> usize {
    read(page).split_whitespace().count()
}

fn lines_of_files(sources: &[(PathBuf, String)]) -> Spread {
    Spread::of(sources.iter().map(|(_, text)| text.lines().count()))
}

fn lines_of_functions(sources: &[(PathBuf, String)]) -> Spread {
    let own = sources.iter().filter(|(file, _)| !is_for_tests(file));
    Spread::of(own.flat_map(|(_, text)| files::function_lengths(text)).map(|(_, lines)| lines))
}

/// Items, methods and constants that are `pub` without a limit, outside of tests.
fn n_public(stream: TokenStream) -> usize {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let is_word = |at: usize, words: &[&str]| {
        let word = tokens.get(at).map(ToString::to_string).unwrap_or_default();
        words.contains(&word.as_str())
    };
    let kinds = ["struct", "enum", "union", "fn", "trait", "type", "const", "static"];
    let (mut found, mut at) = (0, 0);
    while at < tokens.len() {
        match &tokens[at..] {
            [TokenTree::Punct(sign), TokenTree::Group(attribute), rest @ ..]
                if sign.as_char() == '#' && is_cfg_test(attribute) =>
            {
                at += 2 + item_length(rest);
                continue;
            }
            [TokenTree::Group(it), ..] => found += n_public(it.stream()),
            _ if is_word(at, &["pub"]) => {
                let kind = at + 1 + usize::from(is_word(at + 1, &["async"]));
                found += usize::from(is_word(kind, &kinds));
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Doc comments of three words or fewer, in thousandths of all.
fn short_comments(sources: &[(PathBuf, String)]) -> usize {
    let (mut n_all, mut n_short) = (0, 0);
    for (_, text) in sources {
        let mut n_words: Option<usize> = None;
        for line in text.lines().chain([""]) {
            match (line.trim_start().strip_prefix("///"), n_words) {
                (Some(it), words) => {
                    n_words = Some(words.unwrap_or_default() + it.split_whitespace().count());
                }
                (None, Some(words)) => {
                    n_all += 1;
                    n_short += usize::from(words <= 3);
                    n_words = None;
                }
                (None, None) => {}
            }
        }
    }
    (n_short * 1_000 + n_all / 2) / n_all
}

/// The numbers in a text, thousands with their comma, and what has a decimal place in tenths.
fn numbers(text: &str) -> Vec<usize> {
    let words = text.split([' ', '|']).map(|it| it.trim_end_matches([',', '.']));
    let numbers = words.filter(|it| it.starts_with(|it: char| it.is_ascii_digit()));
    numbers.map(|it| it.replace([',', '.'], "").parse().unwrap()).collect()
}

/// Whether a number on a page is as good as the one that is counted; of a share, in tenths of a percent, if it is by
/// two of these.
fn is_near(shown: usize, counted: usize, is_share: bool) -> bool {
    let leeway = if is_share { 2 } else { counted / 50 };
    shown.abs_diff(counted) <= leeway
}

#[test]
fn half_of_the_files_are_short_and_nearly_all_are_of_a_bearable_length() {
    let Spread { median, p90, .. } = lines_of_files(&sources());
    assert!(median <= MAX_MEDIAN_LINES, "half of the files have more than {median} lines");
    assert!(
        p90 <= MAX_P90_LINES,
        "a tenth of the files has {p90} lines or more: split some of them"
    );
}

#[test]
fn few_comments_are_of_three_words() {
    let share = short_comments(&sources());
    assert!(share <= MAX_SHORT_COMMENTS, "{share} of a thousand");
}

#[test]
fn pages_for_newcomers_are_short() {
    for (page, most) in MAX_WORDS {
        let n_words = words_of(page);
        assert!(n_words <= most, "{page} has {n_words} words, more than {most}");
    }
}

#[test]
fn figures_of_the_structure_are_those_of_the_code() {
    let sources = sources();
    let files = lines_of_files(&sources);
    let functions = lines_of_functions(&sources);
    let own = sources.iter().filter(|(file, _)| !is_for_tests(file));
    let n_public: usize = own.map(|(_, text)| n_public(text.parse().unwrap())).sum();
    let over = sources.iter().filter(|(_, text)| 400 < text.lines().count()).count();
    let [n_names, n_data] = public_names::n_names();
    let circles = ["runtime", "actors", "actors/command"]
        .map(|it| largest_circle(&format!("{it}/src/lib.rs")))
        .to_vec();
    let rows = [
        ("files in the largest circle of imports", circles),
        ("names at the front door", vec![n_names, n_data]),
        ("items that are `pub` in all crates", vec![n_public]),
        ("doc comments of three words or fewer", vec![short_comments(&sources)]),
        ("documented functions whose comment does not begin", vec![doc_verbs::share_of_others()]),
        ("files over 400 lines", vec![over]),
        ("lines of a file", vec![files.median, files.p90]),
        ("lines of a function", vec![functions.median, functions.p90, functions.longest]),
        ("words of README.md / ARCHITECTURE.md", MAX_WORDS.map(|it| words_of(it.0)).to_vec()),
    ];
    let page = read("docs/figures.md");
    let table = page.split("## The structure").nth(1).unwrap().split("\n## ").next().unwrap();
    for (name, counted) in rows {
        let row = table.lines().find(|it| it.starts_with(&format!("| {name}")));
        let row = row.unwrap_or_else(|| panic!("docs/figures.md has no row: {name}"));
        let cell = row.trim_end_matches(" |").rsplit_once("| ").unwrap().1;
        let shown = numbers(cell);
        let is_share = cell.contains('%');
        let is_true = shown.len() == counted.len()
            && shown.iter().zip(&counted).all(|(a, b)| is_near(*a, *b, is_share));
        assert!(is_true, "docs/figures.md, {name}: {cell}, counted are {counted:?}");
    }
}

#[test]
fn numbers_are_read_from_a_cell_and_may_differ_by_a_fiftieth() {
    assert_eq!(numbers("1,644"), [1_644]);
    assert_eq!(numbers("80, and 150 types in `ennead::data`"), [80, 150]);
    assert_eq!(numbers("7 / 6 / 5"), [7, 6, 5]);
    assert_eq!(numbers("1.5 %"), [15]);
    assert!(is_near(1_632, 1_600, false) && !is_near(1_633, 1_600, false));
    assert!(!is_near(8, 7, false) && is_near(15, 13, true) && !is_near(15, 18, true));
}

#[test]
fn what_is_public_is_counted_outside_of_tests_and_limits() {
    let text = "
        pub struct One { pub field: u8 } pub(crate) fn own() {} impl One { pub const fn two() {} pub async fn three() {} }
        #[cfg(test)] pub fn of_tests() {} #[cfg(test)] mod tests { pub fn world() {} } pub use a::B; pub mod c;
    ";
    assert_eq!(n_public(text.parse().unwrap()), 3);
}

#[test]
fn short_comments_are_counted_as_blocks() {
    let text =
        "/// One two.\n/// Three four.\nfn a() {}\n\n    /// Which.\n    b: u8,\n// Not one.\n";
    assert_eq!(short_comments(&[(PathBuf::new(), text.to_owned())]), 500);
}
