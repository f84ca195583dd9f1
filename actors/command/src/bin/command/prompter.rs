//! Asks the person at the terminal about calls, one question after another.

use std::{collections::VecDeque, io, io::IsTerminal, thread};

use ennead::{Event, SessionHandle, data::QuestionKey, permission::Question};
use ennead_command::ask::{answer, question_text, typed};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::screen::Screen;

/// The name under which answers are recorded.
const SURFACE: &str = "terminal";

/// The questions that a person is asked.
pub(crate) struct Prompter {
    /// The first one is on the screen.
    waiting: VecDeque<QuestionKey>,
    /// The one that is on the screen, as it was listed.
    shown: Option<Question>,
    lines: Lines,
}

/// Returns whether there is a person who can be asked: what is asked is seen, and what is typed is read.
pub(crate) fn is_somebody_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

impl Prompter {
    /// Begins with what is open already: a run that was resumed may wait.
    pub(crate) fn new(session: &SessionHandle) -> Self {
        let waiting = session.approvals().iter().map(Question::key).collect();
        Self { waiting, shown: None, lines: Lines::default() }
    }

    /// Takes note of questions that open and end.
    pub(crate) fn observe(&mut self, event: &Event) {
        match event {
            Event::PermissionAsked { key, .. } if !self.waiting.contains(key) => {
                self.waiting.push_back(key.clone());
            }
            Event::PermissionSettled { id, .. } => {
                self.waiting.retain(|it| it.id != *id);
                self.shown.take_if(|it| it.id == *id);
            }
            Event::Agent { event, .. } => self.observe(event),
            _ => {}
        }
    }

    /// Shows the next question, if none is on the screen.
    pub(crate) fn show(&mut self, session: &SessionHandle, screen: &mut Screen) {
        if self.shown.is_some() {
            return;
        }
        screen.is_asking(false);
        let open = session.approvals();
        // One that is not open any more has been settled since.
        self.waiting.retain(|key| open.iter().any(|it| it.key() == *key));
        let Some(key) = self.waiting.front() else { return };
        let Some(question) = open.iter().find(|it| it.key() == *key).cloned() else { return };
        // What was typed before the question was seen answers nothing.
        let _ignored = tcflush(io::stdin(), QueueSelector::IFlush);
        screen.ask(&question_text(&question));
        self.shown = Some(question);
        self.lines.want();
    }

    /// Waits for a line.
    pub(crate) async fn line(&mut self) -> Option<String> {
        self.lines.next().await
    }

    /// Takes a line; where it is not an answer the question is asked again. At the end of input nobody is
    /// there any more, which is a no.
    pub(crate) async fn take(
        &mut self,
        line: Option<String>,
        session: &SessionHandle,
        screen: &mut Screen,
    ) {
        let Some(question) = &self.shown else { return };
        let line_typed = match &line {
            Some(line) => typed(line, question),
            None => Some(ennead_command::ask::Typed::No),
        };
        let Some(line_typed) = line_typed else {
            screen.ask(&question_text(question));
            return self.lines.want();
        };
        // Somebody else may have answered, or the run has ended.
        let _answered =
            session.answer(&question.key(), SURFACE, answer(line_typed, question)).await;
        self.waiting.retain(|it| it.id != question.id);
        self.shown = None;
    }
}

/// Lines of standard input, read on a thread of their own when they are wanted: a terminal cannot be
/// waited for otherwise. The thread ends with the process.
#[derive(Default)]
struct Lines {
    reader: Option<(UnboundedSender<()>, UnboundedReceiver<Option<String>>)>,
    /// A line is being waited for.
    is_wanted: bool,
}

impl Lines {
    fn want(&mut self) {
        let (wanted, _) = self.reader.get_or_insert_with(|| {
            let ((want, mut wanted), (send, lines)) = (unbounded_channel(), unbounded_channel());
            thread::spawn(move || {
                while wanted.blocking_recv() == Some(()) {
                    let mut line = String::new();
                    let read = io::stdin().read_line(&mut line);
                    let line = read.ok().filter(|n| 0 < *n).map(|_| line);
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
            (want, lines)
        });
        // A line that is wanted already answers the question that is shown when it comes.
        if !std::mem::replace(&mut self.is_wanted, true) {
            let _gone = wanted.send(());
        }
    }

    async fn next(&mut self) -> Option<String> {
        match &mut self.reader {
            Some((_, lines)) if self.is_wanted => {
                let line = lines.recv().await.flatten();
                self.is_wanted = false;
                line
            }
            _ => std::future::pending().await,
        }
    }
}
