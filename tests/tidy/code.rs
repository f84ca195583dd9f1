//! Rust as tokens, so that a rule about code is not fooled by comments, text or line breaks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

use super::{read, root};

/// What the code outside `#[cfg(test)]` says, of one text or of a whole crate.
#[derive(Default)]
pub(super) struct Code {
    /// `std::fs::read`, with the groups of a `use` written out. Where, and the path.
    pub(super) paths: Vec<(PathBuf, String)>,
    /// Paths of each `use`, public ones left out. Where, and the path.
    pub(super) imports: Vec<(PathBuf, String)>,
    /// Paths of each `pub use`, however far it is public. Where, and the path.
    pub(super) exports: Vec<(PathBuf, String)>,
    /// Macros called, without `!`.
    pub(super) macros: BTreeSet<String>,
    /// Each `static` item up to its semicolon, as text.
    pub(super) statics: Vec<String>,
    /// Every word of the code and the first file that has it.
    pub(super) words: BTreeMap<String, PathBuf>,
    /// The files that were read, with those under `#[cfg(test)]`.
    files: BTreeSet<PathBuf>,
    /// `mod name;`, and whether it is under `#[cfg(test)]`.
    modules: Vec<(String, bool)>,
}

impl Code {
    /// The code of one text. Modules in other files are not followed.
    pub(super) fn of_text(text: &str) -> Self {
        let mut code = Self::default();
        code.add(text, Path::new(""));
        code
    }

    /// The code of a crate, from its top file on. Code for tests is followed, but not gathered.
    pub(super) fn of_crate(top: impl AsRef<Path>) -> Self {
        let top = top.as_ref();
        let mut code = Self::default();
        let dir = top.parent().unwrap().to_owned();
        code.follow(top, &dir, false);
        code
    }

    /// Whether the crate is made of this file, too.
    pub(super) fn has(&self, file: &Path) -> bool {
        self.files.contains(file)
    }

    pub(super) fn calls_macro(&self, name: &str) -> bool {
        self.macros.contains(name)
    }

    fn follow(&mut self, file: &Path, children: &Path, for_tests: bool) {
        self.files.insert(file.to_owned());
        let mut own = Self::default();
        own.add(&read(file), file);
        for (name, child_for_tests) in std::mem::take(&mut own.modules) {
            let child = children.join(format!("{name}.rs"));
            self.follow(&child, &children.join(name), for_tests || child_for_tests);
        }
        if !for_tests {
            self.paths.append(&mut own.paths);
            self.imports.append(&mut own.imports);
            self.exports.append(&mut own.exports);
            self.macros.append(&mut own.macros);
            self.statics.append(&mut own.statics);
            for (word, file) in own.words {
                self.words.entry(word).or_insert(file);
            }
        }
    }

    pub(super) fn add(&mut self, text: &str, file: &Path) {
        let tokens: TokenStream =
            text.parse().unwrap_or_else(|error| panic!("{}: {error}", root().join(file).display()));
        self.walk(tokens, file);
    }

    fn walk(&mut self, tokens: TokenStream, file: &Path) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at += self.step(&tokens[at..], file);
        }
    }

    /// Takes in what is first and says how many tokens that was.
    fn step(&mut self, tokens: &[TokenTree], file: &Path) -> usize {
        match tokens {
            [TokenTree::Punct(hash), TokenTree::Group(attribute), rest @ ..]
                if hash.as_char() == '#' && is_cfg_test(attribute) =>
            {
                let length = item_length(rest);
                // `pub` or another attribute may be before it.
                if let Some(name) = rest[..length].windows(3).find_map(module_in_file) {
                    self.modules.push((name, true));
                }
                2 + length
            }
            // A lifetime is a quote and a word; `'static` is not a static.
            [TokenTree::Punct(quote), TokenTree::Ident(_), ..] if quote.as_char() == '\'' => 2,
            // `pub(in path)` names a place and uses nothing of it.
            [TokenTree::Ident(word), TokenTree::Group(place), rest @ ..]
                if word == "pub" && place.delimiter() == Delimiter::Parenthesis =>
            {
                2 + self.export(rest, file)
            }
            [TokenTree::Ident(word), rest @ ..] => {
                if word == "pub" {
                    return 1 + self.export(rest, file);
                }
                if word == "use" {
                    let mut imports = used(rest, file);
                    self.imports.append(&mut imports);
                }
                if word == "static" {
                    let end = tokens.iter().position(is_semicolon).unwrap_or(tokens.len());
                    let item: TokenStream = tokens[..end].iter().cloned().collect();
                    self.statics.push(item.to_string());
                }
                if let Some(name) = module_in_file(tokens) {
                    self.modules.push((name, false));
                }
                self.path(String::new(), tokens, file)
            }
            [TokenTree::Group(group), ..] => {
                self.walk(group.stream(), file);
                1
            }
            _ => 1,
        }
    }

    /// Takes in the `use` that begins here after a `pub`, and says how many tokens that was.
    fn export(&mut self, tokens: &[TokenTree], file: &Path) -> usize {
        match tokens {
            [TokenTree::Ident(word), rest @ ..] if word == "use" => {
                let mut exports = used(rest, file);
                self.exports.append(&mut exports);
                1 + self.path(String::new(), rest, file)
            }
            _ => 0,
        }
    }

    /// Takes in the path that begins here, below `prefix`, and says how many tokens it has.
    fn path(&mut self, prefix: String, tokens: &[TokenTree], file: &Path) -> usize {
        let (last, rest) = match tokens {
            [TokenTree::Ident(word), rest @ ..] => (word.to_string(), rest),
            [TokenTree::Punct(star), rest @ ..] if star.as_char() == '*' => ("*".to_owned(), rest),
            _ => return 1,
        };
        self.words.entry(last.clone()).or_insert_with(|| file.to_owned());
        let path = if prefix.is_empty() { last.clone() } else { format!("{prefix}::{last}") };
        match rest {
            [TokenTree::Punct(one), TokenTree::Punct(two), next, ..]
                if one.as_char() == ':'
                    && one.spacing() == Spacing::Joint
                    && two.as_char() == ':' =>
            {
                match next {
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                        self.branches(&path, group, file);
                        4
                    }
                    TokenTree::Ident(_) => 3 + self.path(path, &rest[2..], file),
                    TokenTree::Punct(star) if star.as_char() == '*' => {
                        3 + self.path(path, &rest[2..], file)
                    }
                    // A turbofish ends the path for our purposes.
                    _ => {
                        self.paths.push((file.to_owned(), path));
                        3
                    }
                }
            }
            [TokenTree::Punct(mark), TokenTree::Group(_), ..] if mark.as_char() == '!' => {
                self.macros.insert(last);
                self.paths.push((file.to_owned(), path));
                1
            }
            _ => {
                self.paths.push((file.to_owned(), path));
                1
            }
        }
    }

    fn branches(&mut self, prefix: &str, group: &Group, file: &Path) {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        for branch in tokens.split(|it| matches!(it, TokenTree::Punct(it) if it.as_char() == ',')) {
            match branch {
                [] => {}
                [TokenTree::Ident(word), ..] if word == "self" => {
                    self.paths.push((file.to_owned(), prefix.to_owned()));
                }
                _ => {
                    self.path(prefix.to_owned(), branch, file);
                }
            }
        }
    }
}

/// The paths of a `use`, from the token after the word on.
fn used(tokens: &[TokenTree], file: &Path) -> Vec<(PathBuf, String)> {
    let mut code = Code::default();
    code.path(String::new(), tokens, file);
    code.paths
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == ';')
}

/// `[cfg(test)]` or narrower, and nothing wider: code under `any(test, …)` also runs outside tests.
pub(super) fn is_cfg_test(attribute: &Group) -> bool {
    let text = attribute.to_string().replace(' ', "");
    attribute.delimiter() == Delimiter::Bracket
        && (text == "[cfg(test)]" || text.starts_with("[cfg(all(test,"))
}

/// The tokens up to the end of the item that begins here: its semicolon or its braces.
pub(super) fn item_length(tokens: &[TokenTree]) -> usize {
    let end = tokens.iter().position(|token| {
        is_semicolon(token)
            || matches!(token, TokenTree::Group(it) if it.delimiter() == Delimiter::Brace)
    });
    // `use a::{b};` ends with the semicolon after its braces.
    end.map_or(tokens.len(), |end| match tokens.get(end + 1) {
        Some(next) if is_semicolon(next) => end + 2,
        _ => end + 1,
    })
}

/// The name in `mod name;`, if the tokens begin with it.
fn module_in_file(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [TokenTree::Ident(word), TokenTree::Ident(name), end, ..]
            if word == "mod" && is_semicolon(end) =>
        {
            Some(name.to_string())
        }
        _ => None,
    }
}

#[test]
fn comments_text_and_tests_are_not_code() {
    let code = Code::of_text(
        "//! std::fs\n/* std::net */ /// tokio\nfn f<'a>(it: &'static str) -> &'a str {\n\
         \"std::process\" }\n#[cfg(test)]\nmod tests { use std::fs; }\n#[cfg(test)]\nuse std::{env};\n#[cfg(all(test, unix))]\nuse std::os;",
    );
    assert!(!code.words.contains_key("std"), "{:?}", code.paths);
    assert!(!code.words.contains_key("tokio"), "{:?}", code.paths);
    assert!(code.words.contains_key("str") && code.statics.is_empty());
}

#[test]
fn groups_in_a_use_are_written_out() {
    let code = Code::of_text("use std::{fmt, time::{self, Instant as Now}, net::*};");
    let paths: Vec<&str> = code.paths.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(paths, ["use", "std::fmt", "std::time", "std::time::Instant", "std::net::*"]);
}

#[test]
fn macros_statics_and_modules_are_seen() {
    let code = Code::of_text("pub(crate) mod a; static X: u8 = 1; fn f() { todo!() } mod b {}");
    assert_eq!(code.modules, [("a".to_owned(), false)]);
    assert_eq!(code.statics, ["static X : u8 = 1"]);
    assert!(code.calls_macro("todo"));
}

#[test]
fn public_uses_are_known_and_places_of_visibility_are_no_uses() {
    let code = Code::of_text("pub(in crate::a) use self::b::{C, d}; pub use e::F; use g::H;");
    let exports: Vec<&str> = code.exports.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(exports, ["self::b::C", "self::b::d", "e::F"]);
    let imports: Vec<&str> = code.imports.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(imports, ["g::H"]);
    assert!(code.paths.iter().all(|(_, path)| path != "crate::a"), "{:?}", code.paths);
}
