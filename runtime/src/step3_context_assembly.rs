//! Step 3: nine sources become the context of the request.
//!
//! What the outside world contributes is read once per session and handed in as [`SourceTexts`];
//! placing it is pure.

pub(crate) mod source1_system_prompt;
mod source2_environment;
pub(crate) mod source3_instructions;
pub(crate) mod source4_path_rules;
pub mod source5_auto_memory;
pub(crate) mod source6_tool_metadata;
pub(crate) mod source7_conversation_history;
pub mod source8_tool_results;
pub(crate) mod source9_compact_summaries;

pub mod appended;
pub mod assemble;
mod counted;
pub(crate) mod frames;
pub(crate) mod loaded_skills;
pub mod look;
mod made_sources;
pub(crate) mod plan_mode;
pub mod restored;

use serde::{Deserialize, Serialize};

pub use assemble::Sources;
pub(crate) use assemble::{Assembled, assemble_grown};
pub use counted::CountedMessages;
pub use look::{FileContent, SourceMarks, SourcesLook, SourcesOrder, SourcesSeen};
pub use made_sources::{KeepSources, MadeSources};
pub use source1_system_prompt::{PromptFacts, SystemPromptParts};
pub(crate) use source8_tool_results::{in_reminder, reminder};

use crate::{hook::HookEvent, permission::Scope, run::facts::NAMES_HOOKS};

/// What was read from the world for the nine sources. Equal texts give equal contexts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceTexts {
    /// Replaces the built-in base segment of the system prompt.
    pub system_prompt: Option<String>,
    /// Follows the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether a system prompt that replaces the built-in one is all there is, with what is appended: no
    /// segment of the harness's own follows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bare: bool,
    /// Whether the segments of the system prompt that differ between users and days go into the first
    /// message of the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_static: bool,
    /// Facts about the machine and the working directory, by name, in order.
    pub environment: Vec<(String, String)>,
    /// Branch, short status and last commits; empty outside a repository.
    pub git: String,
    /// The working directory as a short tree, one entry a line; empty when it is not looked at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tree: String,
    /// Instruction files that hold from the start, in the order the model reads them.
    pub instructions: Vec<InstructionFile>,
    /// Rules with a `paths` header, waiting for a matching file to be read.
    pub path_rules: Vec<PathRule>,
    /// The index of the auto memory, already cut to its limits.
    pub auto_memory: Option<String>,
}

/// One instruction file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstructionFile {
    /// Scope that the file belongs to.
    pub scope: Scope,
    /// Absolute path of the file.
    pub path: String,
    /// With imports put in after it and block comments taken out.
    pub text: String,
}

impl InstructionFile {
    /// Makes a file of this text, imports put in and block comments taken out.
    pub fn new(scope: Scope, path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { scope, path: path.into(), text: text.into() }
    }
}

/// A rule that is shown once a file that it is for has been read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PathRule {
    /// Absolute path of the rule's file.
    pub path: String,
    /// Directory that the globs are relative to; absolute.
    pub base: String,
    /// Globs of the paths that trigger the rule.
    pub paths: Vec<String>,
    /// Text of the rule.
    pub text: String,
}

impl PathRule {
    /// Makes a rule of a file for the paths that these globs match, seen from the directory `base`.
    pub fn new(
        path: impl Into<String>,
        base: impl Into<String>,
        paths: Vec<String>,
        text: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), base: base.into(), paths, text: text.into() }
    }
}

/// Frames what hooks at an event add for the model: a text of the harness that names its origin. Sessions of revisions
/// before 7 (`NAMES_HOOKS`) had the bare text.
pub(crate) fn of_hook(event: HookEvent, revision: u32, text: &str) -> String {
    if NAMES_HOOKS <= revision {
        reminder(&format!("A {} hook adds:\n\n{text}", event.name()))
    } else {
        reminder(text)
    }
}

/// A reminder that begins with a line of the harness about the text.
fn titled(title: &str, text: &str) -> String {
    reminder(&[title, "\n\n", text].concat())
}

/// The first `max_chars` characters, less what the note takes that says so; nothing when not even
/// the note fits.
fn cut(text: &str, max_chars: usize) -> String {
    const NOTE: &str = "\n[cut to fit]";
    let n_chars = text.chars().count();
    if n_chars <= max_chars {
        return text.into();
    }
    if max_chars <= NOTE.len() {
        return String::new();
    }
    text.chars().take(max_chars - NOTE.len()).chain(NOTE.chars()).collect()
}
