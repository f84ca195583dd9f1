//! The difference between two texts, as programs read it (`structuredPatch`).

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// Bytes of both texts together above which no difference is looked for: finding one can take time
/// that grows with the square of its length.
const MAX_BYTES: usize = 4 << 20;

/// One part of a patch. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hunk {
    old_start: usize,
    old_lines: usize,
    new_start: usize,
    new_lines: usize,
    /// Each with ` `, `-` or `+` in front.
    lines: Vec<String>,
}

/// Returns the parts in which two texts differ. Empty for texts of several megabytes.
pub(crate) fn structured_patch(old: &str, new: &str) -> Vec<Hunk> {
    if old.len() + new.len() > MAX_BYTES {
        return Vec::new();
    }
    let diff = TextDiff::from_lines(old, new);
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old_range = first.old_range().start..last.old_range().end;
        let new_range = first.new_range().start..last.new_range().end;
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value().trim_end_matches('\n');
            lines.push(format!("{sign}{line}"));
            if change.missing_newline() {
                lines.push("\\ No newline at end of file".into());
            }
        }
        hunks.push(Hunk {
            old_start: start_line(&old_range),
            old_lines: old_range.len(),
            new_start: start_line(&new_range),
            new_lines: new_range.len(),
            lines,
        });
    }
    hunks
}

/// Returns the first line of a range, or the line before it where the range is empty.
fn start_line(range: &std::ops::Range<usize>) -> usize {
    if range.is_empty() { range.start } else { range.start + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_counts_lines_from_one() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let hunks = structured_patch(old, &old.replace('5', "five\nand"));
        let lines = [" 2", " 3", " 4", "-5", "+five", "+and", " 6", " 7", " 8"];
        let expected = Hunk {
            old_start: 2,
            old_lines: 7,
            new_start: 2,
            new_lines: 8,
            lines: lines.map(String::from).to_vec(),
        };
        assert_eq!(hunks, [expected]);
        assert_eq!(structured_patch(old, old), []);
        let made = &structured_patch("", "a\n")[0];
        assert_eq!((made.old_start, made.old_lines, made.new_start, made.new_lines), (0, 0, 1, 1));
    }
}
