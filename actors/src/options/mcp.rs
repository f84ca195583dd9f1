//! What holds for the MCP servers of all sessions.

use std::time::Duration;

use ennead_runtime::mcp::spec::CallLimits;

/// Milliseconds until a server must be ready, by default.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long the opening of a session waits for its servers by default: programs mostly
/// start in less, and a person does not mind.
const WAIT: Duration = Duration::from_secs(2);

/// Characters that a token represents.
const CHARS_PER_TOKEN: u32 = 4;

/// Limits on MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpLimits {
    /// From the start of a server until it has listed its tools (`MCP_TIMEOUT`); 30 s.
    pub start: Duration,
    /// How long the opening of a session waits for all its servers (`ENNEAD_MCP_WAIT`, in
    /// milliseconds); 2 s. One that has not answered then goes on starting, an alert says so, and its
    /// tools join the session at the beginning of the next turn after it has answered.
    pub wait: Duration,
    /// Calls: no limit of time (`MCP_TOOL_TIMEOUT`), 100,000 characters (`MAX_MCP_OUTPUT_TOKENS`,
    /// four to a token).
    pub calls: CallLimits,
}

impl McpLimits {
    /// Reads the limits from variables of the environment. A variable that is not a number above 0 is ignored.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok().filter(|it| 0 < *it);
        let time = |name: &str, usual| {
            number(name).map_or(usual, |ms| Duration::from_millis(u64::from(ms)))
        };
        let calls = CallLimits::default();
        let tokens = number("MAX_MCP_OUTPUT_TOKENS");
        Self {
            start: time("MCP_TIMEOUT", START_LIMIT),
            wait: time("ENNEAD_MCP_WAIT", WAIT),
            calls: CallLimits::new(
                number("MCP_TOOL_TIMEOUT").map(u64::from),
                tokens.map_or(calls.result_chars, |it| it.saturating_mul(CHARS_PER_TOKEN)),
            ),
        }
    }
}

impl Default for McpLimits {
    /// The usual ones, whatever the environment says.
    fn default() -> Self {
        Self::from_variables(|_| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_what_the_variables_say_or_the_usual_ones() {
        let usual = McpLimits::from_variables(|_| None);
        assert_eq!((usual.start, usual.wait), (START_LIMIT, WAIT));
        assert_eq!(usual.calls, CallLimits::default());
        assert_eq!(McpLimits::from_variables(|_| Some("soon".into())), usual);
        assert_eq!(McpLimits::from_variables(|_| Some("0".into())), usual);
        let limits = McpLimits::from_variables(|_| Some("500".into()));
        assert_eq!(
            (limits.start, limits.wait),
            (Duration::from_millis(500), Duration::from_millis(500))
        );
        assert_eq!(limits.calls, CallLimits::new(Some(500), 2000));
    }
}
