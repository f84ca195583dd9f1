//! TaskOutput and TaskStop: how what is in the background is, and its end, for commands and sub-agents alike.
//!
//! A result that shows how something ended is all that the model learns of that: an agent's with a note, a command's with
//! a mark on the command.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::{AgentId, ShellId},
    ports::{
        AgentStatus, ToolContext,
        agents::{BackgroundAgent, BackgroundState, EndedAgent, KeepAgents},
        shells::{BackgroundShell, NewOutput, ShellState},
    },
    tool::{Access, Concurrency, ToolEffect, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bash::manage::{kill, max_output_chars, output_outcome, show, status_of},
    built_in::{BuiltIn, BuiltInCall},
};

/// Milliseconds that TaskOutput waits by default.
const DEFAULT_WAIT_MS: u64 = 30_000;

/// Milliseconds that TaskOutput waits at most.
const MAX_WAIT_MS: u64 = 600_000;

/// Milliseconds that a look at the output may take after the wait.
const LOOK_MS: u64 = 60_000;

/// How long TaskStop waits for the end of an agent.
const STOP_WAIT: Duration = Duration::from_secs(30);

/// What a program calls a sub-agent in the background.
const LOCAL_AGENT: &str = "local_agent";

/// What a program calls a command in the background.
const LOCAL_BASH: &str = "local_bash";

/// Shows how a task in the background is, and what it has said or printed.
pub(crate) struct TaskOutput;

/// Input of the tool `TaskOutput`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputOfTask {
    /// The id of the agent or the command.
    task_id: String,
    /// `true`, also if left out: wait for its end first. `false`: show it as it is now.
    block: Option<bool>,
    /// How long to wait at most, in milliseconds; 30000 if left out.
    #[schemars(range(max = MAX_WAIT_MS))]
    timeout: Option<u64>,
}

/// Ends a task in the background.
pub(crate) struct TaskStop;

/// Input of the tool `TaskStop`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopOfTask {
    /// The id of the agent or the command.
    task_id: Option<String>,
    /// An older name of `task_id`, for a command.
    shell_id: Option<String>,
}

impl BuiltIn for TaskOutput {
    type Input = OutputOfTask;

    const CUTS_ITSELF: bool = true;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "TaskOutput",
            "Waits for an agent or a command in the background and shows how it ended: the \
                answer of an agent, or what a command has printed since this was last asked. If it has not \
                ended when the time is up, shows what there is so far. You are notified of its end \
                without this, too, so use it only when nothing else is left to do.",
            input_schema,
        )
        .with_effect(ToolEffect::ReadOnly)
        // What is new is new for one of them.
        .with_concurrency(Concurrency::Alone)
        .with_access(Access::Free)
        .with_output_cap(32_000)
        .with_timeout_ms(MAX_WAIT_MS + LOOK_MS)
        .polling()
    }

    async fn call(call: BuiltInCall<OutputOfTask>, context: ToolContext) -> ToolOutcome {
        let OutputOfTask { task_id, block, timeout } = call.input;
        let wait = block
            .unwrap_or(true)
            .then(|| Duration::from_millis(timeout.unwrap_or(DEFAULT_WAIT_MS).min(MAX_WAIT_MS)));
        match find(&task_id, &context) {
            Ok(Task::Agent(agent, agents)) => agent_output(agent, agents, wait, &context).await,
            Ok(Task::Shell(shell)) => {
                if let Some(wait) = wait {
                    let _may_run_on = tokio::time::timeout(wait, shell.ended()).await;
                }
                let made = |it: &NewOutput| shell_outcome(it, wait.is_some());
                show(&*shell, None, &context, made).await
            }
            Err(why) => ToolOutcome::failed(ToolErrorKind::Failed, why),
        }
    }
}

impl BuiltIn for TaskStop {
    type Input = StopOfTask;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "TaskStop",
            "Stops an agent or a command in the background, by its id.",
            input_schema,
        )
        .with_access(Access::Free)
        .with_output_cap(32_000)
        .with_timeout_ms(LOOK_MS)
    }

    async fn call(call: BuiltInCall<StopOfTask>, context: ToolContext) -> ToolOutcome {
        let Some(task_id) = call.input.task_id.or(call.input.shell_id) else {
            return ToolOutcome::failed(ToolErrorKind::InvalidInput, "`task_id` is missing.");
        };
        match find(&task_id, &context) {
            Ok(Task::Agent(agent, agents)) => stop_agent(&agent, agents, &context).await,
            Ok(Task::Shell(shell)) => kill(&*shell, LOCAL_BASH, &context).await,
            Err(why) => ToolOutcome::failed(ToolErrorKind::Failed, why),
        }
    }
}

/// Something in the background.
enum Task<'a> {
    Agent(BackgroundAgent, &'a dyn KeepAgents),
    Shell(Arc<dyn BackgroundShell>),
}

/// Returns the task of this id, or an error that lists those that run.
fn find<'a>(id: &str, context: &'a ToolContext) -> Result<Task<'a>, String> {
    let host = context.processes.as_ref();
    let agents = host.and_then(|it| it.agents());
    if let Some(shell) = host.and_then(|it| it.shells().find(&ShellId::from(id))) {
        return Ok(Task::Shell(shell));
    }
    if let Some((agent, agents)) = agents.and_then(|it| Some((it.find(&AgentId::from(id))?, it))) {
        return Ok(Task::Agent(agent, agents));
    }
    let mut running = String::new();
    for it in agents.map(|it| it.running()).unwrap_or_default() {
        // Writing to a string cannot fail.
        let _ = write!(running, "\n{}: agent, `{}`", it.agent, it.description);
    }
    for it in host.map(|it| it.shells().running()).unwrap_or_default() {
        let _ = write!(running, "\n{}: command, `{}`", it.shell, it.command);
    }
    let id: String = id.chars().take(100).collect();
    Err(if running.is_empty() {
        format!("There is no task {id} in the background. None is running.")
    } else {
        format!("There is no task {id} in the background. Running:{running}")
    })
}

/// Returns what a program calls the state of an agent.
fn agent_status(state: BackgroundState) -> &'static str {
    match state {
        BackgroundState::Running => "running",
        BackgroundState::Ended(AgentStatus::Completed) => "completed",
        BackgroundState::Ended(AgentStatus::Cancelled) => "killed",
        _ => "failed",
    }
}

/// Returns what a program calls the answer to a question about a task.
fn retrieval(is_running: bool, waited: bool) -> &'static str {
    match (is_running, waited) {
        (false, _) => "success",
        (true, true) => "timeout",
        (true, false) => "not_ready",
    }
}

/// Returns the report of an agent that has ended, or the last words so far of one that is still at work after the wait.
async fn agent_output(
    agent: BackgroundAgent,
    agents: &dyn KeepAgents,
    wait: Option<Duration>,
    context: &ToolContext,
) -> ToolOutcome {
    let over = match (agent.state, wait) {
        (BackgroundState::Running, None) => None,
        // It has ended, so nothing is waited for.
        (_, None) => agents.ended(&agent.agent).await,
        (_, Some(wait)) => {
            tokio::time::timeout(wait, agents.ended(&agent.agent)).await.ok().flatten()
        }
    };
    if let Some(end) = over {
        let result = task_json(&end.agent, &end.report, wait.is_some());
        return ended(&end, ToolOutcome::ok(&*end.report).with_structured(&result), context);
    }
    let said = agents.last_words(&agent.agent).await;
    let said: String = said.chars().take(max_output_chars(context)).collect();
    let description = &agent.description;
    let words = if said.is_empty() {
        "It has said nothing so far.".to_owned()
    } else {
        format!("The last that it said:\n{said}")
    };
    let text =
        format!("The background agent {} (`{description}`) is at work. {words}", agent.agent);
    ToolOutcome::ok(text).with_structured(&task_json(&agent, &said, wait.is_some()))
}

/// Makes what programs read about an agent.
fn task_json(agent: &BackgroundAgent, output: &str, waited: bool) -> Value {
    json!({
        "retrieval_status": retrieval(agent.state == BackgroundState::Running, waited),
        "task": {
            "task_id": agent.agent,
            "task_type": LOCAL_AGENT,
            "status": agent_status(agent.state),
            "description": agent.description,
            "output": output,
        },
    })
}

/// Makes a result the one that the model learns of an end by.
fn ended(end: &EndedAgent, mut outcome: ToolOutcome, context: &ToolContext) -> ToolOutcome {
    outcome.notes.push(end.agent.end_note());
    // An interrupt from now on leaves this result, and with it the record of the end.
    context.committed.set(outcome.clone());
    outcome
}

/// Returns what a command has printed, for the model and for programs.
fn shell_outcome(output: &NewOutput, waited: bool) -> ToolOutcome {
    let status = &output.status;
    let result = json!({
        "retrieval_status": retrieval(status.state == ShellState::Running, waited),
        "task": {
            "task_id": status.shell,
            "task_type": LOCAL_BASH,
            "status": status_of(status.state),
            "description": status.command,
            "output": output.text,
            "exitCode": status.state.exit_code(),
        },
    });
    output_outcome(output).with_structured(&result)
}

/// Ends an agent, and shows its end.
async fn stop_agent(
    agent: &BackgroundAgent,
    agents: &dyn KeepAgents,
    context: &ToolContext,
) -> ToolOutcome {
    let was_running = agent.state == BackgroundState::Running;
    agents.stop(&agent.agent);
    let over = tokio::time::timeout(STOP_WAIT, agents.ended(&agent.agent)).await.ok().flatten();
    let result = |message: &str| {
        json!({
            "message": message,
            "task_id": agent.agent,
            "task_type": LOCAL_AGENT,
        })
    };
    let Some(end) = over else {
        let text =
            format!("The agent {} is asked to stop. You are notified when it has.", agent.agent);
        return ToolOutcome::ok(text.as_str()).with_structured(&result(&text));
    };
    let outcome = if was_running {
        ToolOutcome::ok(&*end.report)
    } else {
        let why = format!("The agent was not stopped: it had ended before. {}", end.report);
        ToolOutcome::failed(ToolErrorKind::Failed, why)
    };
    let message = outcome.text.clone();
    ended(&end, outcome.with_structured(&result(&message)), context)
}
