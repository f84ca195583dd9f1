//! The comment of a function begins with what the function does: "Returns …", "Sets …", "Opens …".
//!
//! At the front door this holds without exception. Of all other functions that are visible outside of their module
//! a small share may begin with another word.

use syn::{Attribute, ImplItem, Item, TraitItem, Visibility};

use super::{
    public_names::{self, docs, is_for_tests},
    read, rust_files,
};

/// Words that end in `s` and are no verbs in front of a comment. `.ci/house` has the same.
const NO_VERBS: [&str; 16] = [
    "Always",
    "As",
    "Bytes",
    "Characters",
    "Directories",
    "Is",
    "Its",
    "Microseconds",
    "Milliseconds",
    "Plus",
    "This",
    "Tokens",
    "Unless",
    "Variables",
    "Was",
    "Words",
];

/// Percent of the documented functions whose comments may begin otherwise.
const MAX_PERCENT: usize = 2;

/// Returns whether a comment begins with a verb in the third person.
fn begins_with_a_verb(comment: &str) -> bool {
    let word = comment.split_whitespace().next().unwrap_or_default().trim_end_matches(',');
    let is_word = word.starts_with(|it: char| it.is_ascii_uppercase())
        && word.bytes().skip(1).all(|it| it.is_ascii_lowercase() || it == b'-');
    is_word && word.ends_with('s') && !word.ends_with("ss") && !NO_VERBS.contains(&word)
}

/// Returns the first line of a comment, with where it is.
fn shown(place: &str, comment: &str) -> String {
    format!("{place}: {}", comment.lines().next().unwrap_or_default().trim())
}

fn is_seen(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

/// Returns the comment of a function; `None` if it has none, or is there for tests alone.
fn comment(attributes: &[Attribute], is_seen: bool) -> Option<String> {
    let comment = docs(attributes);
    (is_seen && !comment.is_empty() && !is_for_tests(attributes)).then_some(comment)
}

/// Returns the comments of functions that are visible outside of their module, methods of traits included.
fn comments(items: &[Item]) -> Vec<String> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Fn(it) => found.extend(comment(&it.attrs, is_seen(&it.vis))),
            Item::Impl(block) if block.trait_.is_none() && !is_for_tests(&block.attrs) => {
                for member in &block.items {
                    if let ImplItem::Fn(it) = member {
                        found.extend(comment(&it.attrs, is_seen(&it.vis)));
                    }
                }
            }
            Item::Trait(of) if is_seen(&of.vis) && !is_for_tests(&of.attrs) => {
                for member in &of.items {
                    if let TraitItem::Fn(it) = member {
                        found.extend(comment(&it.attrs, true));
                    }
                }
            }
            Item::Mod(it) if !is_for_tests(&it.attrs) => {
                found.extend(it.content.iter().flat_map(|(_, items)| comments(items)));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn comments_of_functions_at_the_front_door_begin_with_a_verb() {
    let (mut n_functions, mut wrong) = (0, Vec::new());
    for (path, item) in public_names::at_the_front_door() {
        let function = (item.kind == "fn").then(|| (path.to_owned(), &item.docs));
        let methods = item.method_docs.iter();
        let methods = methods.map(|(name, comment)| (format!("{path}::{name}"), comment));
        for (name, comment) in function.into_iter().chain(methods) {
            n_functions += 1;
            if !comment.is_empty() && !begins_with_a_verb(comment) {
                wrong.push(shown(&name, comment));
            }
        }
    }
    assert!(200 < n_functions, "{n_functions} functions at the front door");
    assert!(wrong.is_empty(), "begin these with what the function does: {wrong:#?}");
}

/// Returns how many functions of the crates are documented, and the comments that begin otherwise, with their files.
fn comments_of_crates() -> (usize, Vec<String>) {
    let (mut n_comments, mut wrong) = (0, Vec::new());
    for file in rust_files() {
        let path = file.to_str().unwrap();
        if !path.contains("/src/") || path.split(['/', '.']).any(|it| it == "tests") {
            continue;
        }
        let code = syn::parse_file(&read(&file)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found = comments(&code.items);
        n_comments += found.len();
        let others = found.iter().filter(|it| !begins_with_a_verb(it));
        wrong.extend(others.map(|it| shown(path, it)));
    }
    (n_comments, wrong)
}

/// Returns the share of documented functions whose comments begin otherwise, in thousandths.
pub(super) fn share_of_others() -> usize {
    let (n_comments, wrong) = comments_of_crates();
    (wrong.len() * 1_000 + n_comments / 2) / n_comments
}

#[test]
fn nearly_all_comments_of_functions_begin_with_a_verb() {
    let (n_comments, wrong) = comments_of_crates();
    assert!(2_000 < n_comments, "{n_comments} documented functions");
    assert!(
        wrong.len() * 100 <= n_comments * MAX_PERCENT,
        "{} of {n_comments}; begin these with what the function does: {wrong:#?}",
        wrong.len()
    );
}

#[test]
fn verb_is_distinguished_from_other_words_that_end_in_s() {
    for (comment, expected) in [
        ("Returns the name.", true),
        (" Locks, even after a panic: what is locked is whole.", true),
        ("Re-encodes the head.", true),
        ("Whether it is open.", false),
        ("The name.", false),
        ("This name.", false),
        ("Bytes so far.", false),
        ("Process of a command.", false),
        ("`returns` as it is.", false),
        ("", false),
    ] {
        assert_eq!(begins_with_a_verb(comment), expected, "{comment}");
    }
}

#[test]
fn words_that_are_no_verbs_are_those_of_the_script() {
    let script = read(".ci/house");
    let list = script.split("NO_VERBS = set(").nth(1).unwrap().split(".split").next().unwrap();
    let words = list.split(|it: char| !it.is_ascii_alphabetic()).filter(|it| !it.is_empty());
    assert_eq!(words.collect::<Vec<_>>(), NO_VERBS);
}

#[test]
fn comment_is_found_unless_its_function_is_private_or_for_tests() {
    let text = "
        /// Private.
        fn private() {}
        /// Free.
        pub(crate) const fn free() {}
        impl Type {
            /// Method.
            pub async fn method(&self) {}
            /// Own.
            fn own(&self) {}
            pub fn bare(&self) {}
            #[cfg(test)]
            /// Test.
            pub fn of_tests(&self) {}
        }
        impl Trait for Type {
            /// Implemented.
            fn wanted(&self) {}
        }
        pub trait Trait {
            /// Wanted.
            fn wanted(&self);
        }
        trait Own {
            /// Hidden.
            fn hidden(&self);
        }
        mod inner {
            /// Inner.
            pub(super) fn inner() {}
        }
        #[cfg(test)]
        mod tests {
            /// World.
            pub(super) fn world() {}
        }
    ";
    let found = comments(&syn::parse_file(text).unwrap().items);
    let found: Vec<&str> = found.iter().map(|it| it.trim()).collect();
    assert_eq!(found, ["Free.", "Method.", "Wanted.", "Inner."]);
}
