//! `-p`: one prompt, one result.

mod background;
mod input;

use std::{fs, num::NonZeroU32, path::Path};

use ennead::{
    Clock, Endpoint, Ennead, Events, OpenError, RunOutcome, RunRequest, SessionHandle,
    SessionOptions, SystemClock,
    data::Numbered,
    settings::{self, Settings},
};
use ennead_command::{
    exit::{Exit, Failure},
    print::{
        ModelRecord, join_input, mark_simulated, model_record, result_object, result_text, why,
    },
    signals::Signals,
};
use ennead_runtime::{
    permission::RuleKind,
    recovery::{backoff::MAX_RETRIES, chain::MAX_FALLBACKS},
};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    args::{Durability, OutputFormat, Print},
    endpoint::{self, Variables},
    mcp,
    prompter::{self, Prompter},
    rules,
    screen::Screen,
    show, stream, trusted,
};

pub(crate) async fn run(args: Print) -> Result<Exit, Failure> {
    let given = args.print.clone().flatten().or_else(|| args.prompt.clone());
    // What is wrong with flags is printed before anything is waited for.
    let options = session_options(&args, Endpoint::messages("http://unknown.invalid", None))?;
    let options = stream::without_lines(options, &args.protocol)?;
    let prompt = join_input(given.as_deref(), &input::piped_in().await?)
        .map_err(|error| Failure::of(Exit::BadInput, &error))?;
    let server = endpoint::from_environment()?;
    let (variables, is_simulated) = (server.variables, server.why_simulated.is_some());
    let options = options.endpoint(stream::with_headers(server.endpoint, &args.protocol));
    let asks = prompter::is_somebody_there();
    let options = options.answers_by_handle(asks);
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
    if let Some(base) = &server.base {
        endpoint::try_connection(base, variables.base)
            .map_err(|it| show::failure_result(format, it))?;
    }
    // Servers of the session may take their time.
    let opened = tokio::select! {
        biased;
        opened = ennead.open(options) => opened,
        exit = signals.next() => {
            ennead.shutdown().await;
            return Ok(exit);
        }
    };
    let session = match opened {
        Ok(session) => session,
        Err(error) => {
            // Servers may have been started for it.
            ennead.shutdown().await;
            return Err(show::failure_result(format, Failure::of(exit_of(&error), &error)));
        }
    };
    if let Some(why) = server.why_simulated {
        show::problem(&why);
    }
    let request = RunRequest::new(prompt).origin("print");
    let mut watched = WatchedRun::new(&session, args.output_format, asks);
    let (outcome, ended_by) = converse(&session, request, &mut signals, &mut watched).await;
    session.close().await;
    // Events that came before the outcome are shown before it.
    while let Some(event) = watched.events.next().await {
        watched.show(&event);
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
    match args.output_format {
        // The failure itself says it on standard error; who sees both is not to read it twice.
        OutputFormat::Text
            if !outcome.end.is_success() && ended_by.is_none() && show::is_one_place() => {}
        OutputFormat::Text => screen.answer(&result_text(&outcome, &record, &output))?,
        // The other one never comes here.
        OutputFormat::Json | OutputFormat::StreamJson => {
            let mut object = result_object(&outcome, &id, &record, &output);
            if is_simulated {
                mark_simulated(&mut object);
            }
            show::json(&object)?;
        }
    }
    screen.finish(id.as_str(), &transcript.display().to_string());
    end(&outcome, &record, ended_by, variables)
}

type PrintEnd = Option<Result<RunOutcome, ennead::RunError>>;

/// The events of a run, and where they are shown.
struct WatchedRun {
    events: Events,
    screen: Screen,
    clock: SystemClock,
    /// Asks the person at the terminal, if there is one.
    prompter: Option<Prompter>,
}

impl WatchedRun {
    fn new(session: &SessionHandle, format: OutputFormat, asks: bool) -> Self {
        let screen = Screen::new(format == OutputFormat::Text);
        let (events, clock) = (session.events(), SystemClock::default());
        let prompter = asks.then(|| Prompter::new(session));
        Self { events, screen, clock, prompter }
    }

    fn show(&mut self, event: &Numbered) {
        self.screen.observe(self.clock.now().0, &event.event, &self.events.output());
        if let Some(prompter) = &mut self.prompter {
            prompter.observe(&event.event);
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

pub(crate) fn session_options(args: &Print, endpoint: Endpoint) -> Result<SessionOptions, Failure> {
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    let mut options = SessionOptions::new(".", endpoint);
    options.workspace = std::env::current_dir()
        .map_err(|error| bad(format!("cannot use the working directory: {error}")))?;
    trusted::apply(&mut options, args)?;
    if let Some(text) = &args.settings {
        options.settings =
            Settings::from_json(settings_of(text)?).map_err(|error| bad(error.to_string()))?;
    }
    if let Some(model) = &args.model {
        options = options.model(model);
    }
    if let Some(models) = &args.fallback_model {
        let models: Vec<&str> = models.split(',').map(str::trim).collect();
        if models.iter().any(|it| it.is_empty()) {
            return Err(bad("--fallback-model: a name is empty; write a,b,c".into()));
        }
        if MAX_FALLBACKS < models.len() {
            return Err(bad(format!("--fallback-model: at most {MAX_FALLBACKS} names")));
        }
        options = options.settings(Settings::new().fallback_models(models));
    }
    if let Some(max_turns) = args.max_turns {
        options = options.max_turns(max_turns);
    }
    if let Some(name) = &args.permission_mode {
        let mode = serde_json::from_value(Value::from(name.as_str())).map_err(|_| {
            bad(format!(
                "there is no permission mode `{name}`; take one of plan, default, acceptEdits, auto, \
                 dontAsk, bypassPermissions"
            ))
        })?;
        options = options.mode(mode);
    }
    for (lists, kind) in
        [(&args.allowed_tools, RuleKind::Allow), (&args.disallowed_tools, RuleKind::Deny)]
    {
        for text in rules::split(lists) {
            let ruled = match kind {
                RuleKind::Allow => options.allow(&text),
                _ => options.deny(&text),
            };
            options = ruled.map_err(|error| Failure::of(Exit::BadInput, &error))?;
        }
    }
    options.mcp_servers = mcp::servers_of(&args.mcp_config)?;
    for dir in &args.add_dir {
        options = add_directory(options, dir)?;
    }
    if let Some(durability) = args.durability {
        options = options.durability(match durability {
            Durability::Process => settings::Durability::Process,
            Durability::Turn => settings::Durability::Turn,
            Durability::Entry => settings::Durability::Entry,
        });
    }
    if let Some(id) = &args.session_id {
        options.id = Some(id.as_str().into());
    }
    options.system_prompt.clone_from(&args.system_prompt);
    options.append_system_prompt.clone_from(&args.append_system_prompt);
    options.transcripts.clone_from(&args.transcripts);
    with_max_output(with_max_retries(options)?)
}

/// `CLAUDE_CODE_MAX_OUTPUT_TOKENS` counts where no flag says otherwise.
fn with_max_output(options: SessionOptions) -> Result<SessionOptions, Failure> {
    const NAME: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
    let Some(text) = std::env::var(NAME).ok().filter(|it| !it.is_empty()) else {
        return Ok(options);
    };
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    let max: NonZeroU32 = text
        .trim()
        .parse()
        .map_err(|_| bad(format!("{NAME} is `{text}`; set it to a positive number")))?;
    let own = options.settings.get("ennead");
    let is_said = ["maxOutputTokens", "max_output_tokens"];
    if is_said.iter().any(|it| own.is_some_and(|own| own.get(it).is_some())) {
        return Ok(options);
    }
    let settings = serde_json::json!({ "ennead": { "maxOutputTokens": max } });
    options.settings_json(settings).map_err(|error| bad(error.to_string()))
}

/// `CLAUDE_CODE_MAX_RETRIES` counts where no flag says otherwise.
fn with_max_retries(options: SessionOptions) -> Result<SessionOptions, Failure> {
    const NAME: &str = "CLAUDE_CODE_MAX_RETRIES";
    let Some(text) = std::env::var(NAME).ok().filter(|it| !it.is_empty()) else {
        return Ok(options);
    };
    let Ok(n) = text.trim().parse::<u32>() else {
        let what = format!("{NAME} is `{text}`; set it to a number from 0 to {MAX_RETRIES}");
        return Err(Failure::new(Exit::BadInput, what));
    };
    let own = options.settings.get("ennead");
    let is_said =
        ["maxRetries", "max_retries"].iter().any(|it| own.is_some_and(|own| own.get(it).is_some()));
    Ok(if is_said { options } else { options.settings(Settings::new().max_retries(n)) })
}

/// Settings given by `--settings`: JSON, or the name of a file.
fn settings_of(given: &str) -> Result<Value, Failure> {
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    // `null` and `[]` are not names of files, unless there is such a file.
    let is_text = given.trim_start().starts_with('{')
        || (serde_json::from_str::<Value>(given).is_ok() && !Path::new(given).exists());
    let (source, text) = if is_text {
        ("--settings".to_owned(), given.to_owned())
    } else {
        let text = fs::read_to_string(given)
            .map_err(|error| bad(format!("cannot read the settings {given}: {error}")))?;
        (given.to_owned(), text)
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| bad(format!("the settings of {source} are no JSON: {error}")))?;
    if !value.is_object() {
        return Err(bad(format!("the settings of {source} are no JSON object")));
    }
    // What cannot be used in them is an alert of the session, as for every other file.
    Ok(value)
}

fn add_directory(options: SessionOptions, dir: &Path) -> Result<SessionOptions, Failure> {
    let bad = |why: String| {
        Failure::new(Exit::BadInput, format!("cannot add the directory {}: {why}", dir.display()))
    };
    let path = dir.canonicalize().map_err(|error| bad(error.to_string()))?;
    if !path.is_dir() {
        return Err(bad("it is no directory".into()));
    }
    let path = path.to_str().ok_or_else(|| bad("its path is no UTF-8".into()))?;
    let settings = options.settings.clone().additional_directory(path);
    Ok(options.settings(settings))
}
