//! Agent: a sub-agent does a task and its last answer comes back.
//!
//! The sub-agent itself is run through a port. Here its report becomes a result, and its text is
//! made safe: it comes from a model that may have read anything, so it must not pass for the
//! harness or for a person.

use std::sync::Arc;

use ennead_runtime::{
    agent_text::made_safe,
    ports::{AgentOrder, AgentPlace, AgentReport, AgentStatus, ToolContext},
    tool::{Access, Concurrency, ToolEffect, ToolErrorKind, ToolNote, ToolOutcome, ToolSpec},
};
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
    prompt: String,
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
        ToolSpec {
            name: "Agent".into(),
            description: "Gives a task to a sub-agent with a context of its own and returns its \
                last answer. Several calls in one message run side by side. Say in the prompt all \
                it needs to know and what it shall report."
                .into(),
            input_schema,
            effect: ToolEffect::SideEffects,
            concurrency: Concurrency::Together { max: 5 },
            access: Access::Free,
            output_cap: Some(100_000),
            timeout_ms: None,
            polls: false,
        }
    }

    async fn call(call: BuiltInCall<AgentInput>, context: ToolContext) -> ToolOutcome {
        // It would have nothing to do, and never say that it has ended.
        if call.input.prompt.trim().is_empty() {
            return ToolOutcome::failed(ToolErrorKind::InvalidInput, "The prompt is empty.");
        }
        let Some(agents) = context.agents.clone() else {
            let why = "Sub-agents cannot be started here: the limit of nesting is reached.";
            return ToolOutcome::failed(ToolErrorKind::LimitReached, why);
        };
        let start = context.clock.elapsed();
        let BuiltInCall { id, input, hidden, .. } = call;
        let AgentInput { description, prompt, subagent_type, model, isolation, run_in_background } =
            input;
        let held = match isolation {
            None => None,
            Some(Isolation::Worktree) => {
                let (call, base) = (id.clone(), agents.worktree_base());
                let wanted = WorktreeRequest { call, base, hidden };
                match HeldWorktree::new(&context, wanted).await {
                    Ok(held) => Some(held),
                    Err(why) => {
                        let why =
                            format!("The agent was not started: it cannot have a worktree: {why}");
                        return ToolOutcome::failed(ToolErrorKind::Failed, why);
                    }
                }
            }
        };
        let mut order = AgentOrder::new(id, description.clone(), prompt.clone());
        (order.agent_type, order.model) = (subagent_type.clone(), model);
        order.worktree = held.as_ref().map(|it| AgentPlace::new(it.workspace(), it.hold()));
        order.in_background = match number(&context, NO_BACKGROUND) {
            Some(_) => Some(false),
            // What the type says holds, whatever the call says.
            None => run_in_background.filter(|it| *it),
        };
        let report = agents.spawn(order).await;
        let Some(status) = report.status else {
            let outcome = launched(&report, &description, &prompt);
            // An interrupt from now on leaves this result: the agent goes on.
            context.committed.set(outcome.clone());
            return outcome;
        };
        let ms = millis(context.clock.elapsed().saturating_sub(start));
        let changed = match held {
            None => None,
            Some(held) => held.end(is_over(status, report.head.is_some())).await,
        };
        let mut outcome = answer(status, &report.text);
        if outcome.error.is_none() {
            let mut result = json!({
                "status": "completed",
                "agentId": report.agent,
                "agentType": subagent_type.as_deref().unwrap_or("general-purpose"),
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
        if let Some(agent) = report.agent {
            outcome.notes.push(ToolNote::AgentEnded { agent, head: report.head });
        }
        outcome
    }
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
mod tests {
    use std::sync::Mutex;

    use ennead_runtime::{
        digest::Digest,
        ports::{BoxFuture, SpawnAgent},
        step1_settings_resolution::WorktreeBase,
    };

    use super::*;
    use crate::test_support::{World, block_on, structured};

    #[derive(Debug)]
    struct FixedReport {
        report: AgentReport,
        orders: Mutex<Vec<AgentOrder>>,
    }

    impl SpawnAgent for FixedReport {
        fn spawn(&self, order: AgentOrder) -> BoxFuture<'static, AgentReport> {
            self.orders.lock().unwrap().push(order);
            let report = self.report.clone();
            Box::pin(async move { report })
        }

        fn worktree_base(&self) -> WorktreeBase {
            WorktreeBase::default()
        }
    }

    fn call(
        status: impl Into<Option<AgentStatus>>,
        text: &str,
    ) -> (ToolOutcome, AgentOrder) {
        let status = status.into();
        let agent = (status != Some(AgentStatus::Refused)).then(|| "a1".into());
        let mut report = AgentReport::new(status, agent, text);
        (report.n_tool_uses, report.usage.output_tokens) = (3, 7);
        report.head = Some(Digest::of(b"head"));
        let agents = Arc::new(FixedReport { report, orders: Mutex::default() });
        let mut world = World::new();
        world.context.agents = Some(agents.clone());
        let input = json!({"description": "d", "prompt": "p", "subagent_type": "t", "model": "m"});
        let outcome = block_on(world.run::<Agent>(input));
        let order = agents.orders.lock().unwrap().remove(0);
        (outcome, order)
    }

    // REQ: AGT-1
    #[test]
    fn the_answer_comes_back_with_its_figures() {
        let (outcome, order) = call(AgentStatus::Completed, "done");
        let mut expected = AgentOrder::new("toolu_1".into(), "d", "p");
        (expected.agent_type, expected.model) = (Some("t".into()), Some("m".into()));
        assert_eq!(order, expected);
        assert_eq!((outcome.error, outcome.text.as_str()), (None, "done"));
        let result = structured(&outcome);
        assert_eq!(result["totalToolUseCount"], 3);
        assert_eq!(result["totalTokens"], 7);
        assert_eq!(result["content"], json!([{"type": "text", "text": "done"}]));
        let note = ToolNote::AgentEnded { agent: "a1".into(), head: Some(Digest::of(b"head")) };
        assert_eq!(outcome.notes, [note]);
    }

    // REQ: AGT-6
    #[test]
    fn agent_in_the_background_is_named_at_once() {
        let (outcome, _) = call(None, "/t/agent-a1.jsonl");
        assert_eq!(outcome.error, None);
        assert!(outcome.text.starts_with("The agent a1 works in the background."), "{outcome:?}");
        let result = structured(&outcome);
        assert_eq!(result["status"], "async_launched");
        assert_eq!(
            (&result["agentId"], &result["outputFile"]),
            (&json!("a1"), &json!("/t/agent-a1.jsonl"))
        );
        assert_eq!(outcome.notes, []);
    }

    // REQ: AGT-1
    #[test]
    fn each_way_to_end_has_its_result() {
        use AgentStatus as S;
        use ToolErrorKind as E;
        let cases = [
            (S::Completed, "", None, "(the agent ended without an answer)"),
            (S::Failed, "x", Some(E::Failed), "Agent terminated early due to an error: x"),
            (S::Failed, "", Some(E::Failed), "Agent terminated early due to an error"),
            (S::Cut, "x", None, "x\n\n[Cut off: the agent reached a limit."),
            (S::Cut, "", Some(E::LimitReached), "The agent reached a limit before"),
            (S::Stalled, "x", None, "x\n\n[Cut off: the agent made no progress."),
            (S::Stalled, "", Some(E::Failed), "The agent made no progress"),
            (S::Cancelled, "x", Some(E::Interrupted), "The agent was stopped: x"),
            (S::Refused, "5 deep", Some(E::LimitReached), "The agent was not started: 5 deep"),
        ];
        for (status, final_text, error, start) in cases {
            let (outcome, _) = call(status, final_text);
            assert_eq!(outcome.error, error, "{status:?}");
            assert!(outcome.text.starts_with(start), "{status:?}: {}", outcome.text);
            assert_eq!(outcome.notes.is_empty(), status == S::Refused);
        }
    }

    // REQ: AGT-1
    #[test]
    fn where_nesting_is_not_allowed_the_call_is_refused() {
        let mut world = World::new();
        let outcome = block_on(world.run::<Agent>(json!({"description": "d", "prompt": "p"})));
        assert_eq!(outcome.error, Some(ToolErrorKind::LimitReached));
    }

    // REQ: AGT-4
    #[test]
    fn agent_without_a_prompt_is_not_started() {
        let input = json!({"description": "d", "prompt": " \n", "run_in_background": true});
        let outcome = block_on(World::new().run::<Agent>(input));
        assert_eq!(outcome.error, Some(ToolErrorKind::InvalidInput));
    }

    // REQ: AGT-1
    #[test]
    fn only_an_agent_that_surely_ended_gives_its_place_up() {
        use AgentStatus as S;
        let cases = [
            (S::Completed, true, true),
            (S::Refused, false, true),
            (S::Failed, true, true),
            // It crashed.
            (S::Failed, false, false),
            (S::Cut, true, false),
            (S::Stalled, true, false),
            (S::Cancelled, true, false),
        ];
        for (status, head, expected) in cases {
            let mut report = AgentReport::new(status, None, "");
            report.head = head;
            assert_eq!(is_over(&report), expected, "{status:?}");
        }
    }
}
