//! Estimates of tokens, held against counts of a tokenizer.

use super::{corpus::CORPUS, *};

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

/// Tokens of the texts of the corpus, in its order, in the encoding `o200k_base`.
const COUNTED: [u64; 9] = [162, 159, 122, 145, 161, 180, 202, 279, 640];

// REQ: CTX-8
#[test]
fn estimates_are_off_by_what_the_page_on_context_says() {
    let mut table = String::from(
        "| Text | characters | tokens | four characters each | error | by kinds | error |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (text, tokens) in CORPUS.iter().zip(COUNTED) {
        let (name, chars) = (text.name, text.chars());
        let error = |Tokens(estimate): Tokens| {
            let sign = if tokens <= estimate { '+' } else { '-' };
            let percent = (estimate.abs_diff(tokens) * 200 + tokens) / (2 * tokens);
            (format!("{estimate} | {sign}{percent} %"), percent)
        };
        let (before, _) = error(Tokens::from_chars(chars));
        let (after, percent) = error(text.estimate());
        assert!(percent <= 15, "{name}: {after}");
        table.push_str(&format!("| {name} | {chars} | {tokens} | {before} | {after} |\n"));
    }
    assert!(include_str!("../../../docs/context.md").contains(&table), "{table}");
}
