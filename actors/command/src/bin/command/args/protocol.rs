//! Flags of the stream protocol, by which an Agent SDK drives the command.

use std::{num::NonZeroU64, path::PathBuf};

use clap::ValueEnum;

/// Flags that matter to a program that drives the command. Those without an effect here are accepted, and
/// the program reads that.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Protocol {
    /// What standard input is: `text`, or prompts and control requests as JSON lines (`stream-json`).
    #[arg(long, value_enum, default_value_t)]
    pub(crate) input_format: InputFormat,
    /// Accepted; with JSON lines everything is shown in any case.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Built-in tools that the session has: `default` for all, an empty text for none, or a list.
    /// The older tool `MultiEdit` is there only where this list or `--allowed-tools` names it.
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// Who answers questions about permissions: `stdio` for the program that drives the command, or a tool
    /// (`mcp__server__tool`) of an MCP server that runs in it or that --mcp-config names.
    #[arg(long, value_name = "NAME")]
    pub(crate) permission_prompt_tool: Option<String>,
    /// Go on with the newest session of this directory.
    #[arg(short = 'c', long = "continue")]
    pub(crate) goes_on: bool,
    /// Go on with the session of this id, or of this title where no other has it.
    #[arg(short = 'r', long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Go on under another id, with a copy of the session that is gone on with.
    #[arg(long)]
    pub(crate) fork_session: bool,
    /// Go on with the session from this message on; what came after it stays on disk, or is not copied.
    #[arg(long, value_name = "UUID")]
    pub(crate) resume_session_at: Option<String>,
    /// Only if all that comes after the message of --resume-session-at belongs to the run of this prompt.
    #[arg(long, value_name = "UUID")]
    pub(crate) resume_drops_turn: Option<String>,
    /// The system prompt, from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub(crate) system_prompt_file: Option<PathBuf>,
    /// Follows the system prompt, from a file; after the text of --append-system-prompt.
    #[arg(long, value_name = "FILE")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,
    /// Show texts and reasoning of sub-agents, too.
    #[arg(long)]
    pub(crate) forward_subagent_text: bool,
    /// The same as --permission-mode bypassPermissions.
    #[arg(long, conflicts_with = "permission_mode")]
    pub(crate) dangerously_skip_permissions: bool,
    /// Accepted; a program may change the mode to bypassPermissions in any case, unless settings rule that out.
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,
    /// Call no skills and commands of files, and offer none to the model.
    #[arg(long)]
    pub(crate) disable_slash_commands: bool,
    /// Tell the model date, directories and state of the repository in the conversation instead of the system prompt, which
    /// then is the same for every user of a provider's cache.
    #[arg(long = "exclude-dynamic-system-prompt-sections")]
    pub(crate) static_system_prompt: bool,
    /// Show the events of answers as they come, as `stream_event` lines.
    #[arg(long)]
    pub(crate) include_partial_messages: bool,
    /// Show hooks as they end.
    #[arg(long)]
    pub(crate) include_hook_events: bool,
    /// Show each prompt again once it is recorded.
    #[arg(long)]
    pub(crate) replay_user_messages: bool,
    /// Show the lines of transcripts again as they are written, as `transcript_mirror` lines.
    #[arg(long)]
    pub(crate) session_mirror: bool,
    /// How much the model thinks: low, medium, high, xhigh or max.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,
    /// Whether the model thinks: adaptive or disabled.
    #[arg(long, value_name = "MODE")]
    pub(crate) thinking: Option<String>,
    /// Tokens that the model may think for in each answer; 0 switches it off.
    #[arg(long, value_name = "N")]
    pub(crate) max_thinking_tokens: Option<u32>,
    /// Whether the reasoning comes summarized or omitted.
    #[arg(long, value_name = "HOW")]
    pub(crate) thinking_display: Option<String>,
    /// Tokens that the model is told its task may take; advice, and no limit.
    #[arg(long, value_name = "N")]
    pub(crate) task_budget: Option<NonZeroU64>,
    /// Names of beta features, separated by commas, for each provider of a chain, in the header or the body as it wants
    /// them.
    #[arg(long, value_name = "LIST")]
    pub(crate) betas: Option<String>,
    /// What the session may cost in this process, in US dollars; the run that costs more ends.
    #[arg(long, value_name = "USD")]
    pub(crate) max_budget_usd: Option<f64>,
    /// The schema that the answer is to fit, of an object; the result holds the value.
    #[arg(long, value_name = "JSON")]
    pub(crate) json_schema: Option<String>,
    /// Types of sub-agents by name, as JSON: `{"name": {"description": …, "prompt": …}}`.
    #[arg(long, value_name = "JSON")]
    pub(crate) agents: Option<String>,
    /// Directories of plug-ins, whose skills, commands, agents, hooks and MCP servers the session has as `plugin:name`.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,
    /// Whether the process of `ennead host` serves the session, where one is running for the same environment: `auto`, or
    /// `off`.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) host: HostChoice,
    /// What becomes of a run whose program is gone: `end` it, with all that it has started, or `finish` it, so that the
    /// transcript has its answer.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) on_disconnect: OnDisconnect,
    #[command(flatten)]
    pub(crate) log: Log,
}

/// Which process serves the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostChoice {
    /// The process of a host, if there is one that fits.
    Auto,
    /// The process that the program started.
    #[default]
    Off,
}

/// What becomes of a run whose program is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDisconnect {
    /// The run is interrupted, and all that it has started ends.
    #[default]
    End,
    /// The run goes on until it has its answer.
    Finish,
}

impl Protocol {
    /// Returns whether the flags say which session it is.
    pub(crate) fn chooses_session(&self) -> bool {
        self.goes_on
            || self.resume.is_some()
            || self.fork_session
            || self.resume_session_at.is_some()
            || self.resume_drops_turn.is_some()
    }

    /// Returns the flags among the given ones that only lines for a program can carry out.
    pub(crate) fn that_need_lines(&self) -> Vec<&'static str> {
        given_flags([
            (
                "--permission-prompt-tool stdio",
                self.permission_prompt_tool.as_deref() == Some("stdio"),
            ),
            ("--host auto", self.host == HostChoice::Auto),
        ])
    }

    /// Returns the flags among the given ones that have no effect where no lines are printed.
    pub(crate) fn without_lines(&self) -> Vec<&'static str> {
        given_flags([
            ("--include-partial-messages", self.include_partial_messages),
            ("--include-hook-events", self.include_hook_events),
            ("--replay-user-messages", self.replay_user_messages),
            ("--session-mirror", self.session_mirror),
            ("--forward-subagent-text", self.forward_subagent_text),
        ])
    }
}

fn given_flags<const N: usize>(flags: [(&'static str, bool); N]) -> Vec<&'static str> {
    flags.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
}

/// What becomes of the log of the process.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Log {
    /// Write what the process does to standard error: spans and log lines, never the text of messages. FILTER says which, as
    /// RUST_LOG has it; by default all of ennead.
    #[arg(long, value_name = "FILTER", num_args = 0..=1, require_equals = true)]
    debug: Option<Option<String>>,
    /// The same as --debug.
    #[arg(long)]
    debug_to_stderr: bool,
    /// Write it to the end of this file instead.
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_file: Option<PathBuf>,
}

impl Log {
    /// Returns what is logged, as `RUST_LOG` has it; `None`: nothing by these flags.
    pub(crate) fn filter(&self) -> Option<&str> {
        let is_wanted = self.debug_to_stderr || self.debug_file.is_some() || self.debug.is_some();
        is_wanted.then(|| self.debug.as_ref().and_then(Option::as_deref).unwrap_or("ennead=debug"))
    }

    /// Returns the flags that were given.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        given_flags([
            ("--debug", self.debug.is_some()),
            ("--debug-to-stderr", self.debug_to_stderr),
            ("--debug-file", self.debug_file.is_some()),
        ])
    }
}

/// What standard input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// A text that joins the prompt.
    #[default]
    Text,
    /// Prompts and control requests, one JSON object per line.
    StreamJson,
}
