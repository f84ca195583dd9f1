//! Where a shell reads its program from.

use super::CommandPart;
use crate::step7_permission_gate::shell::{tree::Redirect, word::Word};

/// What a shell runs.
#[derive(Debug)]
pub(super) enum ShellInput<'a> {
    /// The text after `-c`.
    Text(&'a Word),
    /// The shell runs what it reads from standard input.
    Input,
    /// The shell runs a file that is named after its options.
    File,
    /// The shell runs nothing: it prints its version or an error.
    Nothing,
}

/// Returns the program of a shell with these arguments.
pub(super) fn program(args: &[Word]) -> ShellInput<'_> {
    let (mut has_text, mut has_input) = (false, false);
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if matches!(text, "--" | "-") {
            at += 1;
            break;
        }
        if !text.starts_with(['-', '+']) {
            break;
        }
        match text {
            "--version" | "--help" => return ShellInput::Nothing,
            // A file that an interactive shell runs first.
            "--rcfile" | "--init-file" => return ShellInput::File,
            _ if text.starts_with("--") => {}
            _ => {
                has_text |= text.starts_with('-') && text.contains('c');
                has_input |= text.starts_with('-') && text.contains('s');
                at += usize::from(text.ends_with(['o', 'O']));
            }
        }
        at += 1;
    }
    match args.get(at) {
        Some(text) if has_text => ShellInput::Text(text),
        None if has_text => ShellInput::Nothing,
        Some(file) if !has_input && !is_input(&file.text) => ShellInput::File,
        _ => ShellInput::Input,
    }
}

/// Returns whether a path is the input of the process that opens it.
pub(super) fn is_input(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Returns the texts that a part gets as its input, and whether there may be more in it.
pub(super) fn input(part: &CommandPart) -> (Vec<String>, bool) {
    let mut texts = Vec::new();
    let mut is_unseen = false;
    let mut is_given = false;
    if let Some(piped) = &part.piped {
        is_given = true;
        match &piped.text {
            Some(text) => texts.push(text.to_string()),
            None => is_unseen = true,
        }
    }
    for (kind, word) in &part.redirections {
        match kind {
            Redirect::Text | Redirect::Document(_) => {
                texts.push(word.text.clone());
                is_unseen |= !word.is_known();
                is_given = true;
            }
            Redirect::Read | Redirect::ReadWrite => {
                is_unseen |= word.text != "/dev/null";
                is_given = true;
            }
            // The descriptors of what it prints.
            Redirect::Copy => is_unseen |= !matches!(&*word.text, "1" | "2" | "-"),
            Redirect::Write => {}
        }
    }
    // What nothing gives it comes from around it.
    (texts, is_unseen || !is_given)
}
