//! Which operands of a known program are files that it writes.
//!
//! Alone because a wrong refusal stops an agent: what is only read here is not counted.

use super::shell_text::Word;
use crate::step7_permission_gate::shell_words::FILE_WRITERS;

/// The files that `name` writes, and whether their names are open.
pub(super) fn written<'a>(name: &str, operands: &[&'a Word]) -> Vec<(&'a str, bool)> {
    if !FILE_WRITERS.contains(&name) {
        return Vec::new();
    }
    let plain: Vec<_> = operands.iter().filter(|it| !it.text.starts_with('-')).collect();
    let all = || plain.iter().map(|it| (it.text.as_str(), it.open));
    match name {
        "cp" | "ln" => {
            let mut found = into(operands);
            // A link to a single operand is made where the shell is.
            found.extend(all().skip(1).last());
            found
        }
        "dd" => all().filter_map(|(it, open)| Some((it.strip_prefix("of=")?, open))).collect(),
        "sed" if !operands.iter().any(|it| edits_in_place(&it.text)) => Vec::new(),
        "install" | "mv" => into(operands).into_iter().chain(all()).collect(),
        _ => all().collect(),
    }
}

/// The directory of `-t` and `--target-directory`.
fn into<'a>(operands: &[&'a Word]) -> Vec<(&'a str, bool)> {
    let mut found = Vec::new();
    for (i, option) in operands.iter().enumerate() {
        let text = option.text.as_str();
        let behind = match text.strip_prefix("--") {
            // GNU options may be cut anywhere.
            Some(long) if long.starts_with('t') => text.split_once('=').map_or("", |it| it.1),
            Some(_) => continue,
            None if text.starts_with('-') && text.contains('t') => {
                text.split_once('t').map_or("", |it| it.1)
            }
            None => continue,
        };
        match behind {
            "" => found.extend(operands.get(i + 1).map(|it| (it.text.as_str(), it.open))),
            behind => found.push((behind, option.open)),
        }
    }
    found
}

fn edits_in_place(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => long.starts_with('i'),
        None => option.starts_with('-') && option.contains('i'),
    }
}
