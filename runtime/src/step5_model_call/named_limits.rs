//! The numbers that servers name when a request does not fit.
//!
//! Every server has words of its own for three amounts: the window, the prompt and the highest
//! output ceiling. Forms of OpenAI and Azure, Anthropic, vLLM, llama.cpp, LM Studio, OpenRouter,
//! Mistral, Groq, Together and TGI, DeepSeek, Google, Amazon and xAI are read, also where a gateway
//! such as LiteLLM has put words in front of them. Ollama cuts prompts and names no numbers.

use crate::catalogue::{Catalogue, ModelFacts};
use crate::saturating::Saturating as _;

/// The smallest window that is believed, in tokens. Some servers name wrong ones: vLLM 0.15 names what
/// the ceiling leaves of it.
pub(crate) const LEAST_WINDOW: u64 = 1_024;

/// The lowest output ceiling that is asked for because a server named it, in tokens.
pub(crate) const LEAST_OUTPUT: u32 = 256;

/// Tokens that are left free between prompt and ceiling: servers count a prompt a little differently
/// from one request to the next.
const SLACK: u64 = 16;

/// Bytes of a message that are read; the numbers come early.
const MAX_READ: usize = 4_096;

/// What a message names; amounts in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedLimits {
    /// Input and output together.
    pub window: Option<u64>,
    /// What the input has.
    pub prompt: Option<u64>,
    /// The highest output ceiling.
    pub max_output: Option<u32>,
}

/// Where a number is written.
#[derive(Clone, Copy)]
enum At {
    /// Directly after these words.
    After(&'static str),
    /// Directly before these words.
    Before(&'static str),
}

use At::{After, Before};

const WINDOW: &[At] = &[
    After("maximum context length is "),
    After("maximum context length of "),
    After("maximum context length: "),
    After("context length is only "),
    After("context length of only "),
    After("available context size ("),
    After("n_ctx: "),
    After("max_new_tokens must be <= "),
    After("maximum prompt length is "),
    After("maximum number of tokens allowed ("),
    After("configured limit of "),
    Before(" maximum context length"),
    Before(" maximum"),
];

const PROMPT: &[At] = &[
    Before(" in the messages"),
    Before(" of text input"),
    Before(" input tokens"),
    Before(" inputs tokens"),
    Before(" prompt tokens"),
    After("messages resulted in "),
    After("prompt contains "),
    After("request contains "),
    After("prompt is too long: "),
    After("input token count ("),
    After("exceed context limit: "),
    After("n_keep: "),
    After("keep the first "),
    After("request ("),
];

/// Counted by some servers in addition to the messages.
const BESIDE: &[At] = &[Before(" in the functions"), Before(" of tool input")];

const OUTPUT: &[At] = &[
    After("supports at most "),
    After("less than or equal to "),
    After("valid range of max_tokens is [1, "),
    After("exceeds the model limit of "),
    Before(", which is the maximum allowed number of output tokens"),
];

impl NamedLimits {
    /// Reads the message of a server.
    pub fn read(message: &str) -> Self {
        let end = message.floor_char_boundary(MAX_READ);
        let text: String = message[..end]
            .chars()
            .filter(|it| !matches!(it, '`' | '\'' | '"'))
            .map(|it| it.to_ascii_lowercase())
            .collect();
        let find = |places: &[At]| places.iter().find_map(|it| it.number(&text));
        // "input length and max_tokens exceed context limit: 190000 + 20000 > 200000"
        let sum = text.split_once("exceed context limit: ").and_then(|it| it.1.split_once(" > "));
        let of_sum = sum.and_then(|(_, rest)| leading(rest));
        let beside: u64 = BESIDE.iter().filter_map(|it| it.number(&text)).sum();
        let names_output =
            ["max_tokens", "max_completion_tokens", "max_output_tokens", "maximum tokens"]
                .iter()
                .any(|it| text.contains(it));
        let output = find(OUTPUT).filter(|_| names_output);
        // "maxOutputTokens value of 32000 but the supported range is from 1 (inclusive) to 8193
        // (exclusive)"
        let range =
            After("1 (inclusive) to ").number(&text).filter(|_| text.contains("maxoutputtokens"));
        let output = output.or(range.and_then(|it| it.checked_sub(1)));
        Self {
            window: of_sum.or_else(|| find(WINDOW)).filter(|it| LEAST_WINDOW <= *it),
            prompt: find(PROMPT).map(|it| it.saturating_add(beside)),
            max_output: output.and_then(|it| u32::try_from(it).ok()).filter(|it| 0 < *it),
        }
    }

    /// Returns whether the refusal asks for a lower output ceiling.
    pub(crate) fn is_about_output(&self) -> bool {
        self.max_output.is_some() || self.window.zip(self.prompt).is_some_and(|(all, it)| it < all)
    }

    /// Returns the highest output ceiling with which the same request fits; `None` where nothing determines it, or
    /// where less than [`LEAST_OUTPUT`] is left.
    pub(crate) fn fitting_output(&self) -> Option<u32> {
        let left = self
            .window
            .zip(self.prompt)
            .map(|(all, prompt)| u32::saturating(all.saturating_sub(prompt).saturating_sub(SLACK)));
        let fits = [left, self.max_output].into_iter().flatten().min()?;
        (LEAST_OUTPUT <= fits).then_some(fits)
    }

    /// Returns the catalogue with what was named of a model; `None` when that is nothing new. Limits only become lower,
    /// and a session's own settings lie over them.
    pub fn apply_to(&self, known: &Catalogue, model: &str) -> Option<Catalogue> {
        let before = known.find(model).map(|it| ModelFacts::clone(it));
        let before =
            before.unwrap_or_else(|| ModelFacts { id: model.into(), ..Default::default() });
        let mut facts = before.clone();
        if let Some(window) = self.window.filter(|it| *it < facts.window) {
            facts.window = window;
            let part = |n: u64| u32::saturating(window / n);
            // Most of a small window is for the input.
            facts.max_output = facts.max_output.min(part(2));
            facts.default_output = facts.default_output.min(part(4));
        }
        if let Some(most) = self.max_output.filter(|it| LEAST_OUTPUT <= *it) {
            facts.max_output = facts.max_output.min(most);
        }
        facts.default_output = facts.default_output.min(facts.max_output);
        (facts != before).then(|| known.with_model(facts))
    }
}

impl At {
    fn number(self, text: &str) -> Option<u64> {
        match self {
            After(words) => {
                text.match_indices(words).find_map(|(at, _)| leading(&text[at + words.len()..]))
            }
            Before(words) => text.match_indices(words).find_map(|(at, _)| trailing(&text[..at])),
        }
    }
}

/// The number that a text begins with. A comma before three digits belongs to it.
fn leading(text: &str) -> Option<u64> {
    let end = text.find(|it: char| !it.is_ascii_digit() && it != ',').unwrap_or(text.len());
    digits(text[..end].trim_end_matches(','))
}

/// The number that a text ends with.
fn trailing(text: &str) -> Option<u64> {
    let front = text.trim_end_matches(|it: char| it.is_ascii_digit() || it == ',');
    digits(text[front.len()..].trim_start_matches(','))
}

fn digits(text: &str) -> Option<u64> {
    text.chars().filter(|it| *it != ',').collect::<String>().parse().ok()
}

#[cfg(test)]
mod tests;
