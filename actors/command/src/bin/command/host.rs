//! `host`: serves the sessions of many programs in one process; and the command as a client of such a process.

use std::{
    collections::BTreeMap, env, ffi::OsString, io, path::PathBuf, sync::Arc, time::Duration,
};

use ennead::Ennead;
use ennead_command::{
    exit::{Exit, Failure},
    shared_host::{
        client::{Attached, Streams, attach},
        environment,
        frames::{Hello, HostFrame, send},
        guest::{self, ClientEnds},
        place::{self, HostSocket, PlaceError},
    },
    signals::Signals,
    unread,
};
use ennead_runtime::digest::Digest;
use tokio::{net::UnixStream, runtime::Handle, sync::Semaphore, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{self, Args, HostChoice, Print},
    demo, endpoint,
    program::{self, HostedProgram},
    show,
    stream::{self, HostedClient, HostedRuntime, ProgramLink},
};

/// Clients at once at most. Each takes a socket, and two files of its session.
const MAX_CLIENTS: usize = 1024;

/// How long the host waits where no further connection can be taken in, as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Hosts programs until a signal.
pub(crate) async fn run() -> Result<Exit, Failure> {
    let mut signals = Signals::take().await?;
    let environment = environment::of_process();
    demo::raise_open_files();
    let server = endpoint::of_user().await?;
    let is_simulated = server.why_simulated.is_some();
    let path = place::socket(&stream::configuration());
    let socket = HostSocket::listen(&path).map_err(|error| {
        let exit = match error {
            PlaceError::InUse(_) => Exit::Locked,
            _ => Exit::BadInput,
        };
        Failure::of(exit, &error)
    })?;
    let ennead = Ennead::start(server.options).await;
    let ennead = ennead.map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    if let Some(why) = &server.why_simulated {
        show::problem(why);
    }
    let host = Arc::new(ProgramHost {
        runtime: HostedRuntime { ennead: Arc::new(ennead), is_simulated },
        environment,
        places: Arc::new(Semaphore::new(MAX_CLIENTS)),
        ending: CancellationToken::new(),
    });
    show::result(&path.display().to_string())?;
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _exit = signals.next() => break,
            Some(_) = clients.join_next() => {}
            accepted = socket.accept() => match accepted {
                Ok(stream) => _ = clients.spawn(Arc::clone(&host).take_in(stream)),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
    drop(socket);
    show::note("Ending: runs under way are interrupted, and their programs are told.");
    host.ending.cancel();
    // One that panicked is gone as the others are.
    while clients.join_next().await.is_some() {}
    if let Some(ennead) = Arc::into_inner(host).and_then(|it| Arc::into_inner(it.runtime.ennead)) {
        ennead.shutdown().await;
    }
    Ok(Exit::Success)
}

struct ProgramHost {
    runtime: HostedRuntime,
    environment: BTreeMap<String, Digest>,
    /// One for each client, from its first byte on.
    places: Arc<Semaphore>,
    ending: CancellationToken,
}

impl ProgramHost {
    async fn take_in(self: Arc<Self>, mut stream: UnixStream) {
        let place = Arc::clone(&self.places).try_acquire_owned();
        // A client that says nothing, or no longer reads, is only that one's affair.
        let hello = tokio::select! {
            hello = guest::hello(&mut stream) => hello,
            () = self.ending.cancelled() => return,
        };
        let Ok(mut hello) = hello else { return };
        let asked = std::mem::take(&mut hello.arguments);
        let asked = tokio::task::spawn_blocking(move || print_of(asked)).await;
        let (print, place) = match (asked, self.objection(&hello), place) {
            (Ok(Some(print)), None, Ok(place)) => (print, place),
            (asked, objection, _) => {
                // What is not to be hosted, or wrong, is that process's own affair.
                let is_asked = matches!(asked, Ok(Some(_)));
                let full = || format!("it serves {MAX_CLIENTS} programs already");
                let why = objection.filter(|_| is_asked);
                let why = why.unwrap_or_else(|| if is_asked { full() } else { String::new() });
                let _gone = send(&mut stream, &HostFrame::Refused(why)).await;
                return;
            }
        };
        let runs = self.runtime.clone();
        let session = |ends: ClientEnds| async {
            let variables = hello.variables.clone();
            let client = HostedProgram { notes: ends.notes.clone(), variables };
            // Reading files and long lines takes time, and other clients do not wait for it: each has a thread.
            let runtime = Handle::current();
            let serve = move || {
                runtime.block_on(program::on_behalf_of(client, serve(hello, print, ends, runs)))
            };
            tokio::task::spawn_blocking(serve).await.unwrap_or(Exit::RunFailed)
        };
        let _gone = guest::serve(stream, &self.ending, session).await;
        drop(place);
    }

    /// Why a client is to serve itself.
    fn objection(&self, hello: &Hello) -> Option<String> {
        if hello.version != env!("CARGO_PKG_VERSION") {
            return Some(format!("it is version {}", env!("CARGO_PKG_VERSION")));
        }
        if let Some(names) = environment::difference(&self.environment, &hello.environment) {
            return Some(format!("its environment has another {names}"));
        }
        None
    }
}

/// Does what the client was started to do.
async fn serve(hello: Hello, mut print: Print, guest: ClientEnds, runtime: HostedRuntime) -> Exit {
    let Hello { pid, directory, .. } = hello;
    print.in_directory(&directory);
    let client = Box::new(HostedClient { guest, pid, directory, runtime });
    stream::serve(print, ProgramLink::Client(client)).await.unwrap_or_else(|failure| {
        show::problem(&failure.to_string());
        failure.exit
    })
}

/// What a program asks for that is to be hosted; `None` if it is not to be, or its arguments are wrong.
fn print_of(arguments: Vec<String>) -> Option<Print> {
    let Args { print, command, version } = args::parse_from(arguments)?;
    let is_hosted = command.is_none()
        && !version
        && print.protocol.host == HostChoice::Auto
        && stream::is_asked_for(&print)
        && !print.names_open_files();
    is_hosted.then_some(print)
}

/// Whether these arguments may ask for a host. It is the host that reads them: reading them here would take as much memory as
/// all else that a client needs.
fn may_be_hosted(arguments: &[OsString]) -> bool {
    let is = |it: &OsString, text: &str| it == text;
    let named = arguments.iter().any(|it| is(it, "--host=auto"))
        || arguments.windows(2).any(|it| is(&it[0], "--host") && is(&it[1], "auto"));
    named && arguments.iter().any(|it| it.to_string_lossy().contains("stream-json"))
}

/// Has a host serve the program that drives this process, where it is asked for and there is one.
///
/// # Errors
///
/// The host served the session and is gone.
pub(crate) fn attached() -> Result<Option<Exit>, Failure> {
    if !may_be_hosted(&env::args_os().collect::<Vec<_>>()) {
        return Ok(None);
    }
    let Some(hello) = hello() else { return Ok(None) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    let socket: PathBuf = place::socket(&stream::configuration());
    let streams = Streams {
        input: io::stdin(),
        output: io::stdout(),
        unread: unread::watch(io::stdout()),
        notes: io::stderr(),
    };
    let attached = runtime.block_on(attach(&socket, hello, streams));
    // Reading standard input cannot be broken off.
    runtime.shutdown_background();
    Ok(match attached? {
        Attached::Ended(exit) => Some(exit),
        Attached::Alone(None) => None,
        // It is not for the host, which says no more.
        Attached::Alone(Some(why)) if why.is_empty() => None,
        Attached::Alone(Some(why)) => {
            show::problem(&format!("the host at {} does not serve this: {why}", socket.display()));
            None
        }
    })
}

/// What this process would say to a host; `None` where a text of it is not UTF-8.
fn hello() -> Option<Hello> {
    let arguments = env::args_os().map(OsString::into_string).collect::<Result<_, _>>().ok()?;
    let directory = env::current_dir().ok()?;
    directory.to_str()?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let variables = environment::of_program();
    let environment = environment::of_process();
    let pid = std::process::id();
    Some(Hello { version, environment, variables, pid, directory, arguments })
}
