//! Text for the model: numbered lines, cut lines, excerpts, and where the rest was put.

use std::{borrow::Cow, fmt::Write, path::PathBuf};

use ennead_runtime::{ids::ToolUseId, ports::ToolContext};

/// Characters of one line that are shown.
pub(crate) const MAX_LINE_CHARS: usize = 2000;

/// Writes lines as `cat -n` does: the number right-aligned in six columns, a tab, the line.
pub(crate) fn push_numbered(out: &mut String, number: usize, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{number:>6}\t{line}");
}

/// Returns the line, cut to this many characters if it is longer, with a mark at the cut.
pub(crate) fn cut_line(line: &str, max_chars: usize) -> Cow<'_, str> {
    match line.char_indices().nth(max_chars) {
        None => Cow::Borrowed(line),
        Some((at, _)) => {
            let n_left_out = line[at..].chars().count();
            Cow::Owned(format!("{}… [{n_left_out} more characters]", &line[..at]))
        }
    }
}

/// Returns the first characters of a text, cut after a line if one ends in the second half of them.
pub(crate) fn head(text: &str, max_chars: usize) -> &str {
    let Some((at, _)) = text.char_indices().nth(max_chars) else { return text };
    match text[..at].rfind('\n') {
        Some(end) if end * 2 >= at => &text[..=end],
        _ => &text[..at],
    }
}

/// Returns the last characters of a text, cut before a line if one begins in the first half of them.
pub(crate) fn tail(text: &str, max_chars: usize) -> &str {
    let n_chars = text.chars().count();
    let Some(n_skipped) = n_chars.checked_sub(max_chars).filter(|n| *n > 0) else { return text };
    let at = text.char_indices().nth(n_skipped).map_or(text.len(), |(at, _)| at);
    let tail = &text[at..];
    match tail.find('\n') {
        Some(end) if end * 2 <= tail.len() => &tail[end + 1..],
        _ => tail,
    }
}

/// Returns where the output of a call is put when it is too long. The directory may not exist yet.
pub(crate) fn spill_path(context: &ToolContext, id: &ToolUseId) -> PathBuf {
    // An id comes from a model server, so it is not a file name until its odd characters are gone.
    let name: String = id
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
        .take(100)
        .collect();
    PathBuf::from(&*context.spill_directory).join(format!("{name}.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters_and_preferably_between_lines() {
        assert_eq!(cut_line("äöü", 3), "äöü");
        assert_eq!(cut_line("äöüß", 3), "äöü… [1 more characters]");
        assert_eq!(head("ab\ncd\nef", 7), "ab\ncd\n");
        assert_eq!(head("abcdefgh", 3), "abc");
        assert_eq!(head("äö", 2), "äö");
        assert_eq!(tail("ab\ncd\nef", 7), "cd\nef");
        assert_eq!(tail("äöü", 2), "öü");
        assert_eq!(tail("ab", 2), "ab");
    }

    #[test]
    fn lines_are_numbered_as_cat_does() {
        let mut out = String::new();
        push_numbered(&mut out, 9, "x");
        push_numbered(&mut out, 1_234_567, "y");
        assert_eq!(out, "     9\tx\n1234567\ty\n");
    }
}
