//! Names of things, each its own type, so that one cannot be passed for another.
//!
//! All are opaque, cheap to clone and transparent on the wire.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{digest::Digest, entropy::EntropyStream, time::Timestamp};

/// Whether a byte may be one of a UUID in text form. Without a branch, so that many are looked at in one step.
#[inline]
pub(crate) fn is_uuid_byte(byte: u8) -> bool {
    byte.is_ascii_digit() | matches!(byte, b'a'..=b'f') | (byte == b'-')
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }
    };
}

id! {
    /// Names one conversation. A UUID in text form; the transcript file is named after it.
    SessionId
}
impl SessionId {
    /// Makes the name of a sub-agent where sessions are distinguished: its own name below that of the top session of
    /// its tree.
    pub fn of_agent(top: &SessionId, agent: &AgentId) -> Self {
        Self::new(format!("{top}/agent-{agent}"))
    }
}

id! {
    /// Names what one prompt set off. A UUID in text form.
    RunId
}
id! {
    /// Names one conversation line of a transcript. A UUID in text form.
    EntryId
}
impl EntryId {
    /// Names the line of a message for a sub-agent by the call that sends it, so that each process finds it by that call.
    #[doc(hidden)]
    pub fn of_message(agent: &AgentId, run: &RunId, call: &ToolUseId) -> Self {
        let stream = EntropyStream::from_seed(0).child(agent.as_str()).child(run.as_str());
        stream.child(call.as_str()).entry_id(Timestamp(0), "message", 0)
    }
}
id! {
    /// Names a sub-agent within the tree of its top session: 16 hexadecimal digits.
    AgentId
}
id! {
    /// Names a command of a session that goes on in the background: `bash_1`, `bash_2` and so on.
    ShellId
}
id! {
    /// Names a question about a call: `q_` and 32 hexadecimal digits.
    ApprovalId
}
id! {
    /// Names one tool call, as the model issued it.
    ToolUseId
}
impl ToolUseId {
    /// Makes the id of the `n`th call in the answer to this request, where its own id cannot be used. No two answers of
    /// a conversation share one, since their requests differ.
    pub(crate) fn made_up(request: Digest, n: usize) -> Self {
        let own = request.chain(Digest::of(&(n as u64).to_le_bytes())).to_string();
        Self::new(&*format!("call_{}", own.get(..24).unwrap_or(&own)))
    }
}
id! {
    /// Names a tool, as the model calls it: `^[a-zA-Z0-9_-]{1,64}$`.
    ToolName
}
id! {
    /// Names who owns sessions and limits. Empty where none was given.
    TenantId
}
impl Default for TenantId {
    fn default() -> Self {
        Self::new("")
    }
}
