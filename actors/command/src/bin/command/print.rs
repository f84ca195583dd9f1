//! `-p`: one prompt, one result.

mod background;
mod input;
mod options;
mod recorder;

use std::{
    convert::Infallible,
    hash::{BuildHasher, RandomState},
    path::Path,
};

use ennead::{
    Clock, Endpoint, Ennead, Events, OpenError, PromptBlock, RunOutcome, RunRequest, SessionHandle,
    SessionOptions, SystemClock, data::Numbered,
};
use ennead_command::{
    exit::{Exit, Failure},
    print::{
        ModelRecord, join_input, mark_simulated, model_record, result_object, result_text, why,
    },
    signals::Signals,
    stream_json::{permission_tool::AskedInSession, skills::Skills},
};
use ennead_runtime::{entropy::EntropyStream, skill::SkillContext};
use serde_json::Value;
use tokio::sync::Notify;

pub(crate) use self::options::{options_in, session_options};
use self::recorder::PromptRecorder;
use crate::{
    args::{OutputFormat, Print},
    chosen::{Roots, choose_session},
    endpoint::{self, Variables},
    prompter::{self, Prompter},
    screen::Screen,
    show, stream, trusted,
};

pub(crate) async fn run(args: Print) -> Result<Exit, Failure> {
    let given = args.print.clone().flatten().or_else(|| args.prompt.clone());
    // What is wrong with flags is printed before anything is waited for.
    let options = session_options(&args, Endpoint::messages("http://unknown.invalid", None))?;
    let (options, skills) = stream::without_lines(options, &args)?;
    let (options, structured) = stream::with_schema(options, &args.protocol)?;
    let (mut options, asked) = with_permission_tool(options, &args)?;
    choose(&mut options, &args)?;
    let piped = input::piped_in().await?;
    let bad = |error| Failure::of(Exit::BadInput, &error);
    let prompt = join_input(given.as_deref(), &piped).map_err(bad)?;
    let server = endpoint::of(&options).await?;
    let (variables, is_simulated) = (server.variables, server.why_simulated.is_some());
    // Where another server can answer, one that is away is no reason not to begin.
    let tried = server.base.clone().filter(|_| server.fallbacks.is_empty());
    let options =
        options.endpoint(stream::with_headers(server.endpoint)).fallbacks(server.fallbacks);
    let asks = prompter::is_somebody_there() && asked.is_none();
    let options = options.answers_by_handle(asks);
    let workspace = options.workspace.clone();
    trusted::print_waiting(&options);
    let mut signals = Signals::take().await?;
    let ennead = Ennead::start(server.options)
        .await
        .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    let format = args.output_format;
    if let Err(error) = ennead.check(&options).await {
        ennead.shutdown().await;
        return Err(show::failure_result(format, Failure::of(exit_of(&error), &error)));
    }
    if let Some(base) = &tried {
        endpoint::try_connection(base, variables.base)
            .map_err(|it| show::failure_result(format, it))?;
    }
    let session = match opened(&ennead, options, &mut signals).await {
        Ok(Ok(session)) => session,
        // Servers may have been started for it.
        Ok(Err(error)) => {
            ennead.shutdown().await;
            return Err(show::failure_result(format, Failure::of(exit_of(&error), &error)));
        }
        Err(exit) => {
            ennead.shutdown().await;
            return Ok(exit);
        }
    };
    if let Some(why) = server.why_simulated {
        show::problem(&why);
    }
    // What is piped in is no argument of a command.
    let called = given.as_deref().and_then(|it| called_command(it, &skills, &session, &workspace));
    let prompt = match &called {
        Some(text) => join_input(Some(text), &piped).map_err(bad)?,
        None => prompt,
    };
    let request = RunRequest::new(prompt).origin("print");
    let mut watched = WatchedRun::new(&session, args.output_format, asks);
    watched.recorder = asks.then(|| {
        let typed = given.as_deref().filter(|_| called.is_some());
        PromptRecorder::new(&session, &workspace, typed)
    });
    let (outcome, ended_by) = tokio::select! {
        biased;
        never = followed(asked, session.clone()) => match never {},
        ended = converse(&session, request, &mut signals, &mut watched) => ended,
    };
    session.close().await;
    // Events that came before the outcome are shown before it.
    while let Some(event) = watched.events.next().await {
        watched.show(&event);
    }
    if let Some(recorder) = watched.recorder.take() {
        recorder.finish().await;
    }
    let transcript = session.transcript().to_owned();
    let (id, output) = (session.id().clone(), session.output());
    ennead.shutdown().await;
    let outcome = match outcome {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => return Err(Failure::of(Exit::RunFailed, &error)),
        None => return Ok(ended_by.unwrap_or(Exit::Interrupted)),
    };
    let mut screen = watched.screen;
    let record = model_record(&transcript, 0, &outcome.run).unwrap_or_default();
    let mut object = result_object(&outcome, &id, &record, &output);
    structured.iter().for_each(|it| it.finish(outcome.end, &mut object));
    if is_simulated {
        mark_simulated(&mut object);
    }
    let value = object.get("structured_output").map(Value::to_string);
    let is_told = !outcome.end.is_success() && ended_by.is_none() && show::is_one_place();
    match (args.output_format, &value) {
        (OutputFormat::Text, Some(value)) => screen.answer(value)?,
        // The failure itself says it on standard error; who sees both is not to read it twice.
        (OutputFormat::Text, None) if is_told => {}
        (OutputFormat::Text, None) => screen.answer(&result_text(&outcome, &record, &output))?,
        // The other one never comes here.
        (OutputFormat::Json | OutputFormat::StreamJson, _) => show::json(&object)?,
    }
    screen.finish(id.as_str(), &transcript.display().to_string());
    if value.is_some() && ended_by.is_none() {
        return Ok(Exit::Success);
    }
    end(&outcome, &record, ended_by, variables)
}

/// Opens the session, whose servers may take their time; or the signal that ends the waiting.
async fn opened(
    ennead: &Ennead,
    options: SessionOptions,
    signals: &mut Signals,
) -> Result<Result<SessionHandle, OpenError>, Exit> {
    tokio::select! {
        biased;
        opened = ennead.open(options) => Ok(opened),
        exit = signals.next() => Err(exit),
    }
}

/// Has the tool that answers questions know its session, for as long as that is open.
async fn followed(asked: Option<AskedInSession>, session: SessionHandle) -> Infallible {
    if let Some(asked) = asked {
        asked.follow(session).await;
    }
    std::future::pending().await
}

/// Sets which session it is, where flags say more than an id.
fn choose(options: &mut SessionOptions, args: &Print) -> Result<(), Failure> {
    if !args.protocol.chooses_session() {
        return Ok(());
    }
    let roots = Roots::of_command(options)?;
    let ids = EntropyStream::from_seed(RandomState::new().hash_one(std::process::id()));
    let chosen = choose_session(options, args, &ids, &roots);
    let refused =
        |why| show::failure_result(args.output_format, Failure::new(Exit::RunFailed, why));
    chosen.map(drop).map_err(refused)
}

/// Has the tool of the flags answer questions about calls, if they name one.
fn with_permission_tool(
    options: SessionOptions,
    args: &Print,
) -> Result<(SessionOptions, Option<AskedInSession>), Failure> {
    let Some(tool) = stream::permission_tool(&args.protocol, &[], &options.mcp_servers)? else {
        return Ok((options, None));
    };
    let asked = AskedInSession::by(&tool, options);
    let (asked, options) = asked.map_err(|error| Failure::of(Exit::BadInput, &error))?;
    Ok((options, Some(asked)))
}

/// The text of the command or skill that a prompt calls, if it calls one.
fn called_command(
    typed: &str,
    skills: &Skills,
    session: &SessionHandle,
    workspace: &Path,
) -> Option<String> {
    let mut content = [PromptBlock::text(typed)];
    let place =
        SkillContext { session: session.id().as_str(), project: &workspace.to_string_lossy() };
    if let Err(why) = skills.expand(&mut content, place) {
        show::problem(&format!("the command is not called: {why}"));
    }
    let [content] = content;
    content.block().as_text().filter(|it| *it != typed).map(str::to_owned)
}

type PrintEnd = Option<Result<RunOutcome, ennead::RunError>>;

/// The events of a run, and where they are shown.
struct WatchedRun {
    events: Events,
    screen: Screen,
    clock: SystemClock,
    /// Asks the person at the terminal, if there is one.
    prompter: Option<Prompter>,
    /// Records the prompt that a person typed.
    recorder: Option<PromptRecorder>,
}

impl WatchedRun {
    fn new(session: &SessionHandle, format: OutputFormat, asks: bool) -> Self {
        let screen = Screen::new(format == OutputFormat::Text);
        // Messages are needed where a prompt is typed, and then by the history.
        let events = if asks { session.conversation(false) } else { session.events() };
        let clock = SystemClock::default();
        let prompter = asks.then(|| Prompter::new(session));
        Self { events, screen, clock, prompter, recorder: None }
    }

    fn show(&mut self, event: &Numbered) {
        self.screen.observe(self.clock.now().0, &event.event, &self.events.output());
        if let Some(prompter) = &mut self.prompter {
            prompter.observe(&event.event);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.observe(&event.event);
        }
    }

    /// Asks the next question, if one waits.
    fn ask(&mut self, session: &SessionHandle) {
        if let Some(prompter) = &mut self.prompter {
            prompter.show(session, &mut self.screen);
        }
    }

    async fn line(prompter: &mut Option<Prompter>) -> Option<String> {
        match prompter {
            Some(prompter) => prompter.line().await,
            None => std::future::pending().await,
        }
    }

    async fn take(&mut self, line: Option<String>, session: &SessionHandle) {
        if let Some(prompter) = &mut self.prompter {
            prompter.take(line, session, &mut self.screen).await;
        }
    }
}

/// Runs the prompt. The first signal interrupts the run, the second one does not wait for it.
async fn converse(
    session: &SessionHandle,
    request: RunRequest,
    signals: &mut Signals,
    watched: &mut WatchedRun,
) -> (PrintEnd, Option<Exit>) {
    let (ceiling, is_over) = (stream::wait_ceiling(), Notify::new());
    let mut run = std::pin::pin!(background::run_to_rest(session, request, ceiling, &is_over));
    let mut ended_by = None;
    let mut listening = true;
    loop {
        watched.ask(session);
        let WatchedRun { events, prompter, .. } = &mut *watched;
        tokio::select! {
            biased;
            outcome = &mut run => return (Some(outcome), ended_by),
            exit = signals.next() => match ended_by.replace(exit) {
                None => {
                    session.interrupt();
                    is_over.notify_one();
                }
                Some(_) => return (None, Some(exit)),
            },
            event = events.next(), if listening => match event {
                Some(event) => watched.show(&event),
                None => listening = false,
            },
            line = WatchedRun::line(prompter) => watched.take(line, session).await,
        }
    }
}

fn end(
    outcome: &RunOutcome,
    record: &ModelRecord,
    ended_by: Option<Exit>,
    variables: Variables,
) -> Result<Exit, Failure> {
    if let Some(exit) = ended_by {
        return Ok(exit);
    }
    if outcome.end.is_success() {
        return Ok(Exit::Success);
    }
    let Some(failure) = record.failure.as_ref().filter(|it| it.is_no_service()) else {
        return Err(Failure::new(Exit::RunFailed, why(outcome)));
    };
    let last_words = failure.message.as_deref().unwrap_or("no answer");
    let what = match failure.class.as_str() {
        "auth" => {
            format!(
                "the model server does not accept the key ({last_words}); check {}",
                variables.key
            )
        }
        // It was reached; its answer, or the lack of one, names its address.
        "network" => format!("the model server failed ({last_words})"),
        "timeout" => format!("the model server does not answer ({last_words})"),
        _ => format!("the model server cannot be reached ({last_words}); check {}", variables.base),
    };
    Err(Failure::new(Exit::NoModel, what))
}

/// Returns how the command ends when a session cannot be opened.
pub(crate) fn exit_of(error: &OpenError) -> Exit {
    match error {
        OpenError::Locked { .. } => Exit::Locked,
        OpenError::Ended => Exit::RunFailed,
        _ => Exit::BadInput,
    }
}
