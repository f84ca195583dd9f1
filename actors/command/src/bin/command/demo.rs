//! `demo`: the survey, shown while it runs, or many surveys and what they cost.

use std::{
    io::{self, IsTerminal},
    sync::{Arc, OnceLock},
};

use ennead::{SessionHandle, data::Numbered};
use ennead_command::{
    demo::{Demo, DemoError, DemoOutcome},
    demo_load::HostingCost,
    demo_serve::{self, DemoServerError},
    demo_view::View,
    exit::{Exit, Failure},
    print::{model_record, result_text},
    signals::Signals,
};
use ennead_runtime::output::OutputSettings;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    args::{self, ViewChoice as Choice},
    print, show,
};

pub(crate) async fn run(args: args::DemoArgs) -> Result<Exit, Failure> {
    let mut demo = Demo::new(&args.dir);
    if let Some(transcripts) = &args.transcripts {
        demo = demo.transcripts(transcripts);
    }
    if args.serve {
        return serve(demo).await;
    }
    match args.agents {
        None => survey(demo, args.view).await,
        Some(n) => host(demo, n).await,
    }
}

async fn survey(demo: Demo, choice: Choice) -> Result<Exit, Failure> {
    let mut signals = Signals::take().await?;
    let session: Arc<OnceLock<SessionHandle>> = Arc::default();
    let opened = Arc::clone(&session);
    let mut screen = DemoScreen::new(choice);
    let mut run = std::pin::pin!(demo.run(
        move |handle| {
            show::note("The simulated model of ennead surveys; the tools and the files are real.");
            let _once = opened.set(handle);
        },
        |event| screen.show(event),
    ));
    let mut ended_by = None;
    let outcome = loop {
        tokio::select! {
            outcome = &mut run => break outcome,
            exit = signals.next() => match (ended_by.replace(exit), session.get()) {
                (None, Some(session)) => session.interrupt(),
                _ => return Ok(exit),
            },
        }
    };
    let DemoOutcome { outcome, transcript } = outcome.map_err(|error| failure(&error))?;
    let record = model_record(&transcript, 0, &outcome.run).unwrap_or_default();
    show::result(&result_text(&outcome, &record, &OutputSettings::default()))?;
    let transcript = transcript.display();
    show::note(&format!(
        "\nTranscript: {transcript}\nThose of the sub-agents lie next to it. `ennead verify \
         {transcript}` checks all of them, `ennead trace {transcript}` shows the nine steps."
    ));
    match ended_by {
        Some(exit) => Ok(exit),
        None if outcome.end.is_success() => Ok(Exit::Success),
        None => Ok(Exit::RunFailed),
    }
}

async fn serve(demo: Demo) -> Result<Exit, Failure> {
    let mut signals = Signals::take().await?;
    let failed = |error: io::Error| Failure::of(Exit::RunFailed, &error);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
    let stop = CancellationToken::new();
    let serving = demo_serve::serve(demo, listener, stop.clone(), |started| {
        show::note(
            "The simulated model of ennead surveys; the tools and the files are real. Watch it at",
        );
        if let Err(failure) = show::result(&started.page) {
            show::problem(&failure.to_string());
        }
    });
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        _exit = signals.next() => {
            stop.cancel();
            serving.await
        }
    };
    served.map_err(|error| match &error {
        DemoServerError::Demo(error) => failure(error),
        error => Failure::of(Exit::RunFailed, error),
    })?;
    Ok(Exit::Success)
}

async fn host(demo: Demo, n: u32) -> Result<Exit, Failure> {
    raise_open_files();
    show::note(&format!("Hosting {n} surveys at once on the simulated model of ennead."));
    let load = demo.run_many(n).await.map_err(|error| failure(&error))?;
    show::result(&table(&load))?;
    match load.n_failed {
        0 => Ok(Exit::Success),
        failed => {
            let what = format!("{failed} of {n} conversations ended without an answer");
            Err(Failure::new(Exit::RunFailed, what))
        }
    }
}

fn table(load: &HostingCost) -> String {
    format!(
        "conversations            {}\n\
         sub-agents               {}\n\
         turns                    {}\n\
         time                     {} ms\n\
         turns per second         {} (tools included)\n\
         time of all agents       {} ms in tools, {} ms in answers of the model\n\
         time of hosting them     {} ms, {}.{} % of all\n\
         added latency per turn   {} us, in one survey alone\n\
         the same, all at once    {} us, waiting for a free core included\n\
         memory per conversation  {} KiB\n\
         \n\
         The tools search real files, and most of the time is theirs. The time of hosting is what the\n\
         runs of all agents took, without the time in which their tools ran and without the time from\n\
         sending a request to the last byte of its answer, waiting for a free core included; added\n\
         latency is that divided by the turns. Memory is the growth of resident memory (from {} to {} KiB at\n\
         most) divided by the conversations; their sub-agents and the simulated server, which\n\
         runs in this process, are in it.",
        load.n_conversations,
        load.n_agents,
        load.n_turns,
        load.elapsed.as_millis(),
        load.turns_per_second(),
        load.spent.in_tools.as_millis(),
        load.spent.in_model.as_millis(),
        load.spent.hosting.as_millis(),
        load.spent.hosting_per_mille() / 10,
        load.spent.hosting_per_mille() % 10,
        load.added_alone.as_micros(),
        load.added_per_turn.as_micros(),
        load.kib_per_conversation(),
        load.before_kib,
        load.peak_kib,
    )
}

/// Raises the limit on open files: each agent has a transcript open, and both ends of its connection are in this
/// process.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if setrlimit(Resource::Nofile, limit).is_err() {
        show::problem("the limit on open files cannot be raised; `ulimit -n` says what it is");
    }
}

fn failure(error: &DemoError) -> Failure {
    let exit = match error {
        DemoError::NoDirectory { .. }
        | DemoError::NoName { .. }
        | DemoError::NoTranscripts { .. } => Exit::BadInput,
        DemoError::Open(error) => print::exit_of(error),
        _ => Exit::RunFailed,
    };
    Failure::of(exit, error)
}

/// Draws the view on standard error.
struct DemoScreen {
    view: View,
    choice: Choice,
    /// The table that is there.
    table: Vec<String>,
}

impl DemoScreen {
    fn new(choice: Choice) -> Self {
        let choice = match choice {
            Choice::Auto if io::stderr().is_terminal() => Choice::Live,
            Choice::Auto => Choice::Plain,
            choice => choice,
        };
        Self { view: View::new(), choice, table: Vec::new() }
    }

    fn show(&mut self, event: &Numbered) {
        self.view.observe(&event.event);
        match self.choice {
            Choice::None => {}
            Choice::Live => {
                let table = self.view.table();
                if table == self.table {
                    return;
                }
                // Up to the first line of the table, and clear from there.
                let up = match self.table.len() {
                    0 => String::new(),
                    n => format!("\x1b[{n}A\x1b[J"),
                };
                show::draw(&format!("{up}{}\n", table.join("\n")));
                self.table = table;
            }
            Choice::Plain | Choice::Auto => {
                self.view.changed().iter().for_each(|line| show::note(line));
            }
        }
    }
}
