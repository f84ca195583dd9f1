//! Agent: a sub-agent does a task and its last answer comes back.
//!
//! The sub-agent itself is run through a port. Here its report becomes a result, and its text is
//! made safe: it comes from a model that may have read anything, so it must not pass for the
//! harness or for a person.

use std::{collections::BTreeMap, sync::Arc};

use ennead_runtime::{
    agent_text::made_safe,
    ids::ToolUseId,
    ports::{
        AgentOrder, AgentPlace, AgentReport, AgentStatus, SpawnAgent, ToolContext,
        agents::BackgroundState,
    },
    tool::{
        Access, Concurrency, ToolErrorKind, ToolNote, ToolOutcome, ToolSpec,
        findings::{self, Finding, Findings, MAX_PROMPTS},
    },
};
use futures::stream::{FuturesUnordered, StreamExt as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    built_in::{BuiltIn, BuiltInCall},
    declared::{millis, number},
};

mod worktree;

use worktree::{Changed, HeldWorktree, WorktreeRequest};

/// Set, no agent works in the background.
const NO_BACKGROUND: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";

pub(crate) struct Agent;

/// A task for a sub-agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentInput {
    /// The task in three to five words.
    description: String,
    /// Everything the agent needs to know; it sees nothing else of this conversation.
    prompt: Option<String>,
    /// In place of `prompt`: several tasks that do not depend on each other, each for an agent of its own that knows
    /// nothing of the others. They work side by side, and one report of what they found comes back. Not in the
    /// background.
    #[schemars(length(min = 2, max = MAX_PROMPTS))]
    prompts: Option<Vec<String>>,
    /// Which agent; `general-purpose` if left out.
    subagent_type: Option<String>,
    /// Which model; that of this conversation if left out.
    model: Option<String>,
    /// `worktree`: the agent works in a git worktree of its own, on a branch of its own. It begins at
    /// the remote's default branch (without one, at `HEAD`) and has none of your uncommitted changes.
    /// Both stay if it changed something there; otherwise they are removed, and files that git
    /// ignores are lost with them. Not for an agent that works in a worktree itself.
    isolation: Option<Isolation>,
    /// `true`: the call returns at once, and the agent works in the background; you are notified when it ends, so do
    /// not wait for it in a loop. An agent in a worktree is waited for, and so is one that another agent starts.
    run_in_background: Option<bool>,
}

/// What keeps a sub-agent apart.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Isolation {
    Worktree,
}

impl BuiltIn for Agent {
    type Input = AgentInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "Agent",
            "Gives a task to a sub-agent with a context of its own and returns its \
                last answer. Several calls in one message run side by side, and so do the tasks in `prompts` of \
                one call. Give either `prompt` or `prompts`. Say in each all that its agent needs to know and \
                what it shall report.",
            input_schema,
        )
        .with_concurrency(Concurrency::Together { max: 5 })
        .with_access(Access::Free)
        .with_output_cap(100_000)
    }

    async fn call(call: BuiltInCall<AgentInput>, context: ToolContext) -> ToolOutcome {
        let BuiltInCall { id, input, hidden, .. } = call;
        let AgentInput { description, prompt, prompts, subagent_type, .. } = input;
        let in_background = input.run_in_background == Some(true);
        // One without a prompt would have nothing to do, and never say that it has ended.
        let prompts = match findings::prompts(prompt, prompts, in_background) {
            Ok(prompts) => prompts,
            Err(why) => return ToolOutcome::failed(ToolErrorKind::InvalidInput, why.to_string()),
        };
        let Some(agents) = context.agents.clone() else {
            let why = "Sub-agents cannot be started here: the limit of nesting is reached.";
            return ToolOutcome::failed(ToolErrorKind::LimitReached, why);
        };
        let task = AgentTask {
            id,
            hidden,
            description,
            agent_type: subagent_type,
            model: input.model,
            in_worktree: input.isolation.is_some(),
            in_background: match number(&context, NO_BACKGROUND) {
                Some(_) => Some(false),
                // What the type says holds, whatever the call says.
                None => in_background.then_some(true),
            },
            context,
            agents,
        };
        match <[String; 1]>::try_from(prompts) {
            Ok([prompt]) => task.outcome_of_one(prompt).await,
            Err(prompts) => task.outcome_of_several(prompts).await,
        }
    }
}

/// What the sub-agents of one call have in common.
struct AgentTask {
    id: ToolUseId,
    hidden: Arc<[String]>,
    description: String,
    agent_type: Option<String>,
    model: Option<String>,
    in_worktree: bool,
    in_background: Option<bool>,
    context: ToolContext,
    agents: Arc<dyn SpawnAgent>,
}

/// How a sub-agent ended, and what it left.
struct EndedTask {
    report: AgentReport,
    changed: Option<Changed>,
    ms: u64,
}

impl AgentTask {
    fn type_name(&self) -> &str {
        self.agent_type.as_deref().unwrap_or("general-purpose")
    }

    /// Runs a sub-agent to its end, or to its beginning where it works in the background; the error says in words why
    /// it cannot have a worktree.
    async fn run(&self, prompt: String, part: Option<(u32, usize)>) -> Result<EndedTask, String> {
        let start = self.context.clock.elapsed();
        let mut held = None;
        if self.in_worktree {
            let (call, base) = (self.id.clone(), self.agents.worktree_base());
            let wanted = WorktreeRequest { call, base, hidden: self.hidden.clone() };
            let made = HeldWorktree::new(&self.context, wanted).await;
            held = Some(made.map_err(|why| {
                format!("The agent was not started: it cannot have a worktree: {why}")
            })?);
        }
        let description = match part {
            None => self.description.clone(),
            Some((at, of)) => format!("{} ({}/{of})", self.description, at + 1),
        };
        let mut order = AgentOrder::new(self.id.clone(), description, prompt);
        (order.agent_type, order.model) = (self.agent_type.clone(), self.model.clone());
        order.worktree = held.as_ref().map(|it| AgentPlace::new(it.workspace(), it.hold()));
        order.in_background = self.in_background;
        if let Some((at, _)) = part {
            // Its findings are waited for, whatever its type says.
            (order.part, order.in_background) = (Some(at), Some(false));
        }
        let report = self.agents.spawn(order).await;
        let ms = millis(self.context.clock.elapsed().saturating_sub(start));
        let changed = match (held, report.status) {
            (Some(held), Some(status)) => held.end(is_over(status, report.head.is_some())).await,
            _ => None,
        };
        Ok(EndedTask { report, changed, ms })
    }

    async fn outcome_of_one(self, prompt: String) -> ToolOutcome {
        let EndedTask { report, changed, ms } = match self.run(prompt.clone(), None).await {
            Ok(ended) => ended,
            Err(why) => return ToolOutcome::failed(ToolErrorKind::Failed, why),
        };
        let Some(status) = report.status else {
            let outcome = launched(&report, &self.description, &prompt);
            // An interrupt from now on leaves this result: the agent goes on.
            self.context.committed.set(outcome.clone());
            return outcome;
        };
        let mut outcome = answer(status, &report.text);
        if outcome.error.is_none() {
            let mut result = json!({
                "status": "completed",
                "agentId": report.agent,
                "agentType": self.type_name(),
                "content": [{"type": "text", "text": outcome.text}],
                "totalToolUseCount": report.n_tool_uses,
                "totalDurationMs": ms,
                "totalTokens": report.usage.total(),
                "usage": report.usage,
                "prompt": prompt,
            });
            if let Some(Changed { path, branch }) = &changed {
                result["worktreePath"] = path.as_str().into();
                result["worktreeBranch"] = branch.as_str().into();
            }
            outcome = outcome.with_structured(&result);
        }
        if let Some(Changed { path, branch }) = changed {
            let kept = format!("\n\n[What it changed is in the worktree {path}, branch {branch}.]");
            outcome.text.push_str(&kept);
        }
        if let Some(agent) = report.agent.as_ref().filter(|_| report.can_go_on) {
            let trailer =
                format!("\n\n[The id of the agent is {agent}. SendMessage has it go on.]");
            outcome.text.push_str(&trailer);
        }
        if let Some(agent) = report.agent {
            outcome.notes.push(ToolNote::AgentEnded { agent, head: report.head });
        }
        outcome
    }

    /// Runs a sub-agent for each prompt, side by side. What they found is put together by a model afterwards.
    async fn outcome_of_several(self, prompts: Vec<String>) -> ToolOutcome {
        let start = self.context.clock.elapsed();
        let of = prompts.len();
        let mut ended = EndedSoFar { task: &self, prompts: &prompts, found: BTreeMap::new() };
        let each = prompts.iter().zip(0..).map(async |(prompt, at)| {
            (at, finding(prompt, self.run(prompt.clone(), Some((at, of))).await))
        });
        let mut running: FuturesUnordered<_> = each.collect();
        while let Some((at, finding)) = running.next().await {
            ended.found.insert(at, finding);
        }
        let found = std::mem::take(&mut ended.found).into_values().collect();
        let ms = millis(self.context.clock.elapsed().saturating_sub(start));
        let outcome = Findings::new(self.type_name(), ms, found).outcome();
        // An interrupt from now on leaves this result: the agents have ended.
        self.context.committed.set(outcome.clone());
        outcome
    }
}

/// What became of the agents of a call so far. An interrupt drops the call: then the findings of those that have ended
/// are its outcome.
struct EndedSoFar<'a> {
    task: &'a AgentTask,
    prompts: &'a [String],
    /// By the place of the prompt.
    found: BTreeMap<u32, Finding>,
}

impl Drop for EndedSoFar<'_> {
    fn drop(&mut self) {
        let mut found = std::mem::take(&mut self.found);
        if found.is_empty() {
            return;
        }
        for (prompt, at) in self.prompts.iter().zip(0..) {
            found.entry(at).or_insert_with(|| {
                let why = "Interrupted before it ended.";
                let outcome = ToolOutcome::failed(ToolErrorKind::Interrupted, why);
                Finding::new(
                    prompt,
                    BackgroundState::Ended(AgentStatus::Cancelled).code(),
                    outcome,
                    false,
                )
            });
        }
        let found = found.into_values().collect();
        self.task.context.committed.set(Findings::new(self.task.type_name(), 0, found).outcome());
    }
}

/// What became of one of several agents.
fn finding(task: &str, ended: Result<EndedTask, String>) -> Finding {
    let EndedTask { report, changed, .. } = ended.unwrap_or_else(|why| EndedTask {
        report: AgentReport::new(AgentStatus::Failed, None, why),
        changed: None,
        ms: 0,
    });
    // Each is waited for, so it has a status.
    let status = report.status.unwrap_or(AgentStatus::Failed);
    let (code, says) = (BackgroundState::Ended(status).code(), !report.text.trim().is_empty());
    let mut finding = Finding::new(task, code, answer(status, &report.text), says);
    finding.worktree = changed.map(|Changed { path, branch }| (path, branch));
    (finding.agent, finding.head) = (report.agent, report.head);
    (finding.n_tool_uses, finding.usage) = (report.n_tool_uses, report.usage);
    finding.can_go_on = report.can_go_on;
    finding
}

/// The answer for an agent that works in the background.
fn launched(report: &AgentReport, description: &str, prompt: &str) -> ToolOutcome {
    let agent = report.agent.as_ref().map(|it| it.as_str()).unwrap_or_default();
    let text = format!(
        "The agent {agent} works in the background. You are notified when it ends, with its answer; go on with \
         other work or end your turn meanwhile."
    );
    ToolOutcome::ok(text).with_structured(&json!({
        "status": "async_launched",
        "agentId": agent,
        "description": description,
        "prompt": prompt,
        "outputFile": report.text,
    }))
}

/// Whether the agent is known to do nothing any longer. One that was stopped or cut off may have
/// tools that still work, and one that crashed left no head.
fn is_over(status: AgentStatus, has_head: bool) -> bool {
    match status {
        AgentStatus::Completed | AgentStatus::Refused => true,
        AgentStatus::Failed => has_head,
        _ => false,
    }
}

/// What the parent reads. The text of an agent before it was cut off is an answer, with a note.
fn answer(status: AgentStatus, text: &str) -> ToolOutcome {
    let final_text = made_safe(text.trim_end());
    let failed = |kind, what: &str| {
        let text =
            if final_text.is_empty() { what.to_owned() } else { format!("{what}: {final_text}") };
        ToolOutcome::failed(kind, text)
    };
    let cut_off = |kind, why: &str| {
        if final_text.is_empty() {
            failed(kind, &format!("The agent {why} before it said anything"))
        } else {
            ToolOutcome::ok(format!(
                "{final_text}\n\n[Cut off: the agent {why}. Its work may be unfinished.]"
            ))
        }
    };
    match status {
        AgentStatus::Completed if final_text.is_empty() => {
            ToolOutcome::ok("(the agent ended without an answer)")
        }
        AgentStatus::Completed => ToolOutcome::ok(final_text),
        AgentStatus::Cut => cut_off(ToolErrorKind::LimitReached, "reached a limit"),
        AgentStatus::Stalled => cut_off(ToolErrorKind::Failed, "made no progress"),
        AgentStatus::Cancelled => failed(ToolErrorKind::Interrupted, "The agent was stopped"),
        AgentStatus::Refused => failed(ToolErrorKind::LimitReached, "The agent was not started"),
        _ => failed(ToolErrorKind::Failed, "Agent terminated early due to an error"),
    }
}

#[cfg(test)]
mod tests;
