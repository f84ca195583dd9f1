//! Programs of `awk`, read for what runs another program or writes a file.
//!
//! Source: the manual of GNU awk 5.2, "Redirecting Output", "Using getline", "Input/Output Functions".

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

fn program_is_harmless(program: &str) -> bool {
    let mut rest = program.chars().peekable();
    // How deep `print` is, while its arguments are read.
    let (mut depth, mut printing) = (0_usize, None);
    let mut ends_value = false;
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                if !skip(&mut rest, '"') {
                    return false;
                }
                ends_value = true;
            }
            '/' if !ends_value => {
                if !skip(&mut rest, '/') {
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
            '>' if printing == Some(depth) => return false,
            '(' | '[' => {
                depth += 1;
                ends_value = false;
            }
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                ends_value = true;
            }
            ';' | '\n' | '{' | '}' => {
                printing = None;
                ends_value = false;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|it| it.is_alphanumeric() || *it == '_') {
                    word.push(c);
                }
                match word.as_str() {
                    "system" | "getline" => return false,
                    "print" | "printf" => printing = Some(depth),
                    _ => {}
                }
                ends_value =
                    !matches!(word.as_str(), "print" | "printf" | "return" | "in" | "case");
            }
            c if c.is_whitespace() => {}
            '$' => ends_value = false,
            _ => ends_value = false,
        }
    }
    true
}

/// Up to the end of a string or pattern; false when it has none.
fn skip(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) -> bool {
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '\n' => return false,
            c if c == end => return true,
            _ => {}
        }
    }
    false
}
