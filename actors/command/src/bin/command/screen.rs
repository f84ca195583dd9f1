//! Draws one prompt while it runs: the answer on standard output, progress on standard error.
//!
//! The answer is streamed where standard output is a terminal and text was asked for. The line of
//! progress is drawn where both are terminals that can erase a line, never on a line on which the
//! answer is, and erased before anything else is written. Elsewhere only notes are written, and
//! the answer follows at the end.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use ennead::Event;
use ennead_command::{
    exit::Failure,
    print_view::{PrintPiece, PrintView},
};
use ennead_runtime::output::{OutputSettings, terminal::clean};
use rustix::termios::tcgetwinsize;

use crate::show;

/// Columns of a terminal that does not give its own number.
const COLUMNS: usize = 80;

#[derive(Debug)]
pub(crate) struct Screen {
    view: PrintView,
    /// The answer is shown as it comes.
    streams: bool,
    /// There is a line of progress.
    has_progress: bool,
    /// The answer ends in the middle of a line.
    in_line: bool,
    /// A question is on the screen, and nothing is drawn below it.
    asks: bool,
    /// The line of progress as it is drawn; empty when it is not.
    drawn: String,
    /// Why nothing more can be written to standard output.
    broken: Option<Failure>,
}

impl Screen {
    /// Makes a screen for a run whose result is text, or is something else that is printed at its end.
    pub(crate) fn new(is_text: bool) -> Self {
        let streams = is_text && io::stdout().is_terminal();
        let can_erase = std::env::var_os("TERM").is_some_and(|it| !it.is_empty() && it != "dumb");
        let has_progress = io::stdout().is_terminal() && io::stderr().is_terminal() && can_erase;
        let (in_line, asks, drawn, broken) = (false, false, String::new(), None);
        Self { view: PrintView::new(), streams, has_progress, in_line, asks, drawn, broken }
    }

    /// Shows what happened at `now_ms`, milliseconds since 1970.
    pub(crate) fn observe(&mut self, now_ms: u64, event: &Event, output: &Arc<OutputSettings>) {
        let mut shown = Vec::new();
        self.view.observe(now_ms, event, output, &mut shown);
        for it in shown {
            match it {
                PrintPiece::Note(text) | PrintPiece::Denied(text) => self.note(&text),
                PrintPiece::Answer(text) if self.streams => self.write(&text),
                PrintPiece::MessageEnd if self.streams => self.end_line(),
                PrintPiece::Withdrawn if self.streams => {
                    self.end_line();
                    self.write("[withdrawn: the answer above does not count]\n");
                }
                _ => {}
            }
        }
        self.draw();
    }

    /// Shows a question on the screen; nothing is drawn below it until it is answered.
    pub(crate) fn ask(&mut self, question: &str) {
        self.erase();
        self.end_line();
        show::draw(question);
        self.asks = true;
    }

    /// Sets whether a question is on the screen.
    pub(crate) fn is_asking(&mut self, asks: bool) {
        self.asks = asks;
    }

    /// Shows the answer at the end of a run, if it was not shown as it came.
    ///
    /// # Errors
    ///
    /// It could not be written, now or before.
    pub(crate) fn answer(&mut self, text: &str) -> Result<(), Failure> {
        self.erase();
        self.end_line();
        if let Some(failure) = self.broken.take() {
            return Err(failure);
        }
        if text.is_empty() || self.streams && self.view.last_message() == clean(text) {
            return Ok(());
        }
        show::answer(text)
    }

    /// Shows the last line: what names the session, and where all of it can be read.
    pub(crate) fn finish(&mut self, session: &str, transcript: &str) {
        self.erase();
        self.end_line();
        if self.has_progress {
            show::problem(&format!("session {session}; transcript {transcript}"));
        }
        self.has_progress = false;
    }

    fn note(&mut self, text: &str) {
        self.erase();
        if self.has_progress {
            self.end_line();
        }
        show::problem(text);
    }

    fn write(&mut self, text: &str) {
        self.erase();
        self.in_line = !text.ends_with('\n');
        if self.broken.is_none() {
            self.broken = show::piece(text).err();
        }
    }

    fn end_line(&mut self) {
        if self.in_line {
            self.write("\n");
        }
    }

    fn draw(&mut self) {
        if !self.has_progress || self.in_line || self.asks {
            return;
        }
        let columns = tcgetwinsize(io::stderr()).map_or(0, |it| usize::from(it.ws_col));
        let columns = if columns == 0 { COLUMNS } else { columns };
        // Room for the `^C` that a terminal writes after it; one that meets the last column begins
        // the next line, and the first could not be erased.
        let mut line = self.view.status();
        line.truncate(columns.saturating_sub(3));
        if line != self.drawn {
            show::draw(&format!("\r\x1b[2K{line}"));
            self.drawn = line;
        }
    }

    fn erase(&mut self) {
        if !std::mem::take(&mut self.drawn).is_empty() {
            show::draw("\r\x1b[2K");
        }
    }
}

impl Drop for Screen {
    /// Leaves a clean line to whatever is written next.
    fn drop(&mut self) {
        self.erase();
        self.end_line();
    }
}
