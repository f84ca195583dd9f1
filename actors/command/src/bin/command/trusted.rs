//! `--trust`, `--setting-sources` and what the user recorded: how far a directory is trusted.

use std::path::Path;

use ennead::{
    Environment, SessionOptions,
    internal::{unset_until_trusted, waiting_for_trust},
    permission::{SettingSources, Trust},
};
use ennead_command::exit::{Exit, Failure};

use crate::{
    args::{InputFormat, Print},
    program, show,
};

/// Has a program name the sources of settings whose hooks and servers start.
const UNTRUSTED: &str = "ENNEAD_UNTRUSTED";

/// Sets in the options what is read and how far it is trusted.
///
/// # Errors
///
/// When there is no such source of settings.
pub(crate) fn apply(options: &mut SessionOptions, args: &Print) -> Result<(), Failure> {
    let named = args.setting_sources.as_deref().map(SettingSources::parse).transpose();
    let named = named
        .map_err(|error| Failure::new(Exit::BadInput, format!("--setting-sources: {error}")))?;
    options.setting_sources = named.unwrap_or_default();
    options.trust = match named {
        _ if args.trust || is_recorded(&options.workspace) => Trust::Trusted,
        Some(sources) if sources.reads_any_of_repository() => Trust::Headless,
        // Programs leave the sources out where they mean all of them.
        None if is_driven(args) && !program::is_set(UNTRUSTED) => Trust::Headless,
        _ => Trust::Untrusted,
    };
    // Printed once, with all else that is not started.
    options.reads_mcp_json = !args.strict_mcp_config && options.trust != Trust::Untrusted;
    Ok(())
}

/// Prints on standard error what of the directory is not started.
pub(crate) fn print_waiting(options: &SessionOptions) {
    waiting(options).iter().for_each(|it| show::problem(it));
}

/// Returns what of the directory waits for trust, a sentence for each thing and one on what can be done.
pub(crate) fn waiting(options: &SessionOptions) -> Vec<String> {
    let (workspace, sources) = (&options.workspace, options.setting_sources);
    let (waiting, what_waits) = match options.trust {
        Trust::Untrusted => (waiting_for_trust(workspace, sources), "started or set"),
        Trust::Headless => (unset_until_trusted(workspace, sources), "set without --trust"),
        Trust::Trusted => return Vec::new(),
    };
    let mut lines: Vec<String> =
        waiting.iter().map(|what| format!("not {what_waits}: {what}")).collect();
    if options.trust == Trust::Untrusted && !lines.is_empty() {
        let advice = "this directory is not trusted; --trust starts what it brings, \
            --setting-sources with `project` or `local` lets its hooks deny and ask";
        lines.push(advice.into());
    }
    lines
}

/// Whether a program writes the prompts.
fn is_driven(args: &Print) -> bool {
    args.protocol.input_format == InputFormat::StreamJson
}

fn is_recorded(workspace: &Path) -> bool {
    match Environment::of_process().recorded_trust(workspace) {
        Ok(is_trusted) => is_trusted,
        Err(error) => {
            show::problem(&format!("{error}; this directory counts as not trusted"));
            false
        }
    }
}
