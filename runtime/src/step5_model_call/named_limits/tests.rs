//! What servers were seen to say, and what is made of it.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

/// `(window, prompt, max_output)` and the ceiling that fits; 0 represents nothing.
#[track_caller]
fn check(message: &str, named: (u64, u64, u32), fits: u32) {
    let read = NamedLimits::read(message);
    let or_0 = |it: Option<u64>| it.unwrap_or(0);
    let found = (or_0(read.window), or_0(read.prompt), read.max_output.unwrap_or(0));
    assert_eq!((found, read.fitting_output().unwrap_or(0)), (named, fits), "{message}");
}

// REQ: MDL-9
#[test]
fn ceilings_are_read_in_the_words_of_every_server() {
    // OpenAI, Azure
    check(
        "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, \
         whereas you provided 32000.",
        (0, 0, 16_384),
        16_384,
    );
    // Anthropic
    check(
        "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for \
         claude-opus-4-1",
        (0, 0, 32_000),
        32_000,
    );
    // Groq
    check("`max_tokens` must be less than or equal to `8192`", (0, 0, 8_192), 8_192);
    // DeepSeek
    check(
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        (0, 0, 8_192),
        8_192,
    );
    // Amazon
    check(
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum \
         tokens value that is lower than 4096.",
        (0, 0, 4_096),
        4_096,
    );
    // Google
    check(
        "Unable to submit request because it has a maxOutputTokens value of 32000 but the supported \
         range is from 1 (inclusive) to 8193 (exclusive).",
        (0, 0, 8_192),
        8_192,
    );
    check("temperature must be less than or equal to 2", (0, 0, 0), 0);
}

// REQ: MDL-9
#[test]
fn windows_and_prompts_are_read_in_the_words_of_every_server() {
    let openai = "This model's maximum context length is 8192 tokens. However, you requested 34254 \
                  tokens (2254 in the messages, 32000 in the completion). Please reduce the length.";
    check(openai, (8_192, 2_254, 0), 5_922);
    // LiteLLM
    let wrapped = "litellm.ContextWindowExceededError: litellm.BadRequestError: \
                   ContextWindowExceededError: OpenAIException - ";
    check(&format!("{wrapped}{openai}"), (8_192, 2_254, 0), 5_922);
    check(
        &format!(
            "{wrapped}This model's maximum context length is 1047576 tokens. However, your messages \
             resulted in 1129124 tokens."
        ),
        (1_047_576, 1_129_124, 0),
        0,
    );
    check(
        "This model's maximum context length is 8,192 tokens. However, you requested 9,000 tokens \
         (2,000 in the messages, 1,000 in the functions, and 6,000 in the completion).",
        (8_192, 3_000, 0),
        5_176,
    );
    // vLLM, old and new
    check(
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context \
         length is 4096 tokens and your request has 900 input tokens (32000 > 4096 - 900).",
        (4_096, 900, 0),
        3_180,
    );
    check(
        "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens \
         plus 2045 'max_tokens'. Please reduce one or the other.",
        (2_048, 8, 0),
        2_024,
    );
    check(
        "You passed 900 input tokens and requested 32000 output tokens. However, the model's context \
         length is only 4096 tokens, resulting in a maximum input length of 3196 tokens.",
        (4_096, 900, 0),
        3_180,
    );
    // A window of 3 tokens is not a window.
    check(
        "This model's maximum context length is 3 tokens. However, your request has 8 input tokens.",
        (0, 8, 0),
        0,
    );
    // OpenRouter
    check(
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40500 \
         tokens (8000 of text input, 500 of tool input, 32000 in the output).",
        (32_768, 8_500, 0),
        24_252,
    );
    // Mistral
    check(
        "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum \
         context length",
        (32_768, 33_000, 0),
        0,
    );
    // Together, TGI
    check(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 2000 \
         `inputs` tokens and 32000 `max_new_tokens`",
        (4_097, 2_000, 0),
        2_081,
    );
    // llama.cpp, LM Studio
    check(
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        (4_096, 5_000, 0),
        0,
    );
    check(
        "The number of tokens to keep from the initial prompt is greater than the context length \
         (n_keep: 5000>= n_ctx: 4096)",
        (4_096, 5_000, 0),
        0,
    );
    // Anthropic
    check("prompt is too long: 209000 tokens > 200000 maximum", (200_000, 209_000, 0), 0);
    check(
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input \
         length or `max_tokens` and try again",
        (200_000, 190_000, 0),
        9_984,
    );
    // OpenAI, Azure
    check(
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 \
         tokens. Please reduce the length of the messages.",
        (272_000, 300_123, 0),
        0,
    );
    // Google, xAI
    check(
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        (1_048_576, 1_200_000, 0),
        0,
    );
    check(
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        (131_072, 200_000, 0),
        0,
    );
}

#[test]
fn what_names_nothing_or_too_much_is_left_alone() {
    check("", (0, 0, 0), 0);
    check("the request exceeds the available context size, try increasing it", (0, 0, 0), 0);
    check("supports at most 99999999999999999999999 max_tokens", (0, 0, 0), 0);
    check("maximum context length is é8192", (0, 0, 0), 0);
    check("é8192 in the messages", (0, 8_192, 0), 0);
    check(&format!("{}maximum context length is 8192", " ".repeat(MAX_READ)), (0, 0, 0), 0);
}

// REQ: MDL-9, CTX-4
#[test]
fn catalogue_learns_lower_limits_once_and_never_higher_ones() {
    let known = Catalogue::built_in();
    let window = |window| NamedLimits { window: Some(window), ..NamedLimits::default() };
    let learned = window(4_096).apply_to(&known, "mine").unwrap();
    let facts = learned.find("mine").unwrap();
    assert_eq!((facts.window, facts.max_output, facts.default_output), (4_096, 2_048, 1_024));
    assert_eq!(window(4_096).apply_to(&learned, "mine"), None);
    assert_eq!(window(8_192).apply_to(&learned, "mine"), None);
    let output = NamedLimits { max_output: Some(16_384), ..NamedLimits::default() };
    let facts = output.apply_to(&known, "vendor/other").unwrap();
    let facts = facts.find("vendor/other").unwrap();
    assert_eq!((facts.window, facts.max_output, facts.default_output), (200_000, 16_384, 16_384));
    assert_eq!(NamedLimits::default().apply_to(&known, "mine"), None);
    // What is known besides stays.
    let opus = window(100_000).apply_to(&known, "claude-opus-5").unwrap();
    let facts = opus.find("claude-opus-5").unwrap();
    assert!(facts.prices.is_some() && facts.window == 100_000 && facts.default_output == 25_000);
}
