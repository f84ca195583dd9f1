//! Names that the shell itself evaluates, in the arguments of builtins.
//!
//! A name with a subscript is arithmetic, and arithmetic runs the commands in it, quoted or not:
//! `test -v 'a[$(rm x)]'`. So where a builtin takes a name, only plain ones pass, and what an expansion may put
//! in such a place counts as one. Source: bash 5.2, "Bash Builtins" and "Shell Arithmetic".

mod numbers;

use super::{
    CommandPart,
    composed::{composes, literal_start, pattern},
};
use crate::step7_permission_gate::{
    rule::wildcard,
    shell::{
        arithmetic::{self, is_number},
        word::{PieceKind, Word, WordSpan},
    },
};
use numbers::prints_number;

/// What a part gives the shell to evaluate.
#[derive(Debug, Default)]
pub(super) struct EvaluatedNames {
    /// Variables whose values are evaluated, or may become words of a test.
    pub(super) names: Vec<String>,
    /// There is more than names and numbers.
    pub(super) is_open: bool,
}

/// Returns what a part gives the shell to evaluate.
pub(super) fn evaluated(part: &CommandPart) -> EvaluatedNames {
    let mut found = EvaluatedNames::default();
    let args = part.args();
    match part.name() {
        "let" => args.iter().for_each(|it| found.sum(it)),
        "test" => found.test(args),
        "[" => found.test(args.split_last().map_or(args, |it| it.1)),
        "printf" => found.variable_of_printf(args),
        "wait" => found.options(args, "p", "", false),
        "read" => found.options(args, "a", "dinNptu", true),
        "mapfile" | "readarray" => found.options(args, "Ocnsu", "dC", true),
        "unset" => found.options(args, "", "", true),
        "getopts" => args.iter().skip(1).take(1).for_each(|it| found.name(it)),
        "declare" | "typeset" | "local" => found.declared(args, true),
        "export" | "readonly" => found.declared(args, false),
        _ => {}
    }
    found
}

/// Returns whether the shell gives a variable a value that others choose: the last word of a command, a line, a match.
pub(super) fn is_set_by_shell(name: &str) -> bool {
    name.starts_with("BASH")
        || name.starts_with("READLINE")
        || matches!(
            name,
            "_" | "REPLY"
                | "MAPFILE"
                | "COPROC"
                | "OPTARG"
                | "DIRSTACK"
                | "FUNCNAME"
                | "PWD"
                | "OLDPWD"
                | "PS4"
        )
}

/// Returns the variables that `printf` sets: that of `-v`, and those to which a `%n` of its format gives a number. A name
/// that is not known is any.
pub(super) fn set_by_printf(args: &[Word]) -> Vec<String> {
    let mut args = args;
    let mut found = Vec::new();
    if let [first, rest @ ..] = args
        && let Some(name) = first.text.strip_prefix("-v")
    {
        let next = rest.first().map_or("", |it| it.text.as_str());
        found.push(if name.is_empty() { next } else { name }.to_owned());
        args = rest.get(usize::from(name.is_empty())..).unwrap_or_default();
    }
    if let [first, rest @ ..] = args
        && first.text == "--"
    {
        args = rest;
    }
    let Some((format, values)) = args.split_first() else { return found };
    if !format.is_literal() || counts(&format.text) {
        let name = |it: &Word| if it.is_literal() { it.text.clone() } else { "PATH".to_owned() };
        let begins_name = |it: &String| !it.starts_with(|c: char| c.is_ascii_digit());
        found.extend(values.iter().map(name).filter(|it| is_name(it) && begins_name(it)));
    }
    found
}

/// Whether a format has a directive that gives a variable the number of characters printed so far.
fn counts(format: &str) -> bool {
    let mut directives = format.split('%').skip(1);
    let is_flag = |c: char| c.is_ascii_digit() || "-+ #'*.hlLjzt".contains(c);
    while let Some(it) = directives.next() {
        if it.trim_start_matches(is_flag).starts_with('n') {
            return true;
        }
        if it.is_empty() {
            // Two signs are one that is printed.
            directives.next();
        }
    }
    false
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// What the value of a variable may be to arithmetic.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A number, or a sum of these names.
    Sum(Vec<String>),
    /// A text that arithmetic refuses, and that holds no command.
    Text,
    /// A text with a subscript, or with an option that a name follows.
    Harmful,
    /// Whatever an expansion gives.
    Open,
}

/// Returns what the value of a variable may be to arithmetic.
pub(super) fn value(word: &Word) -> Value {
    // A sign alone may be put in front of a letter.
    let is_option = |it: &str| it == "-" || it.starts_with('-') && it.contains(['v', 'R', 'p']);
    if word.is_known() && word.text.split_whitespace().any(is_option) {
        return Value::Harmful;
    }
    if let Some(names) = arithmetic::names(word) {
        return Value::Sum(names);
    }
    if word.is_known() {
        return if word.text.contains('[') { Value::Harmful } else { Value::Text };
    }
    let is_sum = |text: &str| {
        text.starts_with("$((") && text.ends_with("))") || is_number(text) || text.starts_with("$[")
    };
    let is_whole = |it: &WordSpan| it.start == 0 && it.end == word.text.len() && is_sum(&word.text);
    match &word.spans[..] {
        [span] if is_whole(span) || prints_number(word) => Value::Sum(Vec::new()),
        _ => Value::Open,
    }
}

impl EvaluatedNames {
    /// A word in the place of a name.
    fn name(&mut self, word: &Word) {
        match word.literal() {
            Some(text) => self.name_as_written(text),
            None => {
                // `"$x"'[$(rm x)]'`: what is quoted is evaluated all the same.
                let mut at = 0;
                let ends = word.spans.iter().filter(|it| it.piece != PieceKind::Quoted);
                for (start, end) in ends.map(|it| (it.start, it.end)).chain([(word.text.len(), 0)])
                {
                    self.is_open |= word.text[at..start].contains(['$', '`']);
                    at = end;
                }
                self.expansion(word);
            }
        }
    }

    fn name_as_written(&mut self, text: &str) {
        if is_name(text) {
            return;
        }
        // An element of an array whose place is a number or a name.
        match text.strip_suffix(']').and_then(|it| it.split_once('[')) {
            Some((array, "@" | "*")) if is_name(array) => {}
            Some((array, place)) if is_name(array) && is_name(place) => {
                self.names.push(place.to_owned());
            }
            _ => self.is_open = true,
        }
    }

    /// A word that is a sum.
    fn sum(&mut self, word: &Word) {
        match arithmetic::names(word) {
            Some(names) => self.names.extend(names),
            None => self.is_open = true,
        }
    }

    /// What comes of a word may be anything that its variables hold.
    fn expansion(&mut self, word: &Word) {
        if word.has_glob() {
            // Of the files that there are only one with such a name matters.
            let pattern = pattern(word);
            self.is_open |= ["-v", "-R", "-p"].iter().any(|it| wildcard(&pattern, it));
        }
        for span in word.spans.iter().filter(|it| it.piece != PieceKind::Quoted) {
            let text = &word.text[span.start..span.end];
            match variable(text) {
                Some(name) => self.names.push(name),
                None => self.is_open |= !is_number(text) && !prints_number(word),
            }
        }
    }

    /// Words before and after options: the values of some are names, those of others are texts. Operands are names
    /// or are looked at elsewhere.
    fn options(&mut self, args: &[Word], named: &str, texts: &str, takes_names: bool) {
        let mut args = args.iter();
        let mut is_over = false;
        while let Some(arg) = args.next() {
            let Some(cluster) = arg
                .literal()
                .filter(|it| !is_over && it.len() > 1)
                .and_then(|it| it.strip_prefix('-'))
            else {
                let start = literal_start(arg);
                let has_value = start.contains(|it| named.contains(it) || texts.contains(it));
                self.is_open |=
                    !is_over && !has_value && !named.is_empty() && composes(arg, "-", false);
                is_over |= takes_names && arg.is_literal();
                if takes_names {
                    self.name(arg);
                } else if !arg.is_literal() {
                    // It may become an option.
                    self.expansion(arg);
                }
                continue;
            };
            is_over |= cluster == "-";
            let Some(at) = cluster.find(|it| named.contains(it) || texts.contains(it)) else {
                continue;
            };
            let is_name = cluster[at..].starts_with(|it| named.contains(it));
            let attached = cluster.get(at + 1..).filter(|it| !it.is_empty());
            match (attached, is_name) {
                (None, true) => args.next().into_iter().for_each(|it| self.name(it)),
                (None, false) => drop(args.next()),
                (Some(name), true) => self.name_as_written(name),
                (Some(_), false) => {}
            }
        }
    }

    /// `-v` in front of the format.
    fn variable_of_printf(&mut self, args: &[Word]) {
        for (i, arg) in args.iter().enumerate() {
            if let Some(text) = arg.literal() {
                match text.strip_prefix("-v") {
                    Some("") => args.get(i + 1).into_iter().for_each(|it| self.name(it)),
                    Some(name) => self.name_as_written(name),
                    None => {}
                }
                return;
            }
            self.is_open |= composes(arg, "-v", false);
            let begins_open =
                arg.spans.first().is_some_and(|it| it.start == 0 && it.piece != PieceKind::Quoted);
            if begins_open || arg.has_glob() {
                self.expansion(arg);
            }
            // What may come to nothing leaves its place to the next word.
            if arg.spans.iter().all(|it| it.piece != PieceKind::Open { quoted: false }) {
                return;
            }
        }
    }

    /// The words of a test. An operand next to its operator is one, whatever it is; in any other place a word that
    /// is not known may become the operator `-v`.
    fn test(&mut self, args: &[Word]) {
        let at = |i: Option<usize>| i.and_then(|it| args.get(it)).and_then(Word::literal);
        let joins = |it: &str| args.len() == 3 && matches!(it, "-a" | "-o");
        for (i, word) in args.iter().enumerate() {
            let before = at(i.checked_sub(1));
            let follows = before.is_some_and(|it| compares(it) || joins(it));
            if let Some(text) = word.literal() {
                if matches!(text, "-v" | "-R") && !follows {
                    args.get(i + 1).into_iter().for_each(|it| self.name(it));
                }
                continue;
            }
            let is_one = !word.has_glob()
                && word.spans.iter().all(|it| it.piece != PieceKind::Open { quoted: false });
            let begins_plain =
                word.spans.first().is_none_or(|it| it.start > 0 || it.piece == PieceKind::Quoted);
            let is_operand = follows
                || at(Some(i + 1)).is_some_and(|it| compares(it) || joins(it))
                || before.is_some_and(|it| is_unary(it) || args.len() == 2 && joins_or_asks(it))
                || args.len() == 1
                || args.len() == 2 && before == Some("!");
            if !(is_one && (is_operand || begins_plain && !word.text.is_empty())) {
                self.expansion(word);
            }
            if !is_operand || !is_one && word.text.starts_with('-') {
                self.is_open |= ["-v", "-R"].iter().any(|it| composes(word, it, true));
            }
        }
    }

    /// Variables that are declared, with what they are given.
    fn declared(&mut self, args: &[Word], has_subscripts: bool) {
        let flags: String = args.iter().filter_map(|it| it.text.strip_prefix('-')).collect();
        for arg in args.iter().filter(|it| !it.text.starts_with(['-', '+'])) {
            let (name, value) = match arg.text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.text.as_str(), None),
            };
            let is_plain = |at: usize| arg.spans.iter().all(|it| at < it.start || it.end <= at);
            let name = name.strip_suffix('+').unwrap_or(name);
            if has_subscripts {
                match arg.spans.first() {
                    Some(it) if it.start < name.len() && it.piece != PieceKind::Quoted => {
                        self.expansion(arg);
                    }
                    _ => self.name_as_written(name),
                }
            }
            // From now on each of its values is evaluated.
            let is_evaluated = flags.contains(['i', 'n']);
            if is_evaluated && is_plain(name.len()) {
                self.names.push(name.to_owned());
            }
            let Some(value) = value else { continue };
            let at = arg.text.len() - value.len();
            // A list in quotes is read once more, as one without them.
            let is_list = value.starts_with('(') && !is_plain(at);
            let is_array = flags.contains(['a', 'A']) && !is_plain(at) && !value.is_empty();
            if is_list || is_array && (value.starts_with('(') || !arg.is_known()) {
                self.is_open |= value.contains(['$', '`']);
            }
            if is_evaluated {
                self.sum(&super::named::shortened(arg, value));
            }
        }
    }
}

/// The name of a variable that is expanded as it is.
fn variable(text: &str) -> Option<String> {
    let name = text.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(name);
    let is_name = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    match name {
        "@" | "*" => Some("@".to_owned()),
        _ if name.starts_with(|c: char| c.is_ascii_digit()) => Some("@".to_owned()),
        _ => (!name.is_empty() && is_name).then(|| name.to_owned()),
    }
}

/// Whether it is between two operands of a test.
fn compares(text: &str) -> bool {
    matches!(
        text,
        "=" | "=="
            | "!="
            | "<"
            | ">"
            | "-eq"
            | "-ne"
            | "-lt"
            | "-le"
            | "-gt"
            | "-ge"
            | "-nt"
            | "-ot"
            | "-ef"
    )
}

/// Whether it joins two tests, and asks about a file or an option where there is only one word after it.
fn joins_or_asks(text: &str) -> bool {
    matches!(text, "-a" | "-o")
}

/// Whether it is in front of the operand of a test, and evaluates no name.
fn is_unary(text: &str) -> bool {
    let letter = text.strip_prefix('-').filter(|it| it.len() == 1);
    letter.is_some_and(|it| "bcdefghknprstuwxzGLNOS".contains(it))
}
