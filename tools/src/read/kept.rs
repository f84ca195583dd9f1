//! Long lines of a file: cut, or in pieces where the file is a result that the session keeps.
//!
//! A mark in the place of a cut result names such a file and promises its whole text. Output of programs is often one
//! line, and a reader that shows the beginning of each line would break the promise.

use std::path::Path;

use crate::output::MAX_LINE_CHARS;

/// The directory of kept results, next to the transcript; those of sub-agents are in directories below it.
const KEPT: &str = "tool-results";

/// What becomes of long lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongLines {
    /// Their beginning is shown.
    Cut,
    /// They count as several lines, of `MAX_LINE_CHARS` characters each.
    InPieces,
}

impl LongLines {
    /// Decides by where the file really is. `spill` is where the session keeps long output of the call; links on the way
    /// to it are followed.
    pub(super) fn in_file(real: &Path, spill: &str) -> Self {
        let (Some(_), Some(kept)) = (kept_directory(real), kept_directory(Path::new(spill))) else {
            return Self::Cut;
        };
        let is_kept =
            real.starts_with(kept) || kept.canonicalize().is_ok_and(|kept| real.starts_with(kept));
        if is_kept { Self::InPieces } else { Self::Cut }
    }

    /// Returns the lines of a text, those that are too long in pieces where that is due. Cost: linear in the text.
    pub(super) fn split(self, text: &str) -> Vec<&str> {
        let lines = text.split_terminator('\n');
        match self {
            Self::Cut => lines.collect(),
            Self::InPieces => lines.flat_map(pieces).collect(),
        }
    }
}

/// The directory of all kept results of a session that a path is in.
fn kept_directory(path: &Path) -> Option<&Path> {
    path.ancestors().find(|it| it.file_name().is_some_and(|name| name == KEPT))
}

/// A line in pieces that are shown whole; an empty line is one.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut left = Some(line);
    std::iter::from_fn(move || {
        let line = left?;
        let end = match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => end,
            None => line.len(),
        };
        left = Some(&line[end..]).filter(|it| !it.is_empty());
        Some(&line[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SHP-3
    #[test]
    fn pieces_are_the_line_and_fall_between_characters() {
        for line in ["", "ab", &"ä".repeat(2_000), &"ä".repeat(2_001), &"x".repeat(6_000)] {
            let found: Vec<&str> = pieces(line).collect();
            assert_eq!(found.concat(), line);
            assert_eq!(found.len(), line.chars().count().div_ceil(MAX_LINE_CHARS).max(1));
            assert!(found.iter().all(|it| it.chars().count() <= MAX_LINE_CHARS));
        }
    }

    // REQ: SHP-3
    #[test]
    fn files_of_agents_lie_below_those_of_the_session() {
        let of_agent = "/t/s/tool-results/agent-a1";
        for (file, spill, found) in [
            ("/t/s/tool-results/x.txt", "/t/s/tool-results", LongLines::InPieces),
            ("/t/s/tool-results/x.txt", of_agent, LongLines::InPieces),
            ("/t/other/tool-results/x.txt", of_agent, LongLines::Cut),
            ("/t/s/stored/x.txt", of_agent, LongLines::Cut),
            ("/w/tool-results/x.txt", "/t/s/tool-results", LongLines::Cut),
        ] {
            assert_eq!(LongLines::in_file(Path::new(file), spill), found, "{file}, {spill}");
        }
    }
}
