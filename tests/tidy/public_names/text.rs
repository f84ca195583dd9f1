//! Code as one line, spaced as people write it.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;

/// Signs of several characters.
const SIGNS: [&str; 6] = ["::", "->", "=>", "==", "..", "..="];

/// The tokens as text, groups opened, signs of several characters put together.
fn flat(tokens: TokenStream, found: &mut Vec<String>) {
    let mut is_joint = false;
    for token in tokens {
        let continues = std::mem::take(&mut is_joint);
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => {
                        flat(group.stream(), found);
                        continue;
                    }
                };
                found.push(open.to_owned());
                flat(group.stream(), found);
                found.push(close.to_owned());
            }
            TokenTree::Punct(sign) => {
                is_joint = sign.spacing() == Spacing::Joint && "'-:=.".contains(sign.as_char());
                match found.last_mut() {
                    Some(last)
                        if continues && SIGNS.contains(&format!("{last}{sign}").as_str()) =>
                    {
                        last.push(sign.as_char());
                    }
                    _ => found.push(sign.to_string()),
                }
            }
            TokenTree::Ident(word) => match found.last_mut() {
                Some(last) if continues && last == "'" => last.push_str(&word.to_string()),
                _ => found.push(word.to_string()),
            },
            TokenTree::Literal(it) => found.push(it.to_string()),
        }
    }
}

fn is_word(token: &str) -> bool {
    !token.starts_with('\'') && token.ends_with(|it: char| it.is_alphanumeric() || it == '_')
}

/// Whether a space is between these two.
fn is_apart(before: &str, after: &str) -> bool {
    match (before, after) {
        ("(" | "[" | "<" | "&" | "::" | "?" | "#" | "!" | "*", _) => false,
        (_, ")" | "]" | ">" | "," | ";" | ":" | "::" | "?" | "!") => {
            // `T: ?Sized`, and a trait after `as`.
            matches!((before, after), (":" | "+", "?"))
        }
        ("as" | "in" | "dyn" | "mut" | "where", _) => true,
        (_, "<" | "(" | "[") => !(is_word(before) || before == ">"),
        _ => true,
    }
}

/// Code as one line.
pub(super) fn text(code: impl ToTokens) -> String {
    let mut tokens = Vec::new();
    flat(code.to_token_stream(), &mut tokens);
    let mut out = String::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_last_comma = token == ","
            && tokens.get(at + 1).is_some_and(|it| [")", ">"].contains(&it.as_str()))
            && tokens.get(at.wrapping_sub(2)).is_none_or(|it| it != "(");
        if is_last_comma {
            continue;
        }
        if at != 0 && is_apart(&tokens[at - 1], token) {
            out.push(' ');
        }
        out.push_str(token);
    }
    out
}

#[test]
fn code_is_spaced_as_people_write_it() {
    for code in [
        "fn run<'a, T: ?Sized + Into<Vec<u8>>>(&'a mut self, it: &dyn Fn(u8, &str) -> (u8, u8)) -> Box<dyn A<Item = u8> + Send>",
        "for<'a> fn(&'a [u8; 32]) -> <T as std::ops::Deref>::Target",
        "impl<T> From<T> for Vec<(u8,)> where T: Fn(u8) -> bool",
    ] {
        assert_eq!(text(code.parse::<TokenStream>().unwrap()), code);
    }
    let lines = "fn run(\n    one: u8,\n    two: u8,\n)";
    assert_eq!(text(lines.parse::<TokenStream>().unwrap()), "fn run(one: u8, two: u8)");
}
