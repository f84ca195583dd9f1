//! A shell command, read with suspicion.
//!
//! This is not a shell grammar. What may be denied or asked is looked for in every piece that
//! could be a command; what may be allowed is only a command in which the shell would do nothing
//! but split words. So a construction that is not understood is never allowed and seldom missed.

use super::{
    path_resolution::by_text,
    rule::wildcard,
    shell_words::{
        ESCAPES, FILE_READERS, FILE_WRITERS, HARMLESS, INTERPRETERS, KEYWORDS, WRAPPERS,
    },
};

/// Longest text that is looked at, in bytes; longer ones are asked about (cases A1).
pub(super) const MAX_LEN: usize = 64 * 1024;

/// Words behind a program that runs others at which the inner command is looked for. A longer
/// line is asked about; without a limit the work would grow with the square of its length.
pub(super) const MAX_STARTS: usize = 100;

/// A command in the pieces that matter to rules.
#[derive(Clone, Debug)]
pub(super) struct ShellCommand {
    raw: String,
    /// Its words, if the shell does nothing but split it; harmless assignments are left out.
    plain: Option<Vec<String>>,
    /// Everything that may be run, as words without quotes.
    pieces: Vec<Vec<String>>,
    /// Files read and files written, as absolute paths by text.
    reads: Vec<String>,
    writes: Vec<String>,
    /// Those of the files written that it does not only read, and what it takes away from its place.
    changes: Vec<String>,
    removes: Vec<String>,
    /// Something in it removes what nobody should remove unasked.
    critical: bool,
    unclear: bool,
}

impl ShellCommand {
    pub(super) fn read(raw: &str, cwd: &str, home: &str) -> Self {
        let mut command = Self {
            raw: raw.into(),
            plain: plain_words(raw),
            pieces: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            changes: Vec::new(),
            removes: Vec::new(),
            critical: false,
            unclear: is_unclear(raw),
        };
        if raw.len() > MAX_LEN {
            return command;
        }
        let joined = raw.replace("\\\n", "").replace("{}", " ");
        let pieces = joined.split(['&', '|', ';', '\n', '(', ')', '{', '}', '$', '`']);
        for piece in pieces {
            command.take_redirections(piece, cwd, home);
            let piece = piece.replace(['<', '>'], " ");
            let words: Vec<String> = piece
                .split_whitespace()
                .map(|word| word.replace(['"', '\'', '\\'], ""))
                .filter(|word| !word.is_empty())
                .collect();
            let starts = starts(&words);
            if starts.len() > MAX_STARTS {
                command.unclear = true;
                command.plain = None;
            }
            for start in starts.into_iter().take(MAX_STARTS) {
                let part = &words[start..];
                command.take_files(part, cwd, home);
                command.pieces.push(part.to_vec());
            }
        }
        // `rm -rf "$X"/*`: nobody knows what an empty variable makes of it.
        let removes = command.pieces.iter().any(|it| is_removal(it));
        command.critical |= removes && raw.contains('$') && raw.contains('/');
        command
    }

    /// As it was given.
    pub(super) fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether an allow rule covers it. Only plain commands are ever covered.
    pub(super) fn allowed_by(&self, pattern: &str) -> bool {
        let Some(words) = &self.plain else { return false };
        let text = words.join(" ");
        if text == pattern {
            return true;
        }
        let name = words.first().map_or("", String::as_str);
        if pattern == "*" {
            return true;
        }
        let hides = WRAPPERS.contains(&name) || INTERPRETERS.contains(&name);
        !hides && !escapes(name, &words[1..]) && covers(pattern, &text)
    }

    /// Whether a deny or ask rule is about any piece.
    pub(super) fn named_by(&self, pattern: &str) -> bool {
        if covers(pattern, self.raw.trim()) {
            return true;
        }
        self.pieces.iter().any(|words| {
            let text = words.join(" ");
            covers(pattern, &text) || base_name(words).is_some_and(|it| covers(pattern, &it))
        })
    }

    /// Files that it recognisably reads or writes.
    pub(super) fn files(&self, only_written: bool) -> impl Iterator<Item = &str> {
        let reads = if only_written { &[][..] } else { &self.reads[..] };
        reads.iter().chain(&self.writes).map(String::as_str)
    }

    /// Files that it recognisably changes; not the one that is copied.
    pub(super) fn changes(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().map(String::as_str)
    }

    /// Files and directories that it recognisably removes or moves away.
    pub(super) fn removes(&self) -> impl Iterator<Item = &str> {
        self.removes.iter().map(String::as_str)
    }

    pub(super) fn is_critical(&self) -> bool {
        self.critical
    }

    /// Whether a piece may hide where this reading does not see it.
    pub(super) fn is_unclear(&self) -> bool {
        self.unclear
    }

    /// Allow rules that would let it pass next time.
    pub(super) fn suggestions(&self) -> Vec<String> {
        let Some(words) = &self.plain else { return Vec::new() };
        let mut rules = vec![words.join(" ")];
        if let [name, sub, ..] = words.as_slice()
            && sub.bytes().all(|it| it.is_ascii_alphabetic() || it == b'-')
            && !sub.starts_with('-')
        {
            rules.push(format!("{name} {sub} *"));
        } else if let Some(name) = words.first() {
            rules.push(format!("{name} *"));
        }
        rules.retain(|it| self.allowed_by(it));
        rules
    }

    fn take_redirections(&mut self, piece: &str, cwd: &str, home: &str) {
        for (i, _) in piece.match_indices(['<', '>']) {
            let target = piece[i + 1..].trim_start_matches(['<', '>', '&', '|']);
            let target = target.split_whitespace().next().unwrap_or_default();
            let target = absolute(&target.replace(['"', '\'', '\\'], ""), cwd, home);
            if piece[i..].starts_with('>') {
                self.changes.push(target.clone());
                self.writes.push(target);
            } else {
                self.reads.push(target);
            }
        }
    }

    fn take_files(&mut self, words: &[String], cwd: &str, home: &str) {
        let Some((name, operands)) = words.split_first() else { return };
        let name = name.rsplit('/').next().unwrap_or(name);
        let paths = operands.iter().map(|it| {
            let it = it.strip_prefix("of=").or(it.strip_prefix("if=")).unwrap_or(it);
            absolute(it, cwd, home)
        });
        if FILE_WRITERS.contains(&name) {
            let paths: Vec<String> = paths.collect();
            self.changes.extend(changed(name, operands, &paths));
            self.removes.extend(taken_away(name, operands, &paths));
            self.writes.extend(paths);
        } else if FILE_READERS.contains(&name) {
            self.reads.extend(paths);
        }
        if is_removal(words) {
            self.critical |= operands.iter().any(|it| is_critical_target(it, cwd, home));
        }
    }
}

fn is_removal(words: &[String]) -> bool {
    let name = words.first().map_or("", |it| it.rsplit('/').next().unwrap_or(it));
    matches!(name, "rm" | "rmdir")
}

/// What a command changes of the files that its operands name; the others it only reads.
fn changed(name: &str, operands: &[String], paths: &[String]) -> Vec<String> {
    // Short options may stand together, and `-i` may bear the ending of a copy.
    let is_in_place = |it: &String| {
        it.starts_with("--i") || (it.starts_with('-') && !it.starts_with("--") && it.contains('i'))
    };
    match name {
        "cp" | "install" | "ln" => {
            destination(operands, paths).map(|at| paths[at].clone()).into_iter().collect()
        }
        "sed" if !operands.iter().any(is_in_place) => Vec::new(),
        "dd" => {
            let named = operands.iter().zip(paths).filter(|(it, _)| !it.starts_with("if="));
            named.map(|(_, path)| path.clone()).collect()
        }
        _ => paths.to_vec(),
    }
}

/// Which operand of `cp`, `mv` and their like names where files go.
fn destination(operands: &[String], paths: &[String]) -> Option<usize> {
    let named = operands.iter().position(|it| it == "-t" || it == "--target-directory");
    let last = operands.iter().rposition(|it| !it.starts_with('-'));
    named.map(|at| at + 1).or(last).filter(|at| *at < paths.len())
}

/// What a command takes away from its place; `dir/*` for the files in it that have no dot in front,
/// `dir/**` for the directories, too.
fn taken_away(name: &str, operands: &[String], paths: &[String]) -> Vec<String> {
    let is_recursive = operands.iter().any(|it| {
        it == "--recursive"
            || (it.starts_with('-') && !it.starts_with("--") && it.contains(['r', 'R']))
    });
    let whole = |it: &String| match it.ends_with("/*") && is_recursive {
        true => format!("{it}*"),
        false => it.clone(),
    };
    match name {
        "rm" | "rmdir" => paths.iter().map(whole).collect(),
        "mv" => {
            let destination = destination(operands, paths);
            let sources = paths.iter().enumerate().filter(|(at, _)| Some(*at) != destination);
            sources.map(|(_, path)| path.clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// The root, a top directory, home, the workspace or what they lie in.
fn is_critical_target(operand: &str, cwd: &str, home: &str) -> bool {
    if operand.starts_with('-') {
        return false;
    }
    let target = absolute(operand, cwd, home);
    let target = target.strip_suffix("/*").unwrap_or(&target);
    target.matches('/').count() <= 1
        || super::path_rule::lies_in(home, target)
        || super::path_rule::lies_in(cwd, target)
}

fn absolute(word: &str, cwd: &str, home: &str) -> String {
    match word.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            by_text(&format!("{home}/{rest}"))
        }
        _ if word.starts_with('/') => by_text(word),
        _ => by_text(&format!("{cwd}/{word}")),
    }
}

/// Where commands may begin in a piece: behind keywords and assignments, and, when something that
/// runs other commands stands there, at every later word.
pub(super) fn starts(words: &[String]) -> Vec<usize> {
    let skipped =
        words.iter().take_while(|it| KEYWORDS.contains(&it.as_str()) || is_assignment(it));
    let first = skipped.count();
    let Some(word) = words.get(first) else { return Vec::new() };
    let name = word.rsplit('/').next().unwrap_or(word);
    let runs_others = WRAPPERS.contains(&name)
        || INTERPRETERS.contains(&name)
        || words.iter().any(|it| it.starts_with("-exec") || it.starts_with("-ok"));
    let mut starts = if runs_others { (first..words.len()).collect() } else { vec![first] };
    if first != 0 {
        starts.push(0);
    }
    starts
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name.trim_end_matches('+'));
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// `/bin/rm x` as `rm x`, and `git -C d push` as `git push`.
fn base_name(words: &[String]) -> Option<String> {
    let (name, rest) = words.split_first()?;
    let base = name.rsplit('/').next().unwrap_or(name);
    let mut rest = rest;
    if base == "git" {
        while let [option, after @ ..] = rest
            && option.starts_with('-')
        {
            let takes_value = matches!(option.as_str(), "-C" | "-c")
                || (option.starts_with("--")
                    && !option.contains('=')
                    && after.len() > 1
                    && matches!(
                        option.as_str(),
                        "--git-dir"
                            | "--work-tree"
                            | "--namespace"
                            | "--exec-path"
                            | "--config-env"
                            | "--super-prefix"
                    ));
            rest = after.get(usize::from(takes_value)..).unwrap_or_default();
        }
    }
    let mut text = base.to_owned();
    for word in rest {
        text.push(' ');
        text.push_str(word);
    }
    Some(text)
}

/// The rule's pattern against a text: `*` stands for anything, a ` *` or `:*` at the end also for
/// nothing.
fn covers(pattern: &str, text: &str) -> bool {
    let prefix = pattern.strip_suffix(":*").or(pattern.strip_suffix(" *"));
    match prefix {
        Some(prefix) => wildcard(prefix, text) || wildcard(&format!("{prefix} *"), text),
        None => wildcard(pattern, text),
    }
}

/// Words of a command in which nothing is quoted, expanded, redirected or joined.
fn plain_words(raw: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./=:,@%+".contains(c);
    if !raw.chars().all(is_plain) || raw.len() > MAX_LEN {
        return None;
    }
    let words = raw.split(' ').filter(|it| !it.is_empty());
    let harmless = |it: &&str| it.split_once('=').is_some_and(|(name, _)| HARMLESS.contains(&name));
    let words: Vec<String> = words.skip_while(harmless).map(str::to_owned).collect();
    let first = words.first()?;
    (!is_assignment(first) && !KEYWORDS.contains(&first.as_str())).then_some(words)
}

fn is_unclear(raw: &str) -> bool {
    raw.len() > MAX_LEN
        || raw.contains(['$', '`', '\\', '{', '*', '?', '['])
        || raw.contains("<<")
        || raw.contains("eval")
        || ['"', '\''].iter().any(|quote| raw.matches(*quote).count() % 2 != 0)
        || raw.chars().any(|c| !c.is_ascii() || (c.is_control() && !matches!(c, '\n' | '\t')))
}

/// Arguments with which a harmless program runs others or writes (cases A6).
fn escapes(name: &str, args: &[String]) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let Some((_, escapes)) = ESCAPES.iter().find(|(it, _)| *it == name) else { return false };
    args.iter().any(|arg| {
        escapes.iter().any(|escape| {
            let long = arg.split_once('=').map_or(arg.as_str(), |(option, _)| option);
            if escape.starts_with("--") {
                // GNU options may be cut anywhere.
                long.len() > 2 && long.starts_with("--") && escape.starts_with(long)
            } else if let Some(letter) = escape.strip_prefix('-').filter(|it| it.len() == 1) {
                arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letter)
            } else if let Some(part) = escape.strip_suffix('*') {
                arg.starts_with(part)
            } else {
                arg == escape
            }
        })
    })
}

#[cfg(test)]
mod tests;
