//! Files that a call of git reads: operands, values of options and the paths of `revision:path`.
//!
//! Sources: gitrevisions(7), and pathspec in gitglossary(7), git 2.39.

use super::{
    CommandContext, CommandPart,
    changes::Changes,
    dirs::{Dirs, PathTarget, target},
    escapes::{GitCall, call},
    named::{NamedFile, has_pattern, named, place_in, shortened, values},
    names::Names,
    options::{has_letter, is_long},
};
use crate::step7_permission_gate::shell::word::Word;

/// Commands whose operands name no file that they read.
static READ_NO_FILE: Names = Names::of(&[
    "",
    "branch",
    "check-ignore",
    "clone",
    "config",
    "describe",
    "fetch",
    "gc",
    "help",
    "init",
    "merge-base",
    "name-rev",
    "pull",
    "push",
    "reflog",
    "remote",
    "switch",
    "version",
]);

/// Those of them whose operands or options name a file or a repository all the same.
static OPEN_PLACES: Names =
    Names::of(&["clone", "config", "fetch", "init", "ls-remote", "pull", "push", "remote"]);

/// Commands that read names of files, and nothing of what is in them.
static LIST: Names = Names::of(&["ls-files", "ls-tree", "rev-list", "rev-parse", "status"]);

/// Commands whose `-m` is a message.
static TAKE_MESSAGES: Names =
    Names::of(&["commit", "merge", "notes", "stash", "tag", "cherry-pick"]);

/// Adds what a call of git reads; `args` are the words after `git`.
pub(super) fn reads(
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let call = call(args);
    let dirs = directories(&call, part, around);
    // What a `-c key=value` names, `include.path` above all.
    let given = call.global.iter().filter(|it| !it.text.starts_with('-'));
    let given = given.filter_map(|it| it.text.split_once('=').map(|value| shortened(it, value.1)));
    found.reads.extend(given.map(|it| named(&it, part, around)));
    if OPEN_PLACES.contains(call.command) {
        // Repositories, and files of configuration.
        let operands = call.args.iter().flat_map(values);
        let here = |it: Word| place_in(target(&it, &around.home, part.is_lost), &dirs, around);
        let places = operands.map(here).filter(|it| matches!(it.target, PathTarget::Known(_)));
        found.reads.extend(places);
    }
    if call.command == "mv" {
        let operands: Vec<&Word> = super::options::operands(call.args).collect();
        let sources = operands.split_last().map(|it| it.1).unwrap_or_default();
        let here = |it: &&Word| place_in(target(it, &around.home, part.is_lost), &dirs, around);
        found.links.extend(sources.iter().map(here));
    }
    if READ_NO_FILE.contains(call.command) {
        return;
    }
    let mut read = Vec::new();
    for (i, option) in call.global.iter().enumerate() {
        let text = option.text.as_str();
        let value = if text == "--git-dir" { call.global.get(i + 1) } else { None };
        let attached = text.strip_prefix("--git-dir=").map(|it| shortened(option, it));
        let files = value.cloned().into_iter().chain(attached);
        read.extend(files.map(|it| named(&it, part, around)));
    }
    let mut add = |word: &Word| read.extend(places(word, &dirs, part, around));
    let is_fed = |it: &Word| {
        let name = it.text.split_once('=').map_or(&*it.text, |it| it.0);
        matches!(name, "--batch" | "--batch-command" | "--stdin" | "--stdin-paths")
            || is_long(name, "--pathspec-from-file")
    };
    if call.args.iter().any(is_fed) {
        // Its input, or a file, names the objects.
        found.reads.push(NamedFile { target: PathTarget::Open(String::new()), paths: Vec::new() });
    }
    let is_grep = call.command == "grep";
    let mut n_skipped = usize::from(is_grep && has_pattern("grep", call.args));
    let mut is_message = false;
    let mut is_operand = false;
    for word in call.args {
        let text = word.text.as_str();
        if std::mem::take(&mut is_message) {
            continue;
        }
        is_operand |= text == "--";
        if !is_operand && text.starts_with('-') && text != "-" {
            let takes_message = TAKE_MESSAGES.contains(call.command);
            let is_long_message = is_long(text, "--message");
            if takes_message && (is_long_message || has_letter(text, 'm', "FCct")) {
                let is_apart =
                    if is_long_message { !text.contains('=') } else { text.ends_with('m') };
                is_message = is_apart;
            } else if let Some((_, value)) = text.split_once('=') {
                add(&shortened(word, value));
            } else if let Some((_, value)) = text.rsplit_once(':') {
                add(&shortened(word, value));
            } else if !text.starts_with("--") {
                // The rest of a short option may be a file.
                text.char_indices()
                    .nth(2)
                    .into_iter()
                    .for_each(|it| add(&shortened(word, &text[it.0..])));
            }
        } else if text != "--" {
            match n_skipped {
                0 => add(word),
                _ => n_skipped -= 1,
            }
        }
    }
    // Before `--` it may be a branch.
    let is_branch = call.command == "checkout" && !call.args.iter().any(|it| it.text == "--");
    if !LIST.contains(call.command) && !is_branch {
        found.trees.extend(read.iter().cloned());
    }
    if is_grep || call.args.iter().any(|it| is_long(&it.text, "--relative")) {
        found.trees.push(place_in(PathTarget::Known(".".to_owned()), &dirs, around));
    }
    found.reads.extend(read);
}

/// Returns the directories that it works in, `-C` and `--work-tree` followed.
pub(super) fn directories(call: &GitCall<'_>, part: &CommandPart, around: &CommandContext) -> Dirs {
    let mut dirs = part.dirs.clone();
    let mut options = call.global.iter();
    while let Some(option) = options.next() {
        let attached = option.text.strip_prefix("--work-tree=");
        if let Some(to) = attached {
            dirs = match target(&shortened(option, to), &around.home, part.is_lost) {
                PathTarget::Known(to) => dirs.join(&to, around),
                _ => Dirs::unknown(),
            };
        } else if matches!(&*option.text, "-C" | "--work-tree") {
            dirs = match options.next().map(|it| target(it, &around.home, part.is_lost)) {
                Some(PathTarget::Known(to)) => dirs.join(&to, around),
                _ => Dirs::unknown(),
            };
        }
    }
    dirs
}

/// Where an operand leads: as it is, and as the path of a revision or a pathspec.
fn places(word: &Word, dirs: &Dirs, part: &CommandPart, around: &CommandContext) -> Vec<NamedFile> {
    let of = |word: &Word| match target(word, &around.home, part.is_lost) {
        // Git itself expands what is quoted.
        PathTarget::Known(text) if text.contains(['*', '?', '[']) => PathTarget::Glob(text),
        other => other,
    };
    let mut found = vec![place_in(of(word), dirs, around)];
    let Some((_, path)) = word.text.rsplit_once(':') else { return found };
    let path = path.strip_prefix('(').and_then(|it| it.split_once(')')).map_or(path, |it| it.1);
    let inner = of(&shortened(word, path.trim_start_matches(['/', '!', '^'])));
    // Such a path begins at the top of the repository, unless it is written with a dot.
    for top in around.workspace.iter() {
        found.push(place_in(inner.clone(), &Dirs::one(top, around), around));
    }
    found.push(place_in(inner, dirs, around));
    found
}
