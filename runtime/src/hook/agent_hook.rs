//! Handlers that have an agent verify what happens: a sub-agent that can read files answers as a model of a prompt does.

/// Milliseconds that an agent may take if its handler names no limit.
pub(super) const AGENT_TIMEOUT_MS: u64 = 60_000;

/// What the label of a handler begins with that has an agent verify.
pub(crate) const LABEL_OF_AGENTS: &str = "agent: ";

/// Lines of an answer at which a verdict may begin.
const MAX_BEGINNINGS: usize = 4;

/// Returns the verdict of an agent: all that it said, or what follows its words and begins with a line of its own.
pub(super) fn verdict_in(text: &str) -> &str {
    let text = text.trim();
    if text.starts_with('{') {
        return text;
    }
    let unfenced = text.strip_suffix("```").map_or(text, str::trim_end);
    let lines = unfenced.rmatch_indices("\n{").map(|(at, _)| &unfenced[at + 1..]);
    let is_whole = |it: &&str| serde_json::from_str::<serde_json::Value>(it).is_ok();
    lines.take(MAX_BEGINNINGS).find(is_whole).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: HKS-1
    #[test]
    fn verdict_is_the_end_of_what_an_agent_says_and_nothing_before_it() {
        for (text, expected) in [
            ("{\"ok\":true}", "{\"ok\":true}"),
            ("I looked.\n\n{\"ok\":false}\n", "{\"ok\":false}"),
            ("It says\n{\"ok\":true}\n\n{\n \"ok\": false\n}", "{\n \"ok\": false\n}"),
            ("{\"ok\":true}\nIt is so.", "{\"ok\":true}\nIt is so."),
            ("It says\n{\"ok\":true}\nbut no.", "It says\n{\"ok\":true}\nbut no."),
            ("{\"ok\":true}\n{\"ok\":false}", "{\"ok\":true}\n{\"ok\":false}"),
            ("```json\n{\"ok\":true}\n```", "{\"ok\":true}"),
            ("I looked.\n```\n{\"ok\":true}\n```", "{\"ok\":true}"),
        ] {
            assert_eq!(verdict_in(text), expected);
        }
    }
}
