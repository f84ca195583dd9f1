//! Source 5: the index of what the model noted in earlier sessions.

use super::{SourceTexts, titled};

/// Lines of the index that are shown.
pub const MAX_MEMORY_LINES: usize = 200;

/// Bytes of the index that are shown.
pub const MAX_MEMORY_BYTES: usize = 25_000;

/// The start of an index, cut to whole lines within both limits.
pub fn index_start(index: &str) -> &str {
    let mut end = 0;
    for line in index.split_inclusive('\n').take(MAX_MEMORY_LINES) {
        if end + line.len() > MAX_MEMORY_BYTES {
            break;
        }
        end += line.len();
    }
    &index[..end]
}

/// The index; `None` when there is none.
pub(super) fn text(texts: &SourceTexts) -> Option<String> {
    let index = index_start(texts.auto_memory.as_deref()?).trim();
    let title = "Notes of earlier sessions; they may be out of date.";
    (!index.is_empty()).then(|| titled(title, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn index_is_cut_at_200_lines_or_25_kilobytes() {
        assert_eq!(index_start(&"a line\n".repeat(300)).lines().count(), 200);
        let long = format!("{}\n", "\u{e9}".repeat(200));
        assert_eq!(index_start(&long.repeat(100)).lines().count(), 25_000 / 401);
        assert_eq!(index_start("one"), "one");
    }
}
