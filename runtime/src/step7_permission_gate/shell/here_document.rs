//! Here-documents: announced in a command, read after its line.

use super::{
    Fault,
    reader::ShellReader,
    word::{PieceKind, Word},
};

/// A here-document whose text is still to come.
#[derive(Debug)]
pub(super) struct Announced {
    number: usize,
    end: String,
    /// The shell expands nothing in it.
    is_quoted: bool,
    /// Tabs in front of its lines do not count.
    is_indented: bool,
}

impl ShellReader<'_> {
    /// Notes one, and gives its number.
    pub(super) fn announce(&mut self, end: &Word, is_indented: bool) -> usize {
        let number = self.documents.len();
        self.documents.push(Word::default());
        let is_quoted = end.spans.iter().any(|it| it.piece == PieceKind::Quoted);
        let end = end.text.clone();
        self.announced.push(Announced { number, end, is_quoted, is_indented });
        number
    }

    /// Reads all that were announced; called at the beginning of a line.
    pub(super) fn read_documents(&mut self) {
        for announced in std::mem::take(&mut self.announced) {
            let body = self.document(&announced);
            self.documents[announced.number] = if announced.is_quoted {
                let mut word = Word { text: body, ..Word::default() };
                word.mark(0, PieceKind::Quoted);
                word
            } else {
                self.expanded(&body)
            };
        }
    }

    /// Its lines, up to the one that ends it.
    fn document(&mut self, announced: &Announced) -> String {
        let mut body = String::new();
        while self.at < self.text.len() {
            let mut line = String::new();
            loop {
                let end = memchr::memchr(b'\n', self.rest().as_bytes());
                let piece = &self.rest()[..end.unwrap_or(self.rest().len())];
                self.at += piece.len() + usize::from(end.is_some());
                line.push_str(piece);
                let n_backslashes = line.bytes().rev().take_while(|it| *it == b'\\').count();
                if announced.is_quoted || n_backslashes % 2 == 0 || end.is_none() {
                    break;
                }
                // Goes on with the next one.
                line.pop();
            }
            let text = if announced.is_indented { line.trim_start_matches('\t') } else { &line };
            if text == announced.end {
                return body;
            }
            body.push_str(text);
            body.push('\n');
        }
        self.fail(Fault::Syntax);
        body
    }

    /// A text in which the shell expands, but which has no quotes.
    fn expanded(&mut self, body: &str) -> Word {
        let documents = std::mem::take(&mut self.documents);
        let mut inner = ShellReader::nested(body, self.depth(), documents);
        let mut word = Word::default();
        if inner.enter() {
            inner.double_quoted(&mut word, None);
        }
        self.absorb(inner);
        word
    }
}
