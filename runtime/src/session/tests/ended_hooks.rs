//! Hooks that were not waited for, and have ended.

use serde_json::json;

use super::{
    orders::{messages, turning, write_all},
    world::SessionWorld,
};
use crate::{
    hook::{EndedHook, HandlerEnd, HandlerOutput, HookEvent, WatchReach},
    run::RunEnd,
    session::{KeptHook, SessionInput},
    transcript::{
        entry::{RecordKind, Stored},
        load::BackgroundTasks,
    },
};

fn ended(world: &mut SessionWorld, stdout: &str) {
    let output = HandlerOutput::new(HandlerEnd::Exited(0), stdout.into(), String::new(), 1);
    let (event, handler) = (HookEvent::PostToolUse, "h".into());
    let (file, reach) = (None, WatchReach::Nothing);
    let ended = EndedHook { event, handler, output, file, reach, rewakes: false, shows: None };
    world.input(SessionInput::HookEnded(Box::new(ended)));
}

fn n_dropped(world: &SessionWorld) -> usize {
    world.log.iter().filter(|it| it.contains("what a hook adds is dropped")).count()
}

// REQ: HKS-4
#[test]
fn words_for_the_user_are_not_dropped_without_an_alert() {
    let (mut world, _) = turning();
    let says = json!({ "systemMessage": "for you" }).to_string();
    (0..64).for_each(|_| ended(&mut world, &says));
    assert_eq!(n_dropped(&world), 0);
    ended(&mut world, "{}");
    assert_eq!(n_dropped(&world), 0, "it adds nothing");
    ended(&mut world, &says);
    assert_eq!(n_dropped(&world), 1);
    world.finish();
}

// REQ: HKS-1, SES-4
#[test]
fn session_that_goes_on_takes_over_texts_that_were_read_and_cut_before() {
    let long = "word ".repeat(40_000);
    let output = json!({
        "systemMessage": long,
        "hookSpecificOutput": { "hookEventName": "PostToolUse", "additionalContext": long },
    });
    let hook = RecordKind::Hook {
        matcher: None,
        event: HookEvent::PostToolUse,
        call: None,
        index: 0,
        handler: "h".into(),
        file: None,
        exit: Some(0),
        ended: "exited".into(),
        duration_ms: 1,
        effect: "context".into(),
        message: None,
        stdout: Stored::Text(output.to_string().into()),
        stderr: Stored::Text("".into()),
        shows: Some("m1".into()),
        sidechain: None,
    };
    let tasks = BackgroundTasks { hooks: vec![hook], ..BackgroundTasks::default() };
    let text = |stored: &Stored| match stored {
        Stored::Text(text) => Some(text.to_string()),
        _ => None,
    };
    let kept = KeptHook::read_all(&tasks, "/sessions/s", text);
    let [KeptHook { shows, texts, .. }] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!((shows.as_ref().map(|it| it.as_str()), texts.len()), (Some("m1"), 1));
    assert!(texts[0].len() < 10_000, "{} bytes", texts[0].len());
    assert!(texts[0].contains("(all of it: /sessions/s/tool-results/"), "{}", texts[0]);
    assert!(KeptHook::read_all(&tasks, "/sessions/s", |_| None).is_empty());

    let (mut world, key) = turning();
    world.input(SessionInput::HooksKept(kept));
    world.done(key, None);
    let next = world.turn.expect("the run goes on");
    world.done(next, Some(RunEnd::NoPendingTools));
    write_all(&mut world);
    let shown = messages(&world);
    assert_eq!(shown.iter().filter(|it| it.contains("(all of it: ")).count(), 1, "{shown:?}");
    world.finish();
}
