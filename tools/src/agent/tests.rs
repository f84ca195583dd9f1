//! The Agent tool, with sub-agents that end as a test says.
//!
//! Built under `#[cfg(test)]` only.

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

fn call(status: impl Into<Option<AgentStatus>>, text: &str) -> (ToolOutcome, AgentOrder) {
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
    for (status, has_head, expected) in cases {
        assert_eq!(is_over(status, has_head), expected, "{status:?}");
    }
}

/// Agents that end by their prompt, and only when all have been ordered.
#[derive(Debug)]
struct Meeting {
    all: tokio::sync::Barrier,
    orders: Mutex<Vec<AgentOrder>>,
}

#[derive(Debug)]
struct MeetingPort(Arc<Meeting>);

impl SpawnAgent for MeetingPort {
    fn spawn(&self, order: AgentOrder) -> BoxFuture<'static, AgentReport> {
        let meeting = Arc::clone(&self.0);
        Box::pin(async move {
            let name = order.prompt.as_str().into();
            let status = match order.prompt.as_str() {
                "fails" => AgentStatus::Failed,
                _ => AgentStatus::Completed,
            };
            let report = AgentReport::new(status, Some(name), format!("found {}", order.prompt));
            meeting.orders.lock().unwrap().push(order);
            meeting.all.wait().await;
            report
        })
    }

    fn worktree_base(&self) -> WorktreeBase {
        WorktreeBase::default()
    }
}

// REQ: AGT-4
#[test]
fn several_prompts_are_orders_of_one_call_that_are_under_way_together() {
    let all = tokio::sync::Barrier::new(3);
    let meeting = Arc::new(Meeting { all, orders: Mutex::default() });
    let mut world = World::new();
    world.context.agents = Some(Arc::new(MeetingPort(Arc::clone(&meeting))));
    let input = json!({
        "description": "d", "prompts": ["north", "fails", "south"], "subagent_type": "t", "model": "m",
    });
    let input = serde_json::from_value(input).unwrap();
    let call = BuiltInCall { id: "toolu_1".into(), input, path: None, hidden: Arc::default() };
    let outcome = block_on(Agent::call(call, world.context.clone()));
    let mut orders = meeting.orders.lock().unwrap();
    orders.sort_by_key(|it| it.part);
    for (at, order) in orders.iter().enumerate() {
        let mut expected =
            AgentOrder::new("toolu_1".into(), format!("d ({}/3)", at + 1), &order.prompt);
        (expected.part, expected.in_background) = (u32::try_from(at).ok(), Some(false));
        (expected.agent_type, expected.model) = (Some("t".into()), Some("m".into()));
        assert_eq!(*order, expected);
    }
    assert_eq!(outcome.error, None, "{outcome:?}");
    let [ToolNote::AgentsEnded { findings }] = &outcome.notes[..] else { panic!("{outcome:?}") };
    let found: Vec<_> =
        findings.agents().iter().map(|it| (it.task.as_str(), it.is_found)).collect();
    assert_eq!(found, [("north", true), ("fails", false), ("south", true)]);
    assert_eq!(world.context.committed.get(), Some(&outcome), "an interrupt leaves the findings");
}

/// Agents of which one ends at once, and the others never.
#[derive(Debug)]
struct OneEnds;

impl SpawnAgent for OneEnds {
    fn spawn(&self, order: AgentOrder) -> BoxFuture<'static, AgentReport> {
        let name = order.prompt.as_str().into();
        match order.prompt.as_str() {
            "ends" => {
                let report = AgentReport::new(AgentStatus::Completed, Some(name), "found it");
                Box::pin(std::future::ready(report))
            }
            _ => Box::pin(std::future::pending()),
        }
    }

    fn worktree_base(&self) -> WorktreeBase {
        WorktreeBase::default()
    }
}

// REQ: AGT-4, RUN-2
#[test]
fn call_that_is_dropped_leaves_the_findings_of_agents_that_have_ended() {
    for (prompts, expected) in [(["never", "ends"], true), (["never", "neither"], false)] {
        let mut world = World::new();
        world.context.agents = Some(Arc::new(OneEnds));
        let input = json!({ "description": "d", "prompts": prompts });
        let input = serde_json::from_value(input).unwrap();
        let call = BuiltInCall { id: "toolu_1".into(), input, path: None, hidden: Arc::default() };
        block_on(async {
            let mut running = Box::pin(Agent::call(call, world.context.clone()));
            assert!(futures::poll!(&mut running).is_pending());
        });
        let left = world.context.committed.get();
        assert_eq!(left.is_some(), expected);
        if let Some(left) = left {
            let expected = "[One agent alone ended with findings:";
            assert!(left.text.starts_with(expected), "{}", left.text);
            assert!(
                left.text.contains("found it\n\nAgents:\n1. never: Interrupted"),
                "{}",
                left.text
            );
        }
    }
}

// REQ: AGT-4
#[test]
fn call_with_both_kinds_of_prompts_or_none_starts_nothing() {
    for (input, why) in [
        (json!({"description": "d", "prompt": "p", "prompts": ["a", "b"]}), "not both"),
        (json!({"description": "d"}), "There is no task"),
        (
            json!({"description": "d", "prompts": ["a", "b"], "run_in_background": true}),
            "Several prompts are waited for",
        ),
    ] {
        let outcome = block_on(World::new().run::<Agent>(input));
        assert_eq!(outcome.error, Some(ToolErrorKind::InvalidInput));
        assert!(outcome.text.contains(why), "{}", outcome.text);
    }
}
