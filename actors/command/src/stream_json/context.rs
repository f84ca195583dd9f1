//! How much of the model's window the last request took, and what took it.

use std::{collections::BTreeMap, sync::Arc};

use ennead_runtime::{catalogue::Catalogue, tokens::Tokens};
use serde_json::{Value, json};

use super::results::SessionFacts;

/// Categories of `get_context_usage`: the name, the color, and the sources by their places among the nine.
/// What of a request is in none of these sources is messages.
const CATEGORIES: [(&str, &str, &[usize]); 4] = [
    ("System prompt", "blue", &[0]),
    ("Environment", "cyan", &[1]),
    ("Memory files", "orange", &[2, 3, 4]),
    ("Tools", "purple", &[5]),
];

/// What is known of the last request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextSize {
    /// By what the provider counted, else by the estimate.
    total: u64,
    /// Estimates for the nine sources.
    sources: [u64; 9],
    /// Files of instructions that the model reads: whose each is, and the estimate for it.
    files: BTreeMap<Arc<str>, (&'static str, Tokens)>,
}

impl ContextSize {
    /// Notes that a request was assembled.
    pub(crate) fn assembled(&mut self, total: Tokens, sources: [Tokens; 9]) {
        (self.total, self.sources) = (total.0, sources.map(|it| it.0));
    }

    /// Notes a file of instructions that the model reads from now on.
    pub(crate) fn loaded(&mut self, path: &Arc<str>, memory_type: &'static str, tokens: Tokens) {
        self.files.insert(Arc::clone(path), (memory_type, tokens));
    }

    /// Notes that a request was answered, and counted by the provider.
    pub(crate) fn answered(&mut self, total: Tokens) {
        self.total = total.0;
    }

    /// Answers `get_context_usage`. The parts add up to the total, which they are scaled to where the provider counted
    /// less than the estimate.
    pub(crate) fn usage(&self, facts: &SessionFacts) -> Value {
        let known = Catalogue::built_in();
        let window = known.find(&facts.model).map_or(0, |it| it.window);
        let percentage = self.total.saturating_mul(100).checked_div(window).unwrap_or(0);
        let mut categories: Vec<Value> = self
            .parts()
            .into_iter()
            .map(|(name, color, tokens)| json!({"name": name, "tokens": tokens, "color": color}))
            .collect();
        let free = window.saturating_sub(self.total);
        categories.push(json!({"name": "Free space", "tokens": free, "color": "gray"}));
        let agent = |(name, text): &(String, String)| {
            let tokens = Tokens::from_chars((name.chars().count() + text.chars().count()) as u64);
            json!({"agentType": name, "tokens": tokens})
        };
        let file = |(path, (kind, tokens)): (&Arc<str>, &(&str, Tokens))| json!({"path": **path, "type": kind, "tokens": tokens});
        let server_of = |tool: &str| {
            let (server, _) = tool.strip_prefix("mcp__")?.split_once("__")?;
            Some(json!({"name": tool, "serverName": server, "isLoaded": true}))
        };
        json!({
            "categories": categories,
            "totalTokens": self.total,
            "maxTokens": window,
            "rawMaxTokens": window,
            "percentage": percentage,
            "model": facts.model,
            "isAutoCompactEnabled": true,
            "memoryFiles": self.files.iter().map(file).collect::<Vec<_>>(),
            "mcpTools": facts.offered_tools().into_iter().filter_map(server_of).collect::<Vec<_>>(),
            "agents": facts.agents.iter().map(agent).collect::<Vec<_>>(),
            "gridRows": [],
        })
    }

    fn parts(&self) -> Vec<(&'static str, &'static str, u64)> {
        let of = |places: &[usize]| places.iter().map(|it| self.sources[*it]).sum::<u64>();
        let mut parts: Vec<_> =
            CATEGORIES.iter().map(|(name, color, places)| (*name, *color, of(places))).collect();
        let sum: u64 = parts.iter().map(|(.., tokens)| tokens).sum();
        if self.total < sum {
            let scaled = |it: u64| u128::from(it) * u128::from(self.total) / u128::from(sum);
            parts.iter_mut().for_each(|(.., it)| *it = u64::try_from(scaled(*it)).unwrap_or(*it));
        }
        let sum: u64 = parts.iter().map(|(.., tokens)| tokens).sum();
        parts.push(("Messages", "green", self.total.saturating_sub(sum)));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(total: u64, expected: [u64; 5]) {
        let mut size = ContextSize::default();
        size.assembled(Tokens(1), [40, 10, 5, 3, 2, 60, 900, 900, 0].map(Tokens));
        size.answered(Tokens(total));
        let parts: Vec<u64> = size.parts().into_iter().map(|(.., it)| it).collect();
        assert_eq!(parts, expected);
        assert_eq!(parts.iter().sum::<u64>(), total);
    }

    // REQ: SUR-3
    #[test]
    fn parts_add_up_to_what_the_provider_counted() {
        check(1000, [40, 10, 10, 60, 880]);
        check(120, [40, 10, 10, 60, 0]);
        check(60, [20, 5, 5, 30, 0]);
        check(0, [0; 5]);
    }
}
