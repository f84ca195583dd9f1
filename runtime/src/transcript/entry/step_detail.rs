//! What each of the nine steps leaves in its record. One shape per step, distinguished by its fields.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Stored;
use crate::tokens::Tokens;

/// What a step found or decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum StepDetail {
    /// What step 1, settings resolution, found.
    Settings {
        /// The layers, JSON text.
        layers: Stored,
        /// Where they came from, strongest first.
        sources: Vec<String>,
        /// How many warnings there were.
        warnings: u32,
        /// What is known about the models that the settings name, JSON text; only when it is not as
        /// before in the session. It is recorded because another version may know something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        models: Option<Stored>,
        /// Tools of MCP servers that joined before this turn, a JSON list as in
        /// [`SessionFacts::tools`](crate::run::facts::SessionFacts::tools); only when some did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Stored>,
        /// Settings files whose changes hooks refused: `project_settings`, a blank, the path.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
    },
    /// What step 2, state initialization, found.
    State {
        /// Messages in the conversation.
        messages: u64,
        /// Model calls that failed so far in this session.
        session_retries: u32,
        /// Tokens of the run before this turn, sub-agents included.
        used: u64,
    },
    /// What step 3, context assembly, found.
    Context {
        /// The source texts, JSON text.
        texts: Stored,
        /// Characters that each of the nine sources contributes, in order.
        sizes: [u64; 9],
        /// The estimate for the whole request.
        tokens: Tokens,
    },
    /// What step 4, context shaping, did.
    Shaping {
        /// The estimate for the request as it goes out.
        tokens: Tokens,
        /// Stages that changed something.
        fired: u32,
        /// What is left of the context budget.
        remaining: Tokens,
    },
    /// What step 5, the model call, did.
    Model {
        /// Number of attempts, failed ones included.
        attempts: u32,
        /// `ok`, or the code of the failure.
        outcome: String,
        /// The estimate for the request that was answered, as made without reports: with the reported
        /// usage it shows how far off estimates are for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        estimated: Option<Tokens>,
        /// The estimate for request and answer together, by the kinds of characters and by characters
        /// alone: what the reported usage is held against.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        anchor: Option<(Tokens, Tokens)>,
    },
    /// What step 6, dispatch, decided.
    Dispatch {
        /// Tool uses in the answer.
        calls: u32,
        /// Those refused for their number, name or input.
        refused: u32,
    },
    /// What step 7, the permission gate, decided.
    Gate {
        /// Calls that may run.
        allowed: u32,
        /// Calls that may not.
        denied: u32,
    },
    /// What step 8, tool execution, did.
    Execution {
        /// Results that are not errors.
        succeeded: u32,
        /// Results that are one.
        failed: u32,
    },
    /// What step 9, the stop check, decided.
    Stop {
        /// Whether the run is over.
        done: bool,
        /// Why, if it is.
        reason: Option<String>,
    },
    /// The step had nothing to do.
    Nothing {
        /// The reason, in words.
        nothing: Cow<'static, str>,
    },
}
