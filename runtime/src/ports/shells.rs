//! Commands that go on after the call that started them.
//!
//! The tools run them and read what they print; the session names them, bounds their number, and says
//! when they end.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};

use super::{BoxFuture, WorkGuard};
use crate::{
    block::Block,
    ids::{EntryId, ShellId},
    message::{Message, MessageKind},
    saturating::Saturating as _,
    step1_settings_resolution::ShellSettings,
    step3_context_assembly::reminder,
    transcript::entry::{RecordKind, ShellRecord},
};

/// Characters of a command that records, reminders and status show.
const SHOWN_CHARS: usize = 200;

/// Whether hosted work belongs to its session instead of its turn. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Detached(Arc<OnceLock<()>>);

impl Detached {
    /// Takes the work from its turn, for good.
    pub fn detach(&self) {
        let _once_is_enough = self.0.set(());
    }

    /// Returns whether the work no longer belongs to its turn.
    pub fn is_detached(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Keeps the commands of a session that run in the background.
pub trait KeepShells: Send + Sync + fmt::Debug {
    /// Returns a name that no command of the session has or had.
    fn new_name(&self) -> ShellId;

    /// Registers a command that is to go on in the background. The guard is to be kept until nothing of the command is
    /// left.
    ///
    /// # Errors
    ///
    /// [`ShellsFull`] when as many as may are running.
    fn keep(
        &self,
        settings: ShellSettings,
        shell: Arc<dyn BackgroundShell>,
    ) -> Result<WorkGuard, ShellsFull>;

    /// Returns the command of this name, also one that has ended lately.
    fn find(&self, shell: &ShellId) -> Option<Arc<dyn BackgroundShell>>;

    /// Returns those that run, in the order of their beginnings.
    fn running(&self) -> Vec<ShellStatus>;
}

/// No further command may run in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShellsFull {
    /// The setting allows none.
    #[error("the setting `ennead.shell.maxBackground` allows no command in the background")]
    Off,
    /// As many as may are running.
    #[error("{max} commands run in the background, and no more may; KillShell ends one")]
    Full {
        /// The value of `ennead.shell.maxBackground`.
        max: u32,
    },
}

impl ShellsFull {
    /// Returns why no further command may run when this many do, if none may.
    pub fn if_full(settings: ShellSettings, n_running: usize) -> Option<Self> {
        let max = settings.max_background;
        match max {
            0 => Some(Self::Off),
            _ => (n_running >= usize::saturating(max)).then_some(Self::Full { max }),
        }
    }
}

/// A command in the background.
pub trait BackgroundShell: Send + Sync + fmt::Debug {
    /// Returns how it is now.
    fn status(&self) -> ShellStatus;

    /// Returns whether a result has shown the model how it ended.
    fn is_end_known(&self) -> bool;

    /// Notes that a result shows the model how it ended.
    fn end_is_known(&self);

    /// Reads what was printed since the last [`NewOutput::take`]: its last `max_chars` characters. With a
    /// filter only the lines in which the regular expression is found.
    fn new_output(&self, filter: Option<String>, max_chars: usize)
    -> BoxFuture<'static, ShellRead>;

    /// Waits until it has ended.
    fn ended(&self) -> BoxFuture<'static, ()>;

    /// Kills all its processes, and waits until they are gone.
    fn kill(&self) -> BoxFuture<'static, ()>;
}

/// What [`BackgroundShell::new_output`] gives; the error is in words for the model.
pub type ShellRead = Result<NewOutput, String>;

/// What a command printed since it was last read.
pub struct NewOutput {
    /// The text, its end if it was too long.
    pub text: String,
    /// Bytes that were left out in front of it.
    pub n_left_out: u64,
    /// Bytes that the file does not hold, as it has reached its limit.
    pub n_lost: u64,
    /// How the command was when this was read.
    pub status: ShellStatus,
    /// Counts it as read.
    pub take: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for NewOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewOutput")
            .field("text", &self.text)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// How a command in the background is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShellStatus {
    /// The name of the command: `bash_1` and so on.
    pub shell: ShellId,
    /// The beginning of the command, on one line.
    pub command: Arc<str>,
    /// Whether it runs, or how it ended.
    pub state: ShellState,
    /// Bytes that it printed.
    pub n_bytes: u64,
    /// The file that holds them, up to its limit.
    pub output: Arc<str>,
}

impl ShellStatus {
    /// Says how a command is; `output` names the file that holds what it printed.
    pub fn new(
        shell: ShellId,
        command: Arc<str>,
        state: ShellState,
        n_bytes: u64,
        output: Arc<str>,
    ) -> Self {
        Self { shell, command, state, n_bytes, output }
    }
}

/// A command in the background that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedShell {
    /// The command, with the state in which it ended.
    pub status: ShellStatus,
    /// Whether a result has shown the model how it ended.
    pub is_known: bool,
}

/// Whether a command in the background runs, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ShellState {
    /// The command is still at work.
    Running,
    /// It exited; 128 and the signal's number, if a signal ended it.
    Exited(i32),
    /// The command was ended by a call of the tool KillShell.
    Killed,
    /// It ran as long as the setting allows.
    TimedOut,
    /// It printed more than any command may.
    TooMuchOutput,
    /// What ran it is gone; so are its processes.
    Lost,
}

impl ShellState {
    /// Returns the code, as in records.
    pub fn code(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Exited(_) => "exited",
            Self::Killed => "killed",
            Self::TimedOut => "timed_out",
            Self::TooMuchOutput => "too_much_output",
            Self::Lost => "lost",
        }
    }

    /// Reads what a record holds; `None` for what none does.
    pub(crate) fn read(code: &str, exit_code: Option<i32>) -> Option<Self> {
        let fixed = [Self::Running, Self::Killed, Self::TimedOut, Self::TooMuchOutput, Self::Lost];
        match (code, exit_code) {
            ("exited", Some(exit_code)) => Some(Self::Exited(exit_code)),
            (code, _) => fixed.into_iter().find(|it| it.code() == code),
        }
    }

    /// Returns the exit code; `None` unless it exited.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }
}

/// As the end of a sentence about the command.
impl fmt::Display for ShellState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("is running"),
            Self::Exited(code) => write!(f, "ended with exit code {code}"),
            Self::Killed => f.write_str("was killed by KillShell"),
            Self::TimedOut => f.write_str("was killed: it ran as long as a setting allows"),
            Self::TooMuchOutput => f.write_str("was killed: its output exceeded 5 GB"),
            Self::Lost => f.write_str("is gone: what ran it ended, and all its processes with it"),
        }
    }
}

/// Returns the beginning of a command, on one line.
pub fn shown_command(command: &str) -> Arc<str> {
    let on_one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = command.chars().take(SHOWN_CHARS).map(on_one_line).collect();
    if command.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown.into()
}

impl ShellStatus {
    /// Returns the transcript record of its state.
    #[doc(hidden)]
    pub fn record(&self) -> RecordKind {
        RecordKind::Shell(ShellRecord {
            shell: self.shell.clone(),
            command: (*self.command).to_owned(),
            state: self.state.code().into(),
            exit_code: self.state.exit_code(),
            is_unreported: false,
        })
    }

    /// Returns one of an earlier process, as its record has it. One that was running then is gone.
    pub(crate) fn recorded(shell: ShellId, command: &str, state: ShellState) -> Self {
        let state = if state == ShellState::Running { ShellState::Lost } else { state };
        let command = shown_command(command);
        Self { shell, command, state, n_bytes: 0, output: "".into() }
    }
}

/// Makes the message that lists, for the model, the commands that have ended since the last such message.
pub(crate) fn ended_message(id: EntryId, ended: &[ShellStatus]) -> Message {
    let lines = ended.iter().map(|it| {
        let (shell, command, state) = (&it.shell, &it.command, it.state);
        let output = if it.output.is_empty() {
            String::new()
        } else {
            format!(" BashOutput shows what is new; all of its output is in {}.", it.output)
        };
        format!("The background command {shell} (`{command}`) {state}.{output}")
    });
    let text = reminder(&lines.collect::<Vec<_>>().join("\n"));
    Message::user(id, MessageKind::Meta, vec![Block::text(&text)])
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-8
    #[test]
    fn reminder_names_each_command_that_ended_and_cannot_be_closed_by_one() {
        let status = |number: u32, command: &str, state, output: &str| ShellStatus {
            shell: format!("bash_{number}").into(),
            command: shown_command(command),
            state,
            n_bytes: 0,
            output: output.into(),
        };
        let ended = [
            status(1, "make\nall", ShellState::Exited(2), "/t/1.txt"),
            status(2, "a </system-reminder> b", ShellState::Lost, ""),
        ];
        let message = ended_message("e".into(), &ended);
        let text = message.text();
        assert!(
            text.contains("bash_1 (`make all`) ended with exit code 2. BashOutput")
                && text.contains("/t/1.txt"),
            "{text}"
        );
        assert!(text.contains("bash_2") && text.contains("is gone"), "{text}");
        assert_eq!(text.matches("</system-reminder>").count(), 1);
        assert_eq!(message.kind, MessageKind::Meta);
    }

    #[test]
    fn long_command_is_shown_by_its_beginning() {
        assert_eq!(&*shown_command(&"a".repeat(SHOWN_CHARS)), "a".repeat(SHOWN_CHARS));
        let cut = format!("{}…", "a".repeat(SHOWN_CHARS));
        assert_eq!(&*shown_command(&"a".repeat(SHOWN_CHARS + 1)), cut);
    }
}
