//! Programs of `awk`, read for what runs another program or writes a file.
//!
//! Source: the manual of GNU awk 5.2, "Redirecting Output", "Using getline", "Input/Output Functions".

use super::pattern;
use crate::step7_permission_gate::{command::options::is_long, shell::word::Word};

/// Returns whether a call reads, runs nothing and writes no file. What cannot be read does not count as such.
pub(super) fn is_harmless(args: &[Word]) -> bool {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with('-') || text.len() == 1 {
            break;
        }
        at += 1;
        match text {
            "-F" | "-v" | "--field-separator" | "--assign" => at += 1,
            _ if text.starts_with("-F") || text.starts_with("-v") => {}
            _ if text.contains('=')
                && (is_long(text, "--field-separator") || is_long(text, "--assign")) => {}
            // Files of programs, libraries, and what is not known.
            _ => return false,
        }
    }
    args.get(at).is_some_and(|it| it.is_known() && program_is_harmless(&it.text))
}

/// Words after which a `/` begins a pattern, as none of them has a value that could be divided.
const NO_VALUES: [&str; 9] =
    ["print", "printf", "return", "in", "case", "else", "do", "exit", "default"];

fn program_is_harmless(program: &str) -> bool {
    let mut rest = program.chars().peekable();
    // The brackets that are open, with whether they are those of a condition; and how many there were at `print`,
    // while its arguments are read.
    let (mut open, mut printing) = (Vec::new(), None);
    let (mut ends_value, mut begins_condition) = (false, false);
    // What is in front is a value for some versions alone.
    let mut is_unclear = false;
    while let Some(c) = rest.next() {
        let in_condition = std::mem::take(&mut begins_condition);
        let was_unclear = std::mem::take(&mut is_unclear);
        match c {
            '"' => {
                if !skip_text(&mut rest) {
                    return false;
                }
                ends_value = true;
            }
            '/' if was_unclear => return false,
            '/' if !ends_value => {
                if pattern::skip(&mut rest, '/').is_none() {
                    return false;
                }
                ends_value = true;
            }
            '#' => while rest.next_if(|it| *it != '\n').is_some() {},
            // Indirect calls and extensions.
            '@' | '`' | '\\' => return false,
            '|' => {
                if rest.next_if_eq(&'|').is_none() {
                    return false;
                }
                ends_value = false;
            }
            '>' if printing == Some(open.len()) => return false,
            '(' | '[' => {
                open.push(in_condition);
                ends_value = false;
            }
            // What follows a condition begins anew.
            ')' | ']' => ends_value = !open.pop().unwrap_or(false),
            ';' | '\n' | '{' | '}' => {
                printing = None;
                ends_value = false;
            }
            // Some versions begin a word right after a number.
            c if c.is_ascii_digit() => {
                while rest.next_if(char::is_ascii_digit).is_some() {}
                if rest.peek().is_some_and(|it| it.is_alphanumeric() || *it == '_') {
                    return false;
                }
                ends_value = true;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|it| it.is_alphanumeric() || *it == '_') {
                    word.push(c);
                }
                match word.as_str() {
                    "system" | "getline" => return false,
                    "print" | "printf" => printing = Some(open.len()),
                    "if" | "while" | "for" => begins_condition = true,
                    "length" => is_unclear = true,
                    _ => {}
                }
                ends_value = !NO_VALUES.contains(&word.as_str());
            }
            c if c.is_whitespace() => (begins_condition, is_unclear) = (in_condition, was_unclear),
            // After a value they belong to it, in front of one to that; mawk begins a pattern after them.
            '+' | '-' if rest.next_if_eq(&c).is_some() => is_unclear = true,
            _ => ends_value = false,
        }
    }
    true
}

/// Up to the end of a text in quotes; false when it has none.
fn skip_text(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '\n' => return false,
            '"' => return true,
            _ => {}
        }
    }
    false
}
