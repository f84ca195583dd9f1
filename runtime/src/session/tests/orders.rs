//! Orders of inputs that matter, one by one.

use super::world::{Owed, SessionWorld};
use crate::{
    ids::AgentId,
    ports::agents::AgentPlacement,
    run::{RunEnd, outcome::RunError},
    session::{OpenedTranscript, SessionInput, TurnKey, TurnRemains},
    transcript::entry::Line,
};

/// A session with a turn under way.
pub(super) fn turning() -> (SessionWorld, TurnKey) {
    let mut world = SessionWorld::new();
    world.owed.clear();
    world.input(SessionInput::Opened(OpenedTranscript::New));
    world.prompt(10);
    let key = world.turn.unwrap();
    (world, key)
}

pub(super) fn last_of(world: &SessionWorld, effect: &str) -> usize {
    world.log.iter().filter(|it| it.starts_with(effect)).count()
}

/// Lets the writer answer everything that it was sent.
pub(super) fn write_all(world: &mut SessionWorld) {
    while let Some(at) = world.owed.iter().position(|it| matches!(it, Owed::Written(_))) {
        let Owed::Written(ticket) = world.owed.remove(at) else { continue };
        let result = Ok(crate::digest::Digest::of(b"head"));
        world.input(SessionInput::Written { ticket, result });
    }
}

// REQ: TRN-7
#[test]
fn turn_after_turn_follows_until_one_ends_the_run() {
    let (mut world, first) = turning();
    world.done(first, None);
    let second = world.turn.unwrap();
    assert_eq!(second, TurnKey(first.0 + 1));
    world.done(second, Some(RunEnd::NoPendingTools));
    assert_eq!((world.turn, last_of(&world, "Reply")), (None, 0), "not before it is on file");
    write_all(&mut world);
    assert_eq!(last_of(&world, "Reply"), 1);
    world.finish();
    world.check();
}

#[test]
fn stopped_turn_is_closed_only_when_its_agents_have_ended_too() {
    let (mut world, key) = turning();
    world.spawn(key);
    let Some(Owed::Agent(agent)) = world.owed.pop() else { panic!("no agent was started") };
    world.input(SessionInput::Interrupt);
    assert_eq!(last_of(&world, "CloseAgent"), 1);
    world.input(SessionInput::TurnQuiet { key, late: false });
    assert_eq!(last_of(&world, "LeaveTurn"), 0, "its agent is at work");
    let result = Box::new(Err(crate::run::outcome::RunError::Ended));
    world.input(SessionInput::AgentEnded { agent, result });
    assert_eq!(last_of(&world, "LeaveTurn"), 1);
    world.finish();
    world.check();
}

#[test]
fn lost_lines_end_the_run_at_once_and_are_written_again_with_its_end() {
    let (mut world, key) = turning();
    let append = crate::turn::effect::Append {
        lines: Vec::new(),
        stored: Vec::new(),
        title: None,
        ticket: 4,
        sync: false,
        is_awaited: true,
        updates: Vec::new(),
    };
    world.input(SessionInput::Append { key, append: Box::new(append) });
    let Some(Owed::Written(ticket)) = world.owed.pop() else { panic!("nothing was written") };
    let result = Err("the disk is full".into());
    world.input(SessionInput::Written { ticket, result });
    assert_eq!((world.turn, last_of(&world, "Reply")), (None, 1));
    let n_before = last_of(&world, "Write");
    assert!(2 <= n_before, "lost lines are sent again: {:#?}", world.log);
    world.finish();
    world.check();
}

#[test]
fn prompt_after_the_close_is_refused_and_starts_nothing() {
    let (mut world, key) = turning();
    world.input(SessionInput::Close);
    world.prompt(10);
    assert_eq!(last_of(&world, "Reply"), 1, "the late prompt is answered at once");
    world.input(SessionInput::TurnQuiet { key, late: true });
    write_all(&mut world);
    assert_eq!((last_of(&world, "StartTurn"), last_of(&world, "CloseTranscript")), (1, 1));
    world.finish();
    world.check();
}

#[test]
fn messages_of_a_turn_that_is_over_have_no_effect() {
    let (mut world, key) = turning();
    world.done(key, Some(RunEnd::NoPendingTools));
    write_all(&mut world);
    let n_effects = world.log.len();
    for input in [
        SessionInput::TurnCrashed { key },
        SessionInput::TurnFailed { key, why: "late".into() },
        SessionInput::TurnQuiet { key, late: false },
        SessionInput::TurnLeft { key, left: TurnRemains::default() },
        SessionInput::Interrupt,
        SessionInput::Stop,
    ] {
        world.input(input);
    }
    world.done(key, None);
    assert_eq!(world.log.len(), n_effects, "{:#?}", &world.log[n_effects..]);
}

// REQ: SES-4, SES-3
#[test]
fn session_whose_writer_is_lost_while_its_conversation_is_read_refuses_prompts_and_can_be_closed() {
    let (mut first, key) = turning();
    first.done(key, Some(RunEnd::NoPendingTools));
    write_all(&mut first);
    let n_written = first.own_batches().len() as u64;
    let mut world = first.reopened(n_written);
    world.owed.clear();
    world.input(SessionInput::Opened(OpenedTranscript::Existing));
    let Some(Owed::Earlier(earlier)) = world.owed.pop() else { panic!("nothing is read") };
    world.input(SessionInput::Opened(OpenedTranscript::Failed("the disk is gone".into())));
    world.input(SessionInput::Loaded(Box::new(Ok(*earlier))));
    world.prompt(10);
    assert_eq!((world.turn, last_of(&world, "Reply")), (None, 1), "it cannot be recorded");
    world.input(SessionInput::Close);
    assert_eq!(last_of(&world, "CloseTranscript"), 1);
}

// REQ: TRN-7
#[test]
fn notice_about_a_server_that_answers_after_the_last_record_of_a_run_waits_for_the_next_one() {
    let (mut world, key) = turning();
    world.done(key, Some(RunEnd::NoPendingTools));
    let notes = vec!["the server s has answered".into()];
    world.input(SessionInput::ServerAnswered { tools: Vec::new(), notes });
    let n_records = |world: &SessionWorld| {
        let is_notice = |it: &&Line| format!("{it:?}").contains("the server s has answered");
        world.written().into_iter().filter(is_notice).count()
    };
    assert_eq!(n_records(&world), 0, "the run is over");
    world.prompt(10);
    write_all(&mut world);
    assert_eq!((n_records(&world), world.turn.is_some()), (0, true), "it is held with the prompt");
    world.finish();
    assert_eq!(n_records(&world), 1);
    world.check();
}

#[test]
fn long_prompt_waits_until_the_settings_are_read() {
    let mut world = SessionWorld::new();
    world.owed.clear();
    world.input(SessionInput::Opened(OpenedTranscript::New));
    world.prompt(20_000);
    world.prompt(10);
    assert_eq!((world.turn, last_of(&world, "ReadSettings")), (None, 1));
    let merged = world.machine.merge_order().merge();
    world.input(SessionInput::SettingsRead(Some(std::sync::Arc::new(merged))));
    assert!(world.turn.is_some());
    world.finish();
    world.check();
}

/// Starts an agent in the background, and returns its name.
pub(super) fn in_background(world: &mut SessionWorld, key: TurnKey) -> AgentId {
    world.spawn_in(key, AgentPlacement::Background);
    let of_agent = |it: &Owed| matches!(it, Owed::Agent(_));
    let Some(at) = world.owed.iter().position(of_agent) else { panic!("none was started") };
    let Owed::Agent(agent) = world.owed.remove(at) else { unreachable!() };
    agent
}

pub(super) fn ended(agent: &AgentId) -> SessionInput {
    SessionInput::AgentEnded { agent: agent.clone(), result: Box::new(Err(RunError::Ended)) }
}

/// The texts of the messages that were written.
pub(super) fn messages(world: &SessionWorld) -> Vec<String> {
    let of = |line: &&Line| match line {
        Line::Conversation(line) => Some(line.message.text()),
        Line::Harness(_) => None,
    };
    world.written().iter().filter_map(of).collect()
}

// REQ: AGT-6, AGT-8
#[test]
fn agent_in_the_background_is_reported_with_the_next_turn_of_a_run() {
    let (mut world, key) = turning();
    let agent = in_background(&mut world, key);
    world.input(ended(&agent));
    assert_eq!((last_of(&world, "StartTurn"), messages(&world).len()), (1, 1));
    world.done(key, None);
    let next = world.turn.unwrap();
    world.done(next, Some(RunEnd::NoPendingTools));
    write_all(&mut world);
    let texts = messages(&world);
    assert_eq!((texts.len(), last_of(&world, "StartTurn")), (2, 2), "{texts:?}");
    assert!(texts[1].starts_with("<system-reminder>\nThe background agent "), "{texts:?}");
    world.finish();
    world.check();
}

// REQ: AGT-6, AGT-8
#[test]
fn end_that_a_result_has_shown_is_not_reported_again() {
    for end in [None, Some(RunEnd::NoPendingTools)] {
        let (mut world, key) = turning();
        let agent = in_background(&mut world, key);
        world.input(ended(&agent));
        world.show_end(key);
        world.done(key, end);
        write_all(&mut world);
        // Neither the next turn of the run reports it, nor a run that the session begins by itself.
        assert_eq!(world.turn.is_some(), end.is_none());
        let is_told = |it: &&String| it.contains("The background agent ");
        assert_eq!(messages(&world).iter().filter(is_told).count(), 1);
        world.finish();
        world.check();
    }
}

// REQ: AGT-6
#[test]
fn agent_in_the_background_survives_its_run_and_has_a_session_at_rest_go_on() {
    let (mut world, key) = turning();
    let agent = in_background(&mut world, key);
    world.done(key, Some(RunEnd::NoPendingTools));
    write_all(&mut world);
    assert_eq!((world.turn, last_of(&world, "Reply")), (None, 1));
    world.input(ended(&agent));
    let woken = world.turn.unwrap();
    world.done(woken, Some(RunEnd::NoPendingTools));
    write_all(&mut world);
    let texts = messages(&world);
    assert!(texts[1].starts_with("<task-notification>\nThe background agent "), "{texts:?}");
    assert_eq!((world.turn, texts.len()), (None, 2), "and it is told once");
    world.finish();
    world.check();
}

// REQ: AGT-6
#[test]
fn interrupt_spares_agents_in_the_background_and_a_close_waits_for_them() {
    let (mut world, key) = turning();
    let agent = in_background(&mut world, key);
    world.input(SessionInput::Interrupt);
    world.input(SessionInput::TurnQuiet { key, late: false });
    write_all(&mut world);
    assert_eq!((last_of(&world, "CloseAgent"), last_of(&world, "Reply")), (0, 1));
    world.input(SessionInput::Close);
    assert_eq!((last_of(&world, "CloseAgent"), last_of(&world, "CloseTranscript")), (1, 0));
    world.input(ended(&agent));
    assert_eq!(last_of(&world, "CloseTranscript"), 1);
    let is_told = |it: &String| it.contains("The background agent ");
    assert!(!messages(&world).iter().any(is_told), "the next process tells it");
    world.finish();
    world.check();
}
