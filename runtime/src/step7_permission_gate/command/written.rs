//! Options and operands with which programs that read write a file; data.
//!
//! Sources: GNU coreutils 9.1, GNU libc 2.36 (`iconv`), tree 2.1, vim's xxd(1), util-linux 2.38, rsync 3.2.

use crate::step7_permission_gate::{
    command::{
        escapes::{GitCall, call},
        named::shortened,
        options::{has_letter, is_long, operands, value_of},
    },
    shell::word::Word,
};

/// A program with an option that names a file which it writes.
struct OutputOption {
    name: &'static str,
    short: char,
    /// Letters that take the rest of a cluster as their value.
    valued: &'static str,
    long: &'static str,
}

/// The programs that only read, apart from what this option has them write.
const OPTIONS: [OutputOption; 4] = [
    OutputOption { name: "sort", short: 'o', valued: "kStT", long: "--output" },
    OutputOption { name: "shuf", short: 'o', valued: "ein", long: "--output" },
    OutputOption { name: "iconv", short: 'o', valued: "ft", long: "--output" },
    OutputOption { name: "tree", short: 'o', valued: "LPIH", long: "--output" },
];

/// The files that a program writes by an option or an operand, and its other arguments if these say what it does
/// besides.
type TakenApart = (Vec<Word>, Option<Vec<Word>>);

/// Returns what a program writes by an option or an operand; `None` if it writes nothing in this way.
pub(super) fn taken_apart(name: &str, args: &[Word]) -> Option<TakenApart> {
    match name {
        "uniq" | "xxd" => {
            let second = operands(args).nth(1)?;
            let at = args.iter().rposition(|it| it == second)?;
            let rest = args[..at].iter().chain(&args[at + 1..]);
            let rest = rest.filter(|it| name != "xxd" || it.text != "-r");
            Some((vec![second.clone()], Some(rest.cloned().collect())))
        }
        "mkfifo" | "fallocate" => {
            let is_size = |it: &Word| it.text.starts_with(|c: char| c.is_ascii_digit());
            let files: Vec<Word> = operands(args).filter(|it| !is_size(it)).cloned().collect();
            let is_plain = !args.iter().any(|it| it.text.starts_with("--"));
            (is_plain && !files.is_empty()).then_some((files, None))
        }
        "mktemp" => Some((made(args)?, None)),
        "rsync" => Some((copied(args)?, None)),
        _ => {
            let option = OPTIONS.iter().find(|it| it.name == name)?;
            let (files, rest) = option.taken_from(args);
            (!files.is_empty()).then_some((files, Some(rest)))
        }
    }
}

/// Returns the arguments without those that name files which the program writes, and which are not programs; `None` if
/// it writes none in this way.
pub(super) fn without_outputs(name: &str, args: &[Word]) -> Option<Vec<Word>> {
    match name {
        "git" => Some(git_output(&call(args))?.1),
        _ => taken_apart(name, args)?.1,
    }
}

/// Returns the file to which a command writes what it prints, and the call without that.
pub(super) fn git_output(call: &GitCall<'_>) -> Option<(Word, Vec<Word>)> {
    let has_short = matches!(call.command, "archive" | "format-patch");
    let at = call.args.iter().take_while(|it| it.text != "--").position(|it| {
        it.text == "--output"
            || it.text.starts_with("--output=")
            || has_short && it.text.starts_with("-o")
    })?;
    let arg = &call.args[at];
    let attached = arg.text.strip_prefix("-o").filter(|it| !it.is_empty());
    let (file, n_words) = match value_of(&arg.text, "--output").or(attached) {
        Some(value) => (shortened(arg, value), 1),
        None => (call.args.get(at + 1)?.clone(), 2),
    };
    let mut rest = call.global.to_vec();
    rest.push(Word::plain(call.command));
    rest.extend_from_slice(&call.args[..at]);
    rest.extend_from_slice(&call.args[at + n_words..]);
    Some((file, rest))
}

impl OutputOption {
    fn taken_from(&self, args: &[Word]) -> (Vec<Word>, Vec<Word>) {
        let (mut files, mut rest) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            at += 1;
            let text = arg.text.as_str();
            let is_short = has_letter(text, self.short, self.valued);
            if text == "--" {
                rest.extend_from_slice(&args[at - 1..]);
                break;
            } else if !is_short && !is_long(text, self.long) {
                rest.push(arg.clone());
                continue;
            }
            let attached = match text.split_once('=').filter(|_| !is_short) {
                Some((_, value)) => Some(value),
                None if is_short => text.split_once(self.short).map(|it| it.1),
                None => None,
            };
            match attached.filter(|it| !it.is_empty()) {
                Some(value) => files.push(shortened(arg, value)),
                None => {
                    files.extend(args.get(at).cloned());
                    at += 1;
                }
            }
            // Letters in front of it are options of their own.
            let before = text.split(self.short).next().filter(|it| is_short && it.len() > 1);
            rest.extend(before.map(Word::plain));
        }
        (files, rest)
    }
}

/// What `mktemp` makes, unless that is in the temporary directory.
fn made(args: &[Word]) -> Option<Vec<Word>> {
    let mut directory = None;
    let mut template = None;
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        at += 1;
        let text = arg.text.as_str();
        match text.strip_prefix("--tmpdir=").or(text.strip_prefix("-p").filter(|it| !it.is_empty()))
        {
            Some(value) => directory = Some(shortened(arg, value)),
            None if text == "-p" => {
                directory = args.get(at).cloned();
                at += 1;
            }
            None if matches!(text, "-d" | "-q" | "-u" | "-dq" | "--directory" | "--quiet") => {}
            None if text.starts_with('-') => return None,
            None => template = Some(arg.clone()),
        }
    }
    Some(vec![directory.or(template)?])
}

/// Where `rsync` copies files of this machine, unless it also removes some.
fn copied(args: &[Word]) -> Option<Vec<Word>> {
    let is_plain = |it: &Word| {
        let text = it.text.as_str();
        if !text.starts_with('-') {
            return !text.contains(':');
        }
        let known =
            ["--archive", "--verbose", "--recursive", "--progress", "--exclude", "--dry-run"];
        known.iter().any(|option| text.split('=').next() == Some(option))
            || !text.starts_with("--") && text[1..].bytes().all(|it| b"avrnuzhiPtp".contains(&it))
    };
    let files: Vec<&Word> = operands(args).collect();
    (files.len() > 1 && args.iter().all(is_plain))
        .then(|| files.last().map(|it| vec![Word::clone(it)]))?
}
