//! Which part of a text is a fenced code block, known while the text arrives.
//!
//! Two readers need it: tags in code are left as they are, and a block of
//! code is not split. It follows CommonMark (three or more backticks or tildes, closed by as many
//! of the same), except that a fence may be indented by any number of blanks and `>`, as it is in
//! lists and quotes, and that a line of more than [`MAX_LINE`] bytes opens nothing.

/// Bytes of a line that opens a fence at most; it is repeated where the block is split.
const MAX_LINE: usize = 256;

/// Reads a text piece by piece. Every byte is looked at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fences {
    line: LineStart,
    /// The line so far, while it may open a fence.
    text: String,
    /// Bytes of the line.
    n_bytes: usize,
    open: Option<Fence>,
}

/// A fence that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// The line that opened it, with its info string and without its end.
    pub(super) opening: String,
    /// The line that closes it.
    pub(super) closing: String,
    mark: u8,
    length: usize,
}

/// How the line has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineStart {
    /// Blanks and quote marks, or nothing.
    #[default]
    Blank,
    /// Then a run of one mark.
    Run { mark: u8, length: usize },
    /// Then the info string; of a closing line, blanks.
    AfterRun { mark: u8, length: usize },
    /// It is not a line of a fence.
    Other,
}

impl Fences {
    pub(super) fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.line == LineStart::Other {
                let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) else {
                    self.n_bytes += rest.len();
                    return;
                };
                rest = &rest[end + 1..];
                self.end_line();
                continue;
            }
            let mut chars = rest.chars();
            if let Some(c) = chars.next() {
                self.take(c);
            }
            rest = chars.as_str();
        }
    }

    /// Returns the fence that the text is in.
    pub(super) fn inside(&self) -> Option<&Fence> {
        self.open.as_ref()
    }

    /// Returns whether the line looks as if it opened a fence.
    pub(super) fn is_opening(&self) -> bool {
        self.open.is_none()
            && match self.line {
                LineStart::Run { length, .. } => 3 <= length,
                LineStart::AfterRun { .. } => true,
                LineStart::Blank | LineStart::Other => false,
            }
    }

    /// Returns whether the line opens a fence with tildes, which nothing in the line can undo.
    pub(super) fn is_opening_for_sure(&self) -> bool {
        let (LineStart::Run { mark, .. } | LineStart::AfterRun { mark, .. }) = self.line else {
            return false;
        };
        mark == b'~' && self.is_opening()
    }

    /// Returns whether the line, inside a fence, may still become the one that closes it.
    pub(super) fn may_be_closing(&self) -> bool {
        self.open.is_some() && self.line != LineStart::Other
    }

    /// Returns whether nothing but blanks and quote marks is on the line.
    pub(super) fn at_start(&self) -> bool {
        self.line == LineStart::Blank
    }

    /// Returns whether nothing is on the line.
    pub(super) fn is_line_empty(&self) -> bool {
        self.n_bytes == 0
    }

    fn take(&mut self, c: char) {
        if c == '\n' {
            return self.end_line();
        }
        self.n_bytes += c.len_utf8();
        let mark = u8::try_from(c).unwrap_or(0);
        self.line = match (self.line, mark, &self.open) {
            (LineStart::Blank, b' ' | b'\t' | b'>', _) => LineStart::Blank,
            (LineStart::Blank, b'`' | b'~', None) => LineStart::Run { mark, length: 1 },
            (LineStart::Blank, _, Some(fence)) if fence.mark == mark => {
                LineStart::Run { mark, length: 1 }
            }
            (LineStart::Run { mark: of, length }, _, _) if of == mark => {
                LineStart::Run { mark, length: length + 1 }
            }
            (LineStart::Run { mark, length } | LineStart::AfterRun { mark, length }, _, None)
                if 3 <= length && (mark == b'~' || c != '`') =>
            {
                LineStart::AfterRun { mark, length }
            }
            (
                LineStart::Run { mark, length } | LineStart::AfterRun { mark, length },
                b' ' | b'\t' | b'\r',
                Some(fence),
            ) if fence.length <= length => LineStart::AfterRun { mark, length },
            _ => LineStart::Other,
        };
        if MAX_LINE < self.n_bytes {
            self.line = LineStart::Other;
        }
        if self.open.is_none() && self.line != LineStart::Other {
            self.text.push(c);
        }
    }

    fn end_line(&mut self) {
        if let LineStart::Run { mark, length } | LineStart::AfterRun { mark, length } = self.line {
            match &self.open {
                Some(fence) if fence.length <= length => self.open = None,
                None if 3 <= length => self.open = Some(self.fence(mark, length)),
                _ => {}
            }
        }
        self.line = LineStart::Blank;
        self.text.clear();
        self.n_bytes = 0;
    }

    fn fence(&self, mark: u8, length: usize) -> Fence {
        let opening = self.text.trim_end().to_owned();
        let indent = opening.find(char::from(mark)).unwrap_or(0);
        let closing = opening[..indent + length].to_owned();
        Fence { opening, closing, mark, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text up to the bar, and the line that opened the fence there.
    #[track_caller]
    fn check(text: &str, opening: Option<&str>) {
        for step in [1, 2, 3, text.len().max(1)] {
            let mut fences = Fences::default();
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(step) {
                fences.push(&String::from_iter(piece));
            }
            let found = fences.inside().map(|it| it.opening.as_str());
            assert_eq!(found, opening, "{text:?} in steps of {step}");
        }
    }

    // REQ: OUT-1, OUT-3
    #[test]
    fn fences_open_and_close_as_in_markdown() {
        for (text, opening) in [
            ("", None),
            ("```", None),
            ("```\n", Some("```")),
            ("```rust\nfn", Some("```rust")),
            ("``` rust ignore  \r\n", Some("``` rust ignore")),
            ("``\n", None),
            ("a ```\n", None),
            ("```a`b\n", None),
            ("~~~a`b\n", Some("~~~a`b")),
            ("~~~~\n~~~\n", Some("~~~~")),
            ("~~~~\n~~~~~ \n", None),
            ("```\n~~~\n", Some("```")),
            ("```\n``` x\n", Some("```")),
            ("```\n  ```\t\n", None),
            ("```\n```\n```b\n", Some("```b")),
            ("1. a\n      ```sh\n", Some("      ```sh")),
            ("> ```sh\n> ls\n", Some("> ```sh")),
            ("> ```sh\n> ```\n", None),
            ("`~~\n", None),
            ("~~~é\n", Some("~~~é")),
        ] {
            check(text, opening);
        }
        check(&format!("```{}\n", "x".repeat(MAX_LINE)), None);
    }

    // REQ: OUT-3
    #[test]
    fn closing_line_has_the_indent_and_the_marks_of_the_opening_one() {
        let mut fences = Fences::default();
        fences.push("> ~~~~~ sh -x\n");
        assert_eq!(fences.inside().unwrap().closing, "> ~~~~~");
    }
}
