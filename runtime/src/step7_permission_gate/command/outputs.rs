//! Protected files that programs write which are not writers by trade: `sort -o`, `tar -C`, `git config`.
//!
//! Only protected paths are looked for, so that a word that is read after all costs a question and nothing
//! more. Sources: the manual of each program; GNU findutils 4.9, GNU tar 1.34, git 2.39.

use super::{
    CommandContext, CommandPart,
    changed_below::changes_found,
    changes::Changes,
    dirs::{PathTarget, target},
    escapes,
    file_url::file_url,
    git_files,
    named::{NamedFile, named, place_in, shortened, values},
    names::Names,
    options::{has_letter, is_long, operands, value_of},
};
use crate::step7_permission_gate::{
    protected::{is_protected, may_be_protected},
    shell::word::{PieceKind, Word},
};

/// Programs whose every word may be a file that they write.
static ANY_WORD: Names = Names::of(&[
    "split", "csplit", "patch", "unzip", "dos2unix", "unix2dos", "ed", "ex", "cpio", "zip",
    "bzip2", "bunzip2", "sponge", "7z",
]);

/// Commands of git whose every word may be a file that they write.
static GIT_WRITES: Names = Names::of(&[
    "fast-import",
    "fast-export",
    "mailsplit",
    "mailinfo",
    "bugreport",
    "diagnose",
    "credential-store",
    "unpack-file",
]);

/// Adds the protected files that a part may write.
pub(super) fn outputs(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    for word in words(name, args) {
        add(named(&word, part, around), found);
    }
    if name == "git" {
        let dirs = git_files::directories(&escapes::call(args), part, around);
        for word in of_git(args) {
            add(place_in(target(&word, &around.home, part.is_lost), &dirs, around), found);
        }
    }
}

/// Adds a file if it is protected.
fn add(file: NamedFile, found: &mut Changes) {
    let is_open = !matches!(file.target, PathTarget::Known(_));
    let is_one = |path: &String| {
        is_protected(path) || is_open && has_dotted_glob(path) && may_be_protected(path, false)
    };
    if file.paths.iter().any(is_one) {
        found.changes.push(file);
    }
}

/// Whether a pattern matches names that begin with a dot.
fn has_dotted_glob(path: &str) -> bool {
    path.split('/').any(|it| it.starts_with('.') && it.contains(['*', '?', '[']))
}

/// Returns the words that may name a file which is written.
pub(super) fn words(name: &str, args: &[Word]) -> Vec<Word> {
    let all = || args.iter().flat_map(values).collect::<Vec<Word>>();
    let has = |letters: &[char]| {
        args.iter().any(|it| letters.iter().any(|letter| has_letter(&it.text, *letter, "S")))
    };
    match name {
        "find" => of_find(args),
        "tar" => of_tar(args),
        // Git says itself in which directories.
        "git" => Vec::new(),
        "uniq" => operands(args).skip(1).cloned().collect(),
        "rsync" => of_copy(args),
        "vi" | "vim" | "nvim" | "nano" | "emacs" => all(),
        "gzip" | "gunzip" | "xz" | "unxz" | "zstd" | "unzstd" if !has(&['c', 't', 'l']) => all(),
        "iconv" | "shuf"
            if args
                .iter()
                .any(|it| has_letter(&it.text, 'o', "ftn") || is_long(&it.text, "--output")) =>
        {
            all()
        }
        "perl" | "ruby" if args.iter().any(|it| has_letter(&it.text, 'i', "eEIMmxFCdD")) => all(),
        "sed" if escapes::sed_files(args).is_none() => of_script(args),
        "awk" | "gawk" | "mawk" | "nawk" if escapes::is_escape(name, args) => of_script(args),
        "xxd" => operands(args).skip(1).cloned().collect(),
        "less" | "sdiff" if has(&['o', 'O']) => all(),
        // OpenSSH 9.2: logs, sockets, and programs that are started here.
        "ssh" | "scp" | "sftp" => of_connection(name, args),
        // bash 5.2, "Bash History Builtins".
        "history" | "fc" => all(),
        "yq" if has(&['i']) => all(),
        // npm 10, npm-config(1); pnpm 9; yarn 1.22.
        "npm" | "pnpm" if sets_of_manager(args) => vec![Word::plain("~/.npmrc")],
        "yarn" if sets_of_manager(args) => vec![Word::plain("~/.yarnrc")],
        "sort" | "tree" | "file" if escapes::holds(name, args) => all(),
        _ if ANY_WORD.contains(name) => all(),
        _ => Vec::new(),
    }
}

/// Finds where `curl` and `wget` put what they fetch, and files that they read: `file:` addresses, and words whose
/// beginning the shell has yet to work out. Sources: curl 8.5, curl(1); GNU wget 1.21.
pub(super) fn of_download(
    name: &str,
    args: &[Word],
    at: impl Fn(&Word) -> NamedFile,
    found: &mut Changes,
) {
    let letter = if name == "curl" { "-o" } else { "-O" };
    let long = if name == "curl" { "--output" } else { "--output-document" };
    for (i, arg) in args.iter().enumerate() {
        let url = file_url(&arg.text).map(|it| at(&shortened(arg, &it)));
        found.reads.extend(url.filter(|it| matches!(it.target, PathTarget::Open(_))));
        if arg.spans.first().is_some_and(|it| it.start == 0 && it.piece != PieceKind::Quoted) {
            found
                .reads
                .push(NamedFile { target: PathTarget::Open(String::new()), paths: Vec::new() });
        }
        if arg.text == letter || arg.text == long {
            found.changes.extend(args.get(i + 1).map(&at));
        } else if let Some(to) = value_of(&arg.text, long).or(arg.text.strip_prefix(letter)) {
            found.changes.push(at(&Word::plain(to)));
        }
    }
}

/// The last operand, and the values of options but those that leave files out.
fn of_copy(args: &[Word]) -> Vec<Word> {
    let leaves_out = |it: &Word| {
        ["--exclude", "--include", "--filter"].iter().any(|name| it.text.starts_with(name))
    };
    let options = args.iter().filter(|it| it.text.starts_with('-') && !leaves_out(it));
    options.flat_map(values).chain(operands(args).last().cloned()).collect()
}

/// Returns all words, and the pieces of scripts that may be names of files.
pub(super) fn of_script(args: &[Word]) -> Vec<Word> {
    let ends = |c: char| c.is_whitespace() || "\"'(){};<>|,".contains(c);
    let pieces = args.iter().flat_map(|it| it.text.split(ends)).filter(|it| !it.is_empty());
    args.iter().flat_map(values).chain(pieces.map(Word::plain)).collect()
}

fn of_connection(name: &str, args: &[Word]) -> Vec<Word> {
    let mut found = if name == "scp" { of_copy(args) } else { Vec::new() };
    for (i, arg) in args.iter().enumerate() {
        if ['E', 'S', 'o', 'D'].iter().any(|it| has_letter(&arg.text, *it, "BbcFIiJLlmOpQRWw")) {
            let next = args.get(i + 1).filter(|_| arg.text.len() == 2);
            let texts = arg.text.get(2..).into_iter().chain(next.map(|it| it.text.as_str()));
            let pieces = texts.flat_map(|it| it.split(|c: char| c == '=' || c.is_whitespace()));
            found.extend(pieces.map(|it| shortened(arg, it)));
        }
    }
    found
}

fn of_find(args: &[Word]) -> Vec<Word> {
    let prints = |it: &str| it.starts_with("-fprint") || it == "-fls";
    let printed = args.windows(2).filter(|it| prints(&it[0].text)).map(|it| &it[1]);
    let starts = args.iter().take_while(|it| !it.text.starts_with(['-', '(', '!']));
    printed.chain(starts.filter(|_| changes_found(args))).cloned().collect()
}

fn of_tar(args: &[Word]) -> Vec<Word> {
    let Some((first, rest)) = args.split_first() else { return Vec::new() };
    let is_bundle = !first.text.starts_with('-');
    let has = |letter: char, long: &str| {
        is_bundle && first.text.contains(letter)
            || args.iter().any(|it| has_letter(&it.text, letter, "fC") || is_long(&it.text, long))
    };
    if has('t', "--list") || has('d', "--compare") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let removes = args.iter().any(|it| is_long(&it.text, "--remove-files"));
    if removes || has('x', "--extract") || has('x', "--get") {
        let mut is_left_out = false;
        for arg in args {
            let excludes = arg.text.starts_with("--exclude");
            if !std::mem::replace(&mut is_left_out, excludes && !arg.text.contains('='))
                && !excludes
            {
                found.extend(values(arg));
            }
        }
        return found;
    }
    if is_bundle {
        let n_valued = first.text.chars().filter(|it| "fCTXbgHKLNVI".contains(*it)).count();
        found.extend(rest.iter().take(n_valued).cloned());
    }
    for (i, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        if text.starts_with("--exclude") {
            continue;
        }
        let is_output = has_letter(text, 'f', "CTXbgHKLNVI")
            || has_letter(text, 'g', "fCTXbHKLNVI")
            || is_long(text, "--file")
            || is_long(text, "--listed-incremental");
        if is_output {
            found.extend(values(arg));
            found.extend(args.get(i + 1).cloned());
        } else if text.starts_with("--") && text.contains('=') {
            found.extend(values(arg));
        }
    }
    found
}

pub(super) fn of_git(args: &[Word]) -> Vec<Word> {
    let call = escapes::call(args);
    let mut found = Vec::new();
    for (i, arg) in call.args.iter().enumerate().take_while(|it| it.1.text != "--") {
        let text = arg.text.as_str();
        let is_short =
            matches!(call.command, "archive" | "format-patch") && has_letter(text, 'o', "");
        if is_short
            || is_long(text, "--output")
            || is_long(text, "--output-directory")
            || is_long(text, "--prefix")
            || is_long(text, "--directory")
            || is_long(text, "--separate-git-dir")
        {
            found.extend(values(arg));
            found.extend(call.args.get(i + 1).cloned());
        }
    }
    match call.command {
        "config" if sets_config(call.args) => {
            let mut files = call.args.iter().enumerate().filter_map(|(i, it)| {
                let text = it.text.as_str();
                if let Some(value) = text.strip_prefix("--file=") {
                    return Some(shortened(it, value));
                }
                let is_file = matches!(text, "-f" | "--file");
                is_file.then(|| call.args.get(i + 1).cloned()).flatten()
            });
            found.push(files.next().unwrap_or_else(|| Word::plain(".git/config")));
        }
        "clone" => found.extend(operands(call.args).skip(1).cloned()),
        // Sources: git-remote(1), git-worktree(1), git-init(1), git-submodule(1), git-maintenance(1).
        "remote" | "worktree" | "submodule" | "maintenance" if changes_config(&call) => {
            found.extend(operands(call.args).cloned());
            found.push(Word::plain(".git/config"));
        }
        "init" => {
            found.extend(call.args.iter().flat_map(values));
            found.push(Word::plain(".git/config"));
        }
        "branch" if call.args.iter().any(sets_upstream) => found.push(Word::plain(".git/config")),
        "worktree" | "bundle" | "mv" | "submodule" | "rm" | "update-index" | "merge-file" => {
            found.extend(operands(call.args).cloned());
        }
        command if GIT_WRITES.contains(command) => {
            found.extend(call.args.iter().flat_map(values));
        }
        "checkout" | "restore" | "clean" | "reset" | "apply" | "am" | "stash"
        | "checkout-index" | "read-tree" => {
            found.extend(operands(call.args).flat_map(values));
            found.push(Word::plain("."));
        }
        _ => {}
    }
    found
}

/// Whether a manager of packages changes its settings, some of which name programs.
fn sets_of_manager(args: &[Word]) -> bool {
    let mut words = operands(args).map(|it| it.text.as_str());
    match (words.next(), words.next()) {
        (Some("config" | "c"), Some(verb)) => {
            matches!(verb, "set" | "delete" | "rm" | "unset" | "edit" | "fix")
        }
        (Some("set"), Some(key)) => key != "version",
        _ => false,
    }
}

/// Whether a command changes the configuration, or where git looks for it.
fn changes_config(call: &escapes::GitCall<'_>) -> bool {
    let verb = operands(call.args).next().map_or("", |it| it.text.as_str());
    let verbs: &[&str] = match call.command {
        "remote" => {
            &["add", "rename", "remove", "rm", "set-head", "set-branches", "set-url", "prune"]
        }
        "worktree" => &["add", "move", "repair"],
        "submodule" => &["add", "init", "set-url", "set-branch", "absorbgitdirs", "deinit"],
        "maintenance" => &["start", "register", "unregister"],
        _ => &[],
    };
    verbs.contains(&verb)
}

/// Whether an option of `branch` writes to the configuration.
fn sets_upstream(option: &Word) -> bool {
    let text = option.text.as_str();
    ["--set-upstream-to", "--unset-upstream", "--edit-description"]
        .iter()
        .any(|it| is_long(text, it))
        || has_letter(text, 'u', "")
}

/// Whether a `config` changes a value.
fn sets_config(args: &[Word]) -> bool {
    let asks = ["--get", "--list", "-l", "--get-color", "--get-colorbool", "--get-urlmatch"];
    let only_asks = args.iter().any(|it| asks.contains(&it.text.as_str()));
    let acts = [
        "--unset",
        "--unset-all",
        "--add",
        "--replace-all",
        "--edit",
        "-e",
        "--remove-section",
        "--rename-section",
    ];
    let acts =
        args.iter().any(|it| acts.iter().any(|act| it.text == *act || is_long(&it.text, act)));
    let first = operands(args).next().map_or("", |it| it.text.as_str());
    let is_verb = ["set", "unset", "edit", "remove-section", "rename-section"].contains(&first);
    let n_operands = operands(args).count();
    !escapes::reads_config(args) && (acts || is_verb || n_operands > 1 && !only_asks)
}
