//! Grep: lines by regular expression, with ripgrep's own engine, in process.
//!
//! Whatever the mode shows, the text ends with one line of totals over everything, in fixed words:
//! `Found N matching lines in M files (K files searched).`

use std::sync::Arc;

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::built_in::{BuiltIn, BuiltInCall, at_path, reading_spec};

mod page;
mod search;

pub(crate) struct Grep;

/// What to look for, where, and what to show of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepInput {
    /// A regular expression in ripgrep's syntax.
    pattern: String,
    /// The file or directory to search; the working directory if left out.
    #[expect(dead_code, reason = "the permit carries it, resolved")]
    path: Option<String>,
    /// Only files whose path matches, e.g. `*.rs` or `src/**/*.{ts,tsx}`; `!` in front excludes.
    glob: Option<String>,
    /// Only files of this type, e.g. rust, py, js.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// `files_with_matches` (default) lists paths, `content` shows lines, `count` gives the
    /// number of matching lines of each file.
    #[serde(default)]
    output_mode: Mode,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// Show line numbers in content mode; on unless set to false.
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    /// Show only what matches, not the whole line, in content mode.
    #[serde(default, rename = "-o")]
    only_matching: bool,
    /// Lines to show after each match in content mode.
    #[serde(rename = "-A")]
    after: Option<u32>,
    /// Lines to show before each match in content mode.
    #[serde(rename = "-B")]
    before: Option<u32>,
    /// Lines to show before and after each match in content mode.
    #[serde(rename = "-C")]
    around: Option<u32>,
    /// Lines shown before and after each match, as `-C`.
    context: Option<u32>,
    /// How many lines or paths to show; 250 if left out, 0 for all.
    head_limit: Option<u64>,
    /// How many lines or paths to skip first.
    #[serde(default)]
    offset: u64,
    /// Let matches span lines, and `.` match line ends.
    #[serde(default)]
    multiline: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

impl BuiltIn for Grep {
    type Input = GrepInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        let description = "Searches the content of files with a regular expression. Leaves out \
                what .gitignore names and binary files. Ends with totals over all matches, also \
                over those that are not shown. A literal brace needs a backslash: `interface\\{`.";
        reading_spec("Grep", description, input_schema, "path")
    }

    async fn call(call: BuiltInCall<GrepInput>, context: ToolContext) -> ToolOutcome {
        at_path(call, context, search::search).await
    }
}

#[cfg(test)]
mod tests;
