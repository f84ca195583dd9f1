//! What points git to a repository, an index or files; and `env` to a directory.
//!
//! It knows options and variables of programs, and nothing of the shell.

use crate::step7_permission_gate::shell::word::{PieceKind, Word};

/// Variables that point git to a repository, an index or files.
pub(super) const VARIABLES: [&str; 4] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE"];

/// The setting that does.
const SETTING: &str = "core.worktree";

/// Where options point git to.
#[derive(Default)]
pub(super) struct GitLocations<'a> {
    /// Of `-C`: each starts from the one before it.
    pub(super) directories: Vec<&'a Word>,
    /// Everything else, from the last of these.
    pub(super) others: Vec<Word>,
}

/// Reads the options in front of git's own command; `None` where they do not say it.
pub(super) fn pointed(operands: &[Word]) -> Option<GitLocations<'_>> {
    let mut found = GitLocations::default();
    let mut options = operands.iter();
    while let Some(option) = options.next() {
        let (name, value) = match option.text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option.text.as_str(), None),
        };
        match name {
            "-C" => found.directories.push(options.next()?),
            "--git-dir" | "--work-tree" => found.others.push(match value {
                Some(value) => part_of(option, value),
                None => options.next()?.clone(),
            }),
            "-c" | "--config-env" => {
                let (shown, word) = match value {
                    Some(_) => (&option.text[name.len() + 1..], option),
                    None => options.next().map(|it| (it.text.as_str(), it))?,
                };
                let (key, value) = shown.split_once('=').unwrap_or((shown, ""));
                if key.eq_ignore_ascii_case(SETTING) {
                    found.others.push(if name == "-c" {
                        part_of(word, value)
                    } else {
                        open(value)
                    });
                }
            }
            _ if name.starts_with('-') => {}
            "config" => {
                let mut rest = options.skip_while(|it| !it.text.eq_ignore_ascii_case(SETTING));
                // A second word after it is written to what the worktree shares.
                return rest.nth(1).is_none().then_some(found);
            }
            // An option may come of it.
            _ if !option.is_literal() => return None,
            _ => break,
        }
    }
    Some(found)
}

/// Returns whether a variable sets git's setting.
pub(super) fn configures(name: &str, value: &str, is_open: bool) -> bool {
    let key = name.starts_with("GIT_CONFIG_KEY_");
    let all = name == "GIT_CONFIG_PARAMETERS";
    key && (is_open || value.eq_ignore_ascii_case(SETTING))
        || all && (is_open || value.to_ascii_lowercase().contains(SETTING))
}

/// A piece of a word as a word.
fn part_of(word: &Word, text: &str) -> Word {
    if word.is_known() { Word::plain(text) } else { open(text) }
}

fn open(text: &str) -> Word {
    let mut word = Word::plain(text);
    word.mark(0, PieceKind::Open { quoted: false });
    word
}

/// Returns the directories that `env` runs something in.
pub(super) fn directories_of_env(operands: &[Word]) -> Vec<Word> {
    let mut found = Vec::new();
    let mut operands = operands.iter();
    while let Some(option) = operands.next() {
        let text = option.text.as_str();
        if matches!(text, "-C" | "--chdir") {
            found.extend(operands.next().cloned());
        } else if let Some(to) = text.strip_prefix("--chdir=").or(text.strip_prefix("-C")) {
            found.push(part_of(option, to));
        } else if !text.starts_with('-') && !text.contains('=') {
            break;
        }
    }
    found
}
