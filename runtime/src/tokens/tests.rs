//! Estimates of tokens, held against counts of a tokenizer.

use super::*;

#[test]
fn estimate_rounds_up() {
    assert_eq!(Tokens::from_chars(0), Tokens(0));
    assert_eq!(Tokens::from_chars(4), Tokens(1));
    assert_eq!(Tokens::from_chars(5), Tokens(2));
}

#[test]
fn context_size_counts_cached_input() {
    let usage = Usage { input_tokens: 50, cache_read_input_tokens: 100_000, ..Usage::default() };
    assert_eq!(usage.context(), Tokens(100_050));
}

/// Texts by what they are, with their tokens in the encoding `o200k_base`.
const CORPUS: [(&str, &str, u64); 9] = [
    ("English", include_str!("corpus/english.txt"), 162),
    ("German", include_str!("corpus/german.txt"), 159),
    ("Russian", include_str!("corpus/russian.txt"), 122),
    ("Chinese", include_str!("corpus/chinese.txt"), 145),
    ("Japanese", include_str!("corpus/japanese.txt"), 161),
    ("Rust", include_str!("corpus/rust.txt"), 180),
    ("JSON", include_str!("corpus/json.txt"), 202),
    ("a log", include_str!("corpus/log.txt"), 279),
    ("base64", include_str!("corpus/base64.txt"), 640),
];

// REQ: CTX-8
#[test]
fn estimates_are_off_by_what_the_page_on_context_says() {
    let mut table = String::from(
        "| Text | characters | tokens | four characters each | error | by kinds | error |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (name, text, tokens) in CORPUS {
        let size = Size::of(text);
        let error = |Tokens(estimate): Tokens| {
            let sign = if tokens <= estimate { '+' } else { '-' };
            let percent = (estimate.abs_diff(tokens) * 200 + tokens) / (2 * tokens);
            (format!("{estimate} | {sign}{percent} %"), percent)
        };
        let (before, _) = error(Tokens::from_chars(size.chars));
        let (after, percent) = error(Estimate::of(size).by_class());
        assert!(percent <= 15, "{name}: {after}");
        let chars = size.chars;
        table.push_str(&format!("| {name} | {chars} | {tokens} | {before} | {after} |\n"));
    }
    assert!(include_str!("../../../docs/context.md").contains(&table), "{table}");
}
