//! Messages for sub-agents, from both sides.

use super::{
    orders::{ended, in_background, last_of, messages, turning, write_all},
    world::SessionWorld,
};
use crate::{
    catalogue::Money,
    cost::{Account, CallKind, CostLedger},
    ids::AgentId,
    ports::messages::{KnownAgent, MessageFate, Undelivered},
    run::{RunEnd, agent_types::going_on::BUILT_IN, outcome::RunOutcome},
    session::{MessageNumber, MessageRequest, OpenedTranscript, SessionInput, SpawnId, TurnKey},
    step1_settings_resolution::AgentLimits,
    tokens::Usage,
    transcript::load::UsageTotals,
};

fn send(world: &mut SessionWorld, key: TurnKey, agent: &AgentId, spawn: u64) {
    send_as(world, key, agent, spawn, Some(BUILT_IN.into()));
}

/// Sends a message to an agent of whose type this was written down.
fn send_as(
    world: &mut SessionWorld,
    key: TurnKey,
    agent: &AgentId,
    spawn: u64,
    definition: Option<String>,
) {
    let agent_type = "general-purpose".into();
    let known = KnownAgent { agent_type, definition, ..KnownAgent::default() };
    world.input(SessionInput::SendMessage(Box::new(MessageRequest {
        spawn: SpawnId(spawn),
        key,
        limits: AgentLimits::default(),
        call: format!("toolu_{spawn}").as_str().into(),
        agent: agent.clone(),
        known: Some(known),
    })));
}

fn answered(spawn: u64, fate: MessageFate) -> SessionInput {
    SessionInput::MessageAnswered { spawn: SpawnId(spawn), fate }
}

// REQ: AGT-6, AGT-8
#[test]
fn message_that_an_agent_at_its_end_does_not_take_has_it_go_on_after_that_end() {
    for is_end_first in [false, true] {
        let (mut world, key) = turning();
        let agent = in_background(&mut world, key);
        send(&mut world, key, &agent, 50);
        assert_eq!(last_of(&world, "DeliverMessage"), 1);
        let mut inputs = [answered(50, MessageFate::NotTaken), ended(&agent)];
        if is_end_first {
            inputs.reverse();
        }
        let [first, second] = inputs;
        world.input(first);
        assert_eq!(last_of(&world, "StartAgent"), 1, "its end or its answer is not known");
        world.input(second);
        assert_eq!(last_of(&world, "StartAgent"), 2);
        assert_eq!(last_of(&world, "MessageDelivered"), 0, "it is not safe yet");
        world.input(answered(50, MessageFate::Taken));
        assert_eq!(last_of(&world, "MessageDelivered"), 1);
        world.input(ended(&agent));
        world.done(key, None);
        let next = world.turn.unwrap();
        world.done(next, Some(RunEnd::NoPendingTools));
        write_all(&mut world);
        let told = messages(&world);
        let n_told = told.iter().filter(|it| it.contains("The background agent ")).count();
        assert_eq!(n_told, 2, "each of its ends: {told:?}");
        world.finish();
    }
}

// REQ: AGT-8
#[test]
fn agent_that_cannot_go_on_is_an_error_of_the_call_and_no_end() {
    let (mut world, key) = turning();
    let agent = in_background(&mut world, key);
    world.input(ended(&agent));
    send(&mut world, key, &agent, 50);
    assert_eq!(last_of(&world, "StartAgent"), 2);
    world.input(ended(&agent));
    world.input(answered(50, MessageFate::NotTaken));
    assert_eq!((last_of(&world, "RefuseMessage"), last_of(&world, "MessageDelivered")), (1, 0));
    assert_eq!(last_of(&world, "KeepEnd"), 1, "it has ended once");
    world.finish();
}

// REQ: AGT-8
#[test]
fn second_message_for_an_agent_that_cannot_go_on_is_answered_too() {
    let (mut world, key) = turning();
    let agent = in_background(&mut world, key);
    world.input(ended(&agent));
    send(&mut world, key, &agent, 50);
    send(&mut world, key, &agent, 51);
    world.input(answered(51, MessageFate::NotTaken));
    let why = "the disk is full".into();
    world.input(SessionInput::AgentRefused { agent: agent.clone(), why });
    assert_eq!(last_of(&world, "RefuseMessage"), 1, "the first one");
    assert_eq!(last_of(&world, "StartAgent"), 3, "the second one is tried anew");
    world.input(answered(51, MessageFate::Taken));
    assert_eq!(last_of(&world, "MessageDelivered"), 1);
    world.finish();
}

// REQ: AGT-6
#[test]
fn agent_whose_type_was_not_written_down_does_not_go_on_as_what_the_name_denotes_now() {
    let (mut world, key) = turning();
    let agent = in_background(&mut world, key);
    world.input(ended(&agent));
    send_as(&mut world, key, &agent, 50, None);
    assert_eq!((last_of(&world, "StartAgent"), last_of(&world, "RefuseMessage")), (1, 1));
    let why = Undelivered::UnrecordedType { agent_type: "general-purpose".into() };
    assert_eq!(why.code(), "unrecorded_type");
    assert!(world.log.iter().any(|it| it.contains(&format!("{why:?}"))), "{:#?}", world.log);
    send_as(&mut world, key, &agent, 51, Some("another".into()));
    assert_eq!((last_of(&world, "StartAgent"), last_of(&world, "RefuseMessage")), (1, 2));
    world.finish();
}

fn tokens(input_tokens: u64) -> Usage {
    Usage { input_tokens, ..Usage::default() }
}

fn ledger(model: &str, tokens_used: u64) -> CostLedger {
    let mut ledger = CostLedger::default();
    let account = Account::of_call(tokens(tokens_used), Some(Money(tokens_used)));
    ledger.count(model, CallKind::Answer, account);
    ledger
}

/// What a transcript says was used.
fn totals(tokens_used: u64) -> UsageTotals {
    let mut totals = UsageTotals::default();
    (totals.usage, totals.cost) = (tokens(tokens_used), ledger("", tokens_used));
    totals.model = Some("m".into());
    totals
}

/// The outcome of an agent that used 100 tokens, and the one below it 10.
fn outcome_of_tree(of: &RunOutcome, model: &str, below: &AgentId) -> RunOutcome {
    let mut cost = ledger(model, 100);
    cost.enter(below.clone(), ledger(model, 10));
    RunOutcome { usage: tokens(110), cost, ..of.clone() }
}

// REQ: AGT-6, AGT-7
#[test]
fn what_agents_used_before_one_went_on_is_counted_once_when_it_crashes() {
    let below = AgentId::from("0000000000000001");
    // Reported under the name that its model answered to or another one, or crashed before.
    for reported in [Some("m"), Some("alias"), None] {
        let (mut world, key) = turning();
        let agent = in_background(&mut world, key);
        world.done(key, Some(RunEnd::NoPendingTools));
        write_all(&mut world);
        let crashed = |n: u64, n_below: u64| SessionInput::AgentCrashed {
            agent: agent.clone(),
            used: vec![(agent.clone(), totals(n)), (below.clone(), totals(n_below))],
        };
        let of_run = world.machine.outcomes.values().next().cloned().expect("a run has ended");
        world.input(match reported {
            Some(model) => {
                let outcome = outcome_of_tree(&of_run, model, &below);
                SessionInput::AgentEnded { agent: agent.clone(), result: Box::new(Ok(outcome)) }
            }
            None => crashed(100, 10),
        });
        assert_eq!(world.machine.spent, tokens(110));
        let key = world.turn.expect("the model learns of its end");
        send(&mut world, key, &agent, 50);
        world.input(answered(50, MessageFate::Taken));
        world.input(crashed(150, 30));
        assert_eq!(world.machine.spent, tokens(180), "{reported:?}");
        for ledger in [&world.machine.cost, &world.machine.cost_here] {
            let counted = ledger.tree().total();
            assert_eq!((counted.usage, counted.cost), (tokens(180), Money(180)), "{reported:?}");
        }
        world.finish();
    }
}

fn receive(world: &mut SessionWorld, number: u64) {
    let (id, text) = (format!("m{number}").as_str().into(), format!("message {number}"));
    world.input(SessionInput::Message { number: MessageNumber(number), id, text });
}

fn n_fates(world: &SessionWorld, fate: &str) -> usize {
    let is_meant = |it: &&String| it.starts_with("MessageTaken") && it.contains(fate);
    world.log.iter().filter(is_meant).count()
}

// REQ: AGT-6
#[test]
fn message_is_safe_before_it_is_answered_and_is_shown_before_the_next_turn_also_after_an_answer() {
    let (mut world, key) = turning();
    receive(&mut world, 1);
    assert_eq!((n_fates(&world, "Taken"), messages(&world).len()), (0, 1));
    write_all(&mut world);
    assert_eq!((n_fates(&world, "fate: Taken"), messages(&world).len()), (1, 1));
    world.done(key, Some(RunEnd::NoPendingTools));
    let next = world.turn.expect("the run goes on");
    receive(&mut world, 2);
    world.done(next, Some(RunEnd::Error));
    write_all(&mut world);
    assert_eq!((world.turn, last_of(&world, "Reply")), (None, 1), "an error ends it all the same");
    let shown = messages(&world);
    assert!(shown.len() == 2 && shown[1].contains("message 1"), "{shown:?}");
    world.finish();
    world.check();
}

// REQ: AGT-6
#[test]
fn session_without_a_run_takes_no_message_and_one_with_a_run_not_without_end() {
    let mut world = SessionWorld::new();
    receive(&mut world, 1);
    assert_eq!(n_fates(&world, "fate"), 0, "it may begin one");
    world.owed.clear();
    world.input(SessionInput::Opened(OpenedTranscript::New));
    assert_eq!(n_fates(&world, "NotTaken"), 1);
    world.prompt(10);
    (2..40).for_each(|it| receive(&mut world, it));
    write_all(&mut world);
    assert_eq!((n_fates(&world, "fate: Taken"), n_fates(&world, "TooMany")), (32, 6));
    world.finish();
    receive(&mut world, 50);
    assert_eq!(n_fates(&world, "NotTaken"), 2);
    world.check();
}
