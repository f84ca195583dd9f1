//! The flags and sub-commands of the command line.

mod formats;
mod in_directory;
mod protocol;
mod serve;
mod vault;

use std::{ffi::OsString, num::NonZeroU32, path::PathBuf};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum, error::ErrorKind};
use ennead_command::{
    exit::{self, Exit, Failure},
    stream_json::COMPATIBLE_VERSION,
};

use crate::show;
pub(crate) use formats::{Durability, OutputFormat, TableFormat};
pub(crate) use protocol::{HostChoice, InputFormat, Log, OnDisconnect, Protocol};
pub(crate) use serve::{Serve, ServeCommand, TokenCommand};
pub(crate) use vault::{VaultArgs, VaultCommand};

/// Hosts many agents in one process.
///
/// `ennead demo` shows it at work on a directory of yours, without a key. `ennead -p "…"` runs one
/// prompt against ANTHROPIC_BASE_URL with ANTHROPIC_API_KEY, or against the embedded simulated
/// model when neither is set. With ENNEAD_PROVIDER=openai-chat (Chat Completions, also of compatible
/// and local servers) or ENNEAD_PROVIDER=openai-responses it asks OPENAI_BASE_URL
/// (https://api.openai.com/v1 unless set) with OPENAI_API_KEY; name a model there with --model.
#[derive(Debug, Parser)]
#[command(
    name = "ennead",
    after_help = exit::HELP,
    disable_version_flag = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    /// Print the version and exit.
    #[arg(short = 'v', visible_short_alias = 'V', long)]
    pub(crate) version: bool,
    #[command(flatten)]
    pub(crate) print: Print,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags of a run that answers one prompt.
#[derive(Debug, clap::Args)]
pub(crate) struct Print {
    /// Run one prompt and print its result; what is piped in is appended to it in a frame that names its origin, and alone is the prompt (at most 10 MB).
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1)]
    pub(crate) print: Option<Option<String>>,
    /// The prompt, when it does not follow -p.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// `text`: the answer; `json`: one object with the answer, what it cost and how it ended;
    /// `stream-json`: every message as it comes, and that object at the end, as JSON lines.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
    /// Model that is asked, by its name or an alias.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Models to turn to when the first cannot answer: at most three, separated by commas.
    #[arg(long, value_name = "NAMES")]
    pub(crate) fallback_model: Option<String>,
    /// Turns that the run may take.
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<NonZeroU32>,
    /// How the gate decides where no rule does: plan, default, acceptEdits, auto,
    /// dontAsk, bypassPermissions.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Rules that allow; separated by commas or blanks, repeatable.
    #[arg(long, visible_alias = "allowedTools", value_name = "RULES", num_args = 1..)]
    pub(crate) allowed_tools: Vec<String>,
    /// Rules that deny; separated by commas or blanks, repeatable.
    #[arg(long, visible_alias = "disallowedTools", value_name = "RULES", num_args = 1..)]
    pub(crate) disallowed_tools: Vec<String>,
    /// Replaces the built-in system prompt.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) system_prompt: Option<String>,
    /// Follows the system prompt.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) append_system_prompt: Option<String>,
    /// Names the session, a UUID; the name of an earlier one goes on with it, but for stream-json, which
    /// goes on by --resume.
    #[arg(long, value_name = "UUID")]
    pub(crate) session_id: Option<String>,
    /// Settings with the rank of flags: a file, or JSON.
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) settings: Option<String>,
    /// Trust this directory: its hooks and MCP servers start, and its settings hold as yours do.
    /// Without it they do once you have trusted the directory in an interactive program.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Settings and instruction files that are read: user, project, local; all by default.
    /// Hooks of a source that is named here start, but can only deny, ask and add context; where prompts come as
    /// stream-json, those of all sources do by default, unless ENNEAD_UNTRUSTED=1.
    #[arg(long, value_name = "LIST")]
    pub(crate) setting_sources: Option<String>,
    /// MCP servers whose tools the session has: files or JSON, `{"mcpServers": {…}}`. Those of
    /// `.mcp.json` are used, too, where the directory is trusted or hooks of `project` start.
    #[arg(long, value_name = "FILE|JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,
    /// Use the MCP servers of --mcp-config only.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,
    /// Further directories that count as workspace.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Where transcripts go; `.transcripts` in the working directory by default.
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,
    /// How often lines are forced to disk.
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) durability: Option<Durability>,
    #[command(flatten)]
    pub(crate) protocol: Protocol,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Survey a directory with a coordinator and sub-agents, on the embedded simulated model.
    Demo(DemoArgs),
    /// Print the nine steps of each turn of a transcript.
    Trace {
        /// Path of the transcript.
        file: PathBuf,

        /// Write a page instead that shows the transcript and those of its sub-agents offline, in one file: PAGE, or the name of the
        /// transcript with the ending html, in this directory
        #[arg(long, value_name = "PAGE", num_args = 0..=1, require_equals = true)]
        html: Option<Option<PathBuf>>,
    },
    /// Check transcripts and the sidechains that belong to them: chain, steps, decisions, results, ends.
    Verify {
        /// Paths of the transcripts.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,

        /// A secret key of `ennead vault keygen`: with what the vault next to a transcript holds, sessions whose model was
        /// shown secrets are replayed byte for byte; repeatable
        #[arg(long = "vault-key", value_name = "KEY")]
        vault_keys: Vec<PathBuf>,
    },
    /// Keys of the vault, which keeps sealed what was taken out of transcripts.
    Vault(VaultArgs),
    /// Serve a playbook as a model server on 127.0.0.1.
    Simulate(Simulate),
    /// Host sessions of many tenants over HTTP, with a page to watch them.
    Serve(Box<Serve>),
    /// Host the sessions of programs that start `ennead` with `--host auto`, all in this process.
    ///
    /// Listens on a socket that only processes of this user can reach, below $XDG_RUNTIME_DIR or ~/.claude, prints its path,
    /// and ends with Ctrl-C. A program is hosted where its version and environment are those of this process.
    Host,
    /// Measure what the harness itself costs: time of a turn and its steps, memory of a session,
    /// how long an interrupt takes.
    ///
    /// Everything runs in this process on the simulated model, whose own time is taken off.
    /// Sessions read no settings and no instruction files. Figures to compare with others are those
    /// of the profile by which releases are built: cargo run --profile dist -- bench.
    Bench(BenchArgs),
    /// Print what the harness would do and why.
    Doctor(Doctor),
    /// Walk recorded sessions again with one shaper left out, and print what each is worth.
    #[command(name = "eval")]
    Evaluate(Evaluate),
    /// Print the settings that hold in this directory.
    Config(Config),
    /// Print the newest prompts that were typed at a terminal, of all directories.
    History(HistoryArgs),
    /// Run the case files of a directory (layout of tests/cases) and print passes and misses.
    Conformance {
        /// Directory that holds the case files.
        dir: PathBuf,
        /// Write one JSON line per case, {file, id, got}.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Number of prompts to print.
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    pub(crate) number: usize,
    /// Only those of sessions in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Print one JSON object per prompt.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Evaluate {
    /// Directory of transcripts, or one transcript.
    pub(crate) dir: PathBuf,
    /// Stage that is left out, repeatable; each of the five in turn by default.
    #[arg(long, value_name = "STAGE")]
    pub(crate) ablate: Vec<String>,
    /// Draw the requests of the longest session into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) chart: Option<PathBuf>,
    /// `text`: tables in Markdown; `json`: one object.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: TableFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Directory to survey.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Host this many surveys at once and print what hosting them costs, apart from their tools and
    /// the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) agents: Option<u32>,
    /// Where transcripts go; DIR/.transcripts, or a temporary directory where DIR is read-only.
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,
    /// Run the survey inside a server, whose page shows it live; its address is printed. Ends with Ctrl-C.
    #[arg(long, conflicts_with = "agents")]
    pub(crate) serve: bool,
    /// How the agents are shown on standard error: lines, or a table that is drawn again.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) view: ViewChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewChoice {
    /// Live on a terminal, plain otherwise.
    #[default]
    Auto,
    Plain,
    Live,
    None,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Number of turns from which each figure about turns and steps is made.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) turns: u32,
    /// Number of idle sessions that are opened. As many run prompts at once, but at most 64.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sessions: u32,
    /// Number of interrupts of each kind.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) interrupts: u32,
    /// Measure instead what tenants of one server feel of others that misbehave: the sessions are those of this
    /// number of tenants, of which a tenth misbehave.
    #[arg(long, value_name = "N", conflicts_with = "interrupts", value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub(crate) tenants: Option<u32>,
    /// Measure instead what a server takes that knows this number of sessions, none of which is an actor.
    #[arg(long, value_name = "N", conflicts_with_all = ["interrupts", "tenants", "transcript"], value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub(crate) passive: Option<u32>,
    /// Measure instead how a session goes on whose transcript has this number of megabytes, without an index of it
    /// and with one.
    #[arg(long, value_name = "MB", conflicts_with_all = ["interrupts", "tenants"], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) transcript: Option<u32>,
    /// Measure instead what a turn costs after conversations of these lengths, in kilobytes.
    #[arg(long, value_name = "KB,KB", conflicts_with_all = ["interrupts", "tenants", "passive", "transcript"], value_delimiter = ',', num_args = 0..=1, default_missing_value = "10,100,600,5000", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub(crate) history: Vec<u32>,
    /// The directory of what another process has made to be measured.
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) made: Option<PathBuf>,
    /// Print one JSON object; its times are microseconds.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Config {
    /// Print each value with the file or flag that it comes from, and those that it replaces.
    #[arg(long, required = true)]
    pub(crate) explain: bool,
    /// `text`: a line for each value; `json`: the same for programs.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: TableFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// What is done about each class of failure of a model call: the table that decides.
    #[arg(long)]
    pub(crate) recovery: bool,
    /// What this kernel gives to confine commands with, whether `bwrap` works here, by which of them commands are confined,
    /// and what is reached with it.
    #[arg(long)]
    pub(crate) sandbox: bool,
    /// How far estimates of tokens are from what the model server counts for this model. Sends nine short texts to its
    /// endpoint that counts, which costs nothing.
    #[arg(long, value_name = "MODEL")]
    pub(crate) tokens: Option<String>,
    /// `text`: a table; `json`: the same for programs.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: TableFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Simulate {
    /// The playbook: a file, or the name of an embedded one (default, survey).
    #[arg(long, value_name = "FILE", default_value = "default")]
    pub(crate) playbook: String,
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
}

/// Reads the command line. `None`: what was asked for has been printed.
///
/// # Errors
///
/// One line on what is wrong with it.
pub(crate) fn read() -> Result<Option<Args>, Failure> {
    read_from(std::env::args_os())
}

/// Reads the command line of another process, the name of the program in front; `None` where it is not one.
pub(crate) fn parse_from(arguments: impl IntoIterator<Item = String>) -> Option<Args> {
    Args::try_parse_from(arguments).ok()
}

/// Reads a command line, the name of the program in front, as [`read`] does.
pub(crate) fn read_from(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Option<Args>, Failure> {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            show::result(&error.render().to_string())?;
            return Ok(None);
        }
        Err(error) => return Err(Failure::new(Exit::BadInput, in_one_line(&error))),
    };
    if args.version {
        // The first is what programs that drive the command compare.
        show::result(&format!("{COMPATIBLE_VERSION} (ennead {})", env!("CARGO_PKG_VERSION")))?;
        return Ok(None);
    }
    let is_driven = args.print.protocol.input_format == InputFormat::StreamJson;
    match (&args.command, &args.print.print, &args.print.prompt) {
        (None, None, None) if is_driven => Ok(Some(args)),
        (None, None, None) => {
            Err(Failure::new(Exit::BadInput, "nothing to do; see `ennead --help`"))
        }
        (None, None, Some(word)) => {
            let command = Args::command();
            let names: Vec<&str> = command.get_subcommands().map(|it| it.get_name()).collect();
            let what = format!(
                "there is no sub-command `{word}` (there are {}); a prompt follows -p",
                names.join(", ")
            );
            Err(Failure::new(Exit::BadInput, what))
        }
        (None, Some(Some(_)), Some(second)) => {
            let what = format!("a second prompt: `{second}`; put quotes around the whole prompt");
            Err(Failure::new(Exit::BadInput, what))
        }
        _ => Ok(Some(args)),
    }
}

/// What clap says, without its usage.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\n  tip:").next().unwrap_or_default();
    let text = text.split("\n\nFor more").next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("{}; see `ennead --help`", words.join(" "))
}

#[cfg(test)]
mod tests;
