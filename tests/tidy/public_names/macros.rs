//! Macros by example, written out: what one of them declares is as public as what is written by hand.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::{
    Lit, Meta, Type,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

/// A part of a matcher, or of what is written for it.
enum Part {
    /// `$name`, in a matcher with the kind of its fragment.
    Fragment(String, String),
    /// `$( … ) separator operator`.
    Repeat(Vec<Part>, Option<TokenTree>),
    Group(Delimiter, Vec<Part>),
    Token(TokenTree),
}

/// What a fragment was matched with, once for each round of the repetitions around it.
#[derive(Clone)]
enum Bound {
    Once(TokenStream),
    Many(Vec<Bound>),
}

type Bindings = BTreeMap<String, Bound>;

/// Whether this token is this sign.
pub(super) fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == sign)
}

fn parts(tokens: TokenStream) -> Vec<Part> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let (part, length) = part(&tokens[at..]);
        found.push(part);
        at += length;
    }
    found
}

/// The part that these tokens begin with, and how many tokens it has.
fn part(tokens: &[TokenTree]) -> (Part, usize) {
    match tokens {
        [dollar, TokenTree::Group(inner), rest @ ..] if is_sign(dollar, '$') => {
            let is_operator = |it: &TokenTree| ['*', '+', '?'].iter().any(|op| is_sign(it, *op));
            let n_before = usize::from(!is_operator(&rest[0]));
            let separator = (n_before == 1).then(|| rest[0].clone());
            assert!(is_operator(&rest[n_before]), "a repetition ends with an operator");
            (Part::Repeat(parts(inner.stream()), separator), 3 + n_before)
        }
        [dollar, TokenTree::Ident(name), colon, TokenTree::Ident(kind), ..]
            if is_sign(dollar, '$') && is_sign(colon, ':') && is_kind(kind) =>
        {
            (Part::Fragment(name.to_string(), kind.to_string()), 4)
        }
        [dollar, TokenTree::Ident(name), ..] if is_sign(dollar, '$') => {
            (Part::Fragment(name.to_string(), String::new()), 2)
        }
        [TokenTree::Group(group), ..] => (Part::Group(group.delimiter(), parts(group.stream())), 1),
        [token, ..] => (Part::Token(token.clone()), 1),
        [] => unreachable!("there is a token"),
    }
}

/// Whether a word is the kind of a fragment: `$field: $type` has a colon, too.
fn is_kind(word: &Ident) -> bool {
    ["ident", "ty", "literal", "meta", "expr", "tt"].iter().any(|it| word == it)
}

fn fragment(kind: &str, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    use quote::ToTokens;
    Ok(match kind {
        "ident" => input.call(Ident::parse_any)?.into_token_stream(),
        "ty" => input.parse::<Type>()?.into_token_stream(),
        "literal" => input.parse::<Lit>()?.into_token_stream(),
        "meta" => input.parse::<Meta>()?.into_token_stream(),
        "tt" => input.parse::<TokenTree>()?.into_token_stream(),
        other => return Err(input.error(format!("fragments of kind {other} are not read"))),
    })
}

fn matched(pattern: &[Part], input: ParseStream<'_>) -> syn::Result<Bindings> {
    let mut bindings = Bindings::new();
    for part in pattern {
        match part {
            Part::Fragment(name, kind) => {
                bindings.insert(name.clone(), Bound::Once(fragment(kind, input)?));
            }
            Part::Repeat(inner, separator) => {
                let rounds = rounds(inner, separator.as_ref(), input)?;
                for name in names(inner) {
                    let of_name = rounds.iter().map(|it| it[&name].clone()).collect();
                    bindings.insert(name, Bound::Many(of_name));
                }
            }
            Part::Group(delimiter, inner) => {
                let group: Group = input.parse()?;
                if group.delimiter() != *delimiter {
                    return Err(input.error("another delimiter"));
                }
                let read = |inside: ParseStream<'_>| matched(inner, inside);
                bindings.extend(read.parse2(group.stream())?);
            }
            Part::Token(token) => {
                let found: TokenTree = input.parse()?;
                if found.to_string() != token.to_string() {
                    return Err(input.error(format!("not {token}")));
                }
            }
        }
    }
    Ok(bindings)
}

fn rounds(
    inner: &[Part],
    separator: Option<&TokenTree>,
    input: ParseStream<'_>,
) -> syn::Result<Vec<Bindings>> {
    let mut rounds = Vec::new();
    while !input.is_empty() && matched(inner, &input.fork()).is_ok() {
        rounds.push(matched(inner, input)?);
        if let Some(separator) = separator {
            match input.fork().parse::<TokenTree>() {
                Ok(it) if it.to_string() == separator.to_string() => {
                    input.parse::<TokenTree>()?;
                }
                _ => break,
            }
        }
    }
    Ok(rounds)
}

/// The fragments of these parts.
fn names(parts: &[Part]) -> Vec<String> {
    let mut found = Vec::new();
    for part in parts {
        match part {
            Part::Fragment(name, _) => found.push(name.clone()),
            Part::Repeat(inner, _) | Part::Group(_, inner) => found.extend(names(inner)),
            Part::Token(_) => {}
        }
    }
    found
}

fn written(parts: &[Part], bindings: &Bindings) -> TokenStream {
    let mut out = TokenStream::new();
    for part in parts {
        match part {
            Part::Fragment(name, _) => match bindings.get(name) {
                Some(Bound::Once(it)) => out.extend(it.clone()),
                _ => panic!("${name} is not bound once"),
            },
            Part::Repeat(inner, separator) => {
                let many: Vec<(String, &Vec<Bound>)> = names(inner)
                    .into_iter()
                    .filter_map(|it| match bindings.get(&it) {
                        Some(Bound::Many(rounds)) => Some((it, rounds)),
                        _ => None,
                    })
                    .collect();
                let n_rounds = many.first().expect("something is repeated").1.len();
                for round in 0..n_rounds {
                    let mut own = bindings.clone();
                    own.extend(many.iter().map(|(name, it)| (name.clone(), it[round].clone())));
                    if round != 0 {
                        out.extend(separator.clone());
                    }
                    out.extend(written(inner, &own));
                }
            }
            Part::Group(delimiter, inner) => {
                let group = Group::new(*delimiter, written(inner, bindings));
                out.extend([TokenTree::Group(group)]);
            }
            Part::Token(token) => out.extend([token.clone()]),
        }
    }
    out
}

/// What a call of a macro stands for, by the first rule of its definition that fits.
pub(super) fn expanded(definition: TokenStream, call: TokenStream) -> TokenStream {
    let rules: Vec<TokenTree> = definition.into_iter().collect();
    for rule in rules.split(|it| is_sign(it, ';')) {
        let [TokenTree::Group(pattern), _, _, TokenTree::Group(body)] = rule else { continue };
        let pattern = parts(pattern.stream());
        let read = |input: ParseStream<'_>| matched(&pattern, input);
        if let Ok(bindings) = read.parse2(call.clone()) {
            return written(&parts(body.stream()), &bindings);
        }
    }
    panic!("no rule fits {call}");
}

#[test]
fn macro_is_written_out_with_its_repetitions() {
    let definition =
        "($($(#[$doc:meta])* $name:ident $({ $($field:ident: $ty:ty),* })?, $code:literal;)*) => {
        pub enum FragmentKind { $($(#[$doc])* $name $({ $($field: $ty),* })?,)* }
        impl FragmentKind { pub fn code(&self) -> u8 { match self { $(Self::$name { .. } => $code,)* } } }
    };";
    let call = "/// First.
        One, 1; Two { a: Vec<u8>, b: u8 }, 2;";
    let expected = "pub enum FragmentKind { #[doc = r\" First.\"] One, Two { a: Vec<u8>, b: u8 }, }
        impl FragmentKind { pub fn code(&self) -> u8 { match self { Self::One { .. } => 1, Self::Two { .. } => 2, } } }";
    let found = expanded(definition.parse().unwrap(), call.parse().unwrap());
    let line = |code: TokenStream| super::text::text(code).replace("r\"", "\"");
    assert_eq!(line(found), line(expected.parse().unwrap()));
}
