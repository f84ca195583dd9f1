//! What joins a session to the program that drives it: the standard streams of this process, or a client that is hosted here.

use std::{io, path::PathBuf, sync::Arc};

use ennead::{Endpoint, Ennead, Options, SessionOptions};
use ennead_command::{
    exit::{Exit, Failure},
    shared_host::guest::ClientEnds,
    signals::Signals,
    stream_json::pipe::{Input, Output, read_lines},
    unread::{Unread, watch, written_or_unread},
};
use tokio::sync::mpsc;

use crate::{
    args::{InputFormat, Print},
    print::{options_in, session_options},
};

/// What joins a session to the program that drives it.
pub(crate) enum ProgramLink {
    /// The standard streams of this process.
    Process,
    /// A client of this process, which hosts it.
    Client(Box<HostedClient>),
}

/// A client that is hosted here.
pub(crate) struct HostedClient {
    pub(crate) guest: ClientEnds,
    /// The number of its process.
    pub(crate) pid: u32,
    /// The working directory of its process.
    pub(crate) directory: PathBuf,
    pub(crate) runtime: HostedRuntime,
}

/// What runs the sessions of all clients of a host.
#[derive(Clone)]
pub(crate) struct HostedRuntime {
    pub(crate) ennead: Arc<Ennead>,
    /// Whether the simulated model answers there, whatever server a session names.
    pub(crate) is_simulated: bool,
}

/// A link whose output is open.
pub(super) struct OpenLink {
    /// The process that the program started.
    pub(super) pid: u32,
    pub(super) output: Output,
    /// Resolves when all is written, or nobody reads.
    pub(super) unread: Unread,
    pub(super) rest: LinkRest,
}

/// The rest of a link, which a process of its own begins when all else is in order.
pub(super) enum LinkRest {
    Process,
    Client(LinkedRuntime),
}

/// What a session is served with.
pub(super) struct LinkedRuntime {
    pub(super) input: mpsc::Receiver<Input>,
    pub(super) signals: Signals,
    pub(super) ennead: Arc<Ennead>,
}

impl ProgramLink {
    /// Returns whether the program started this process.
    pub(super) fn is_process(&self) -> bool {
        matches!(self, Self::Process)
    }

    /// Returns the options of a session in the program's working directory.
    pub(super) fn session_options(&self, args: &Print) -> Result<SessionOptions, Failure> {
        let unknown = Endpoint::messages("http://unknown.invalid", None);
        match self {
            Self::Process => session_options(args, unknown),
            Self::Client(client) => options_in(&client.directory, args, unknown),
        }
    }

    /// Checks that what serves the program can ask the model that it is to ask.
    ///
    /// # Errors
    ///
    /// When one is simulated and the other is not, as with settings that name a server and that the host did not have
    /// when it was started.
    pub(super) fn check_model(&self, is_simulated: bool) -> Result<(), Failure> {
        let asked =
            |is_simulated| if is_simulated { "the simulated model" } else { "a model server" };
        match self {
            Self::Client(client) if client.runtime.is_simulated != is_simulated => {
                let what = format!(
                    "the host asks {}, and the settings of this program name {}; start the host anew, \
                     or the program with --host off",
                    asked(client.runtime.is_simulated),
                    asked(is_simulated)
                );
                Err(Failure::new(Exit::BadInput, what))
            }
            _ => Ok(()),
        }
    }

    /// Opens the output and keeps the rest for later.
    pub(super) fn open(self) -> OpenLink {
        match self {
            Self::Process => {
                let (output, written) = Output::start(io::stdout());
                let unread = written_or_unread(written, watch(io::stdout()));
                OpenLink { pid: std::process::id(), output, unread, rest: LinkRest::Process }
            }
            Self::Client(client) => {
                let HostedClient { guest, pid, runtime, .. } = *client;
                let ClientEnds { input, output, unread, signals, .. } = guest;
                let unread = Unread::of(unread);
                let rest =
                    LinkRest::Client(LinkedRuntime { input, signals, ennead: runtime.ennead });
                OpenLink { pid, output, unread, rest }
            }
        }
    }
}

impl LinkRest {
    /// Takes signals over, starts a runtime where there is none, and reads what the program writes.
    pub(super) async fn begin(
        self,
        options: Options,
        format: InputFormat,
    ) -> Result<LinkedRuntime, Failure> {
        let none = || mpsc::channel(1).1;
        match self {
            Self::Process => {
                let signals = Signals::take().await?;
                let ennead = Ennead::start(options).await;
                let ennead = ennead.map_err(|error| Failure::of(Exit::RunFailed, &error))?;
                let input = match format {
                    InputFormat::StreamJson => read_lines(io::stdin()),
                    InputFormat::Text => none(),
                };
                Ok(LinkedRuntime { input, signals, ennead: Arc::new(ennead) })
            }
            Self::Client(linked) => Ok(match format {
                InputFormat::StreamJson => linked,
                InputFormat::Text => LinkedRuntime { input: none(), ..linked },
            }),
        }
    }
}
