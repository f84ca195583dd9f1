//! Scripts of `sed`, read for the commands that run something or write a file.
//!
//! Source: the manual of GNU sed 4.9, "sed scripts" and "Command-Line Options".

use super::pattern;
use crate::step7_permission_gate::{
    command::options::{has_letter, is_long},
    shell::word::Word,
};

/// Returns whether a call reads, changes nothing and runs nothing. What cannot be read does not count as such.
pub(in super::super) fn is_harmless(args: &[Word]) -> bool {
    let texts = || args.iter().map(|it| it.text.as_str());
    let edits = texts().any(|it| has_letter(it, 'i', "efl") || is_long(it, "--in-place"));
    !edits && scripts_are_harmless(args)
}

/// Returns whether its scripts run nothing and write no file of their own.
pub(in super::super) fn scripts_are_harmless(args: &[Word]) -> bool {
    files(args).is_some_and(|it| !it.runs && it.writes.is_empty())
}

/// Returns whether its scripts can be read and run nothing. They may write files of their own.
pub(in super::super) fn start_nothing(args: &[Word]) -> bool {
    files(args).is_some_and(|it| !it.runs)
}

/// What scripts do besides editing.
#[derive(Debug, Default)]
pub(in super::super) struct Files {
    /// Files of `r` and `R`.
    pub(in super::super) reads: Vec<Word>,
    /// Files of `w` and `W`, and of the flag `w`.
    pub(in super::super) writes: Vec<Word>,
    /// Whether they run programs.
    runs: bool,
}

/// Returns the files that its scripts name; `None` when they cannot be read.
pub(in super::super) fn files(args: &[Word]) -> Option<Files> {
    let mut scripts: Vec<&Word> = Vec::new();
    let mut joined = Vec::new();
    let mut at = 0;
    let mut first_operand = None;
    while let Some(arg) = args.get(at) {
        at += 1;
        let text = arg.text.as_str();
        if !arg.is_known() && text.starts_with('-') {
            return None;
        }
        if text == "--" {
            first_operand = first_operand.or(args.get(at));
            break;
        } else if is_long(text, "--file") || has_letter(text, 'f', "el") {
            return None;
        } else if is_long(text, "--expression") {
            match text.split_once('=') {
                Some((_, script)) => joined.push(script.to_owned()),
                None => scripts.extend(args.get(at)),
            }
            at += usize::from(!text.contains('='));
        } else if has_letter(text, 'e', "fl") {
            match text.split_once('e').map_or("", |it| it.1) {
                "" => {
                    scripts.extend(args.get(at));
                    at += 1;
                }
                script => joined.push(script.to_owned()),
            }
        } else if !text.starts_with('-') || text == "-" {
            first_operand = first_operand.or(Some(arg));
        }
    }
    if scripts.is_empty() && joined.is_empty() {
        scripts.extend(first_operand);
    }
    if !scripts.iter().all(|it| it.is_known()) {
        return None;
    }
    joined.extend(scripts.iter().map(|it| it.text.clone()));
    let mut found = Files::default();
    joined.iter().try_for_each(|it| script(it, &mut found))?;
    Some(found)
}

/// Adds what a script does; `None` when it cannot be read.
fn script(script: &str, found: &mut Files) -> Option<()> {
    let mut rest = script.chars().peekable();
    loop {
        while rest.next_if(|it| it.is_whitespace() || matches!(it, ';' | '{' | '}')).is_some() {}
        if rest.peek().is_none() {
            return Some(());
        }
        address(&mut rest)?;
        if rest.next_if_eq(&',').is_some() {
            blanks(&mut rest);
            if rest.next_if(|it| matches!(it, '+' | '~')).is_none() {
                address(&mut rest)?;
            } else {
                while rest.next_if(char::is_ascii_digit).is_some() {}
            }
        }
        blanks(&mut rest);
        while rest.next_if(|it| *it == '!' || it.is_whitespace()).is_some() {}
        match rest.next()? {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x'
            | 'z' | 'F' => {}
            'q' | 'Q' | 'l' | 'L' => {
                blanks(&mut rest);
                while rest.next_if(char::is_ascii_digit).is_some() {}
            }
            'a' | 'i' | 'c' | '#' => text(&mut rest),
            ':' | 'b' | 't' | 'T' => {
                label(&mut rest)?;
            }
            'r' | 'R' => found.reads.push(file(&mut rest)),
            'w' | 'W' => found.writes.push(file(&mut rest)),
            'e' => {
                found.runs = true;
                text(&mut rest);
            }
            'y' => {
                let end = rest.next().filter(|it| !matches!(it, '\n' | '\\'))?;
                until(&mut rest, end)?;
                until(&mut rest, end)?;
            }
            's' => {
                let end = rest.next()?;
                pattern(&mut rest, end)?;
                until(&mut rest, end)?;
                while let Some(flag) = rest.next_if(|it| it.is_ascii_alphanumeric()) {
                    match flag {
                        'e' => found.runs = true,
                        'w' => {
                            found.writes.push(file(&mut rest));
                            break;
                        }
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' => {}
                        flag if flag.is_ascii_digit() => {}
                        _ => return None,
                    }
                }
            }
            _ => return None,
        }
    }
}

/// The name of a file, to the end of the line.
fn file(rest: &mut Rest<'_>) -> Word {
    blanks(rest);
    let mut name = String::new();
    while let Some(c) = rest.next_if(|it| *it != '\n') {
        name.push(c);
    }
    Word::plain(&name)
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn blanks(rest: &mut Rest<'_>) {
    while rest.next_if(|it| *it == ' ' || *it == '\t').is_some() {}
}

/// An address, if one is here.
fn address(rest: &mut Rest<'_>) -> Option<()> {
    match rest.peek() {
        Some('/') => {
            rest.next();
            pattern(rest, '/')?;
            while rest.next_if(|it| matches!(it, 'I' | 'M')).is_some() {}
        }
        Some('\\') => {
            rest.next();
            let end = rest.next()?;
            pattern(rest, end)?;
            while rest.next_if(|it| matches!(it, 'I' | 'M')).is_some() {}
        }
        Some('$') => drop(rest.next()),
        _ => while rest.next_if(|it| it.is_ascii_digit() || *it == '~').is_some() {},
    }
    blanks(rest);
    Some(())
}

/// A label. Some versions end it at a blank and read on, for others that is a part of it: then it is not read.
fn label(rest: &mut Rest<'_>) -> Option<()> {
    blanks(rest);
    while rest.next_if(|it| !it.is_whitespace() && !matches!(it, ';' | '}')).is_some() {}
    blanks(rest);
    matches!(rest.peek(), None | Some(';' | '\n' | '}')).then_some(())
}

/// A regular expression, up to its delimiter.
fn pattern(rest: &mut Rest<'_>, end: char) -> Option<()> {
    if end == '\n' || end == '\\' {
        return None;
    }
    pattern::skip(rest, end)
}

/// Up to a delimiter, in which brackets mean nothing.
fn until(rest: &mut Rest<'_>, end: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\\' => drop(rest.next()?),
            c if c == end => return Some(()),
            _ => {}
        }
    }
}

/// A line, and those that a backslash joins to it.
fn text(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '\n' => return,
            _ => {}
        }
    }
}
