//! Events of a run, and what a person sees of them.

use ennead_runtime::tokens::Usage;

use super::*;

/// What is seen, with marks for what is not a text.
fn seen(events: &[Event]) -> (Vec<String>, PrintView) {
    let (mut view, mut out) = (PrintView::new(), Vec::new());
    let output = Arc::default();
    events.iter().for_each(|it| view.observe(1_000, it, &output, &mut out));
    let words = out.into_iter().map(|it| match it {
        PrintPiece::Answer(text) => text,
        PrintPiece::MessageEnd => "END".into(),
        PrintPiece::Withdrawn => "WITHDRAWN".into(),
        PrintPiece::Note(text) | PrintPiece::Denied(text) => format!("> {text}"),
    });
    (words.collect(), view)
}

fn says(attempt: u32, text: &str) -> Event {
    Event::TextDelta { attempt, text: text.into() }
}

fn completed(attempt: u32, text: &str) -> Event {
    Event::MessageCompleted { attempt, text: text.into(), usage: Usage::default() }
}

fn retry(status: Option<u16>, cause: &str) -> Event {
    let (attempt, max_retries, delay_ms, error) = (2, 10, 1_530, "overloaded");
    Event::ModelRetry { attempt, max_retries, delay_ms, status, error, cause: cause.into() }
}

fn recovery(remedy: &'static str) -> Event {
    Event::RecoveryTaken { cause: "overloaded", remedy, model: None }
}

// REQ: OUT-5
#[test]
fn answer_comes_piece_by_piece_and_without_control_sequences_that_are_cut() {
    let (seen, view) = seen(&[
        Event::TurnStarted { turn: 1 },
        says(1, "a \x1b[3"),
        says(1, "1mred\x1b]0;ti"),
        says(1, "tle\x07 word"),
        completed(1, "a \x1b[31mred\x1b]0;title\x07 word"),
        Event::TurnStarted { turn: 2 },
        says(1, "next"),
        completed(1, "next"),
    ]);
    assert_eq!(seen, ["a ", "red", " word", "END", "next", "END"]);
    assert_eq!(view.last_message(), "next");
}

// REQ: MDL-7
#[test]
fn withdrawn_answer_is_marked_and_what_still_counts_of_it_is_shown_again() {
    let (whole, view) = seen(&[
        says(1, "half an ans"),
        Event::Withdrawn { attempt: 1 },
        recovery("retry_without_streaming"),
        retry(None, "the stream broke"),
        completed(2, "half an answer"),
    ]);
    let note = "> the model call failed (overloaded: the stream broke); retry 2 of 10 in 1.5 s, \
                without streaming";
    assert_eq!(whole, ["half an ans", "WITHDRAWN", note, "half an answer", "END"]);
    assert_eq!(view.last_message(), "half an answer");

    // The first attempt was paused, and counts.
    let (part, view) =
        seen(&[says(1, "one"), says(2, "two"), Event::Withdrawn { attempt: 2 }, says(3, "three")]);
    assert_eq!(part, ["one", "\ntwo", "WITHDRAWN", "one", "\nthree"]);
    assert_eq!(view.last_message(), "one\nthree");

    let nothing = seen(&[Event::Withdrawn { attempt: 1 }]);
    assert_eq!(nothing.0, Vec::<String>::new());
}

// REQ: MDL-6
#[test]
fn retry_is_told_once_with_attempt_cause_and_wait() {
    let printed = |status, cause: &str| seen(&[recovery("retry"), retry(status, cause)]).0;
    assert_eq!(
        printed(Some(529), "busy"),
        ["> the model call failed (overloaded, status 529: busy); retry 2 of 10 in 1.5 s"]
    );
    assert_eq!(
        printed(Some(529), "http://m answered 529"),
        ["> the model call failed (overloaded: http://m answered 529); retry 2 of 10 in 1.5 s"]
    );
    let hostile = printed(None, &format!("\x1b[2J\n{}", "x".repeat(1_000)));
    assert_eq!(hostile.len(), 1);
    assert!(hostile[0].chars().count() < 400 && !hostile[0].contains(['\n', '\x1b']));
    assert_eq!(seen(&[recovery("surface")]).0, Vec::<String>::new());
    assert_eq!(seen(&[recovery("ask_again")]).0.len(), 1);
}

// REQ: PRM-5
#[test]
fn denied_call_names_the_flag_that_would_allow_it() {
    let decided = |allowed, rules: &[&str]| Event::PermissionDecided {
        call: "c".into(),
        tool: "Bash".into(),
        allowed,
        reason: "no rule allows it".into(),
        allow_rules: rules.iter().map(|it| (*it).to_owned()).collect(),
    };
    let own = decided(false, &["Bash(echo 'x')", "Bash(echo *)"]);
    let agent = Event::Agent { agent: "a".into(), event: Arc::new(decided(false, &[])) };
    let (seen, _) = seen(&[decided(true, &[]), own, agent]);
    assert_eq!(
        seen,
        [
            r"> a call of Bash was denied: no rule allows it; --allowed-tools 'Bash(echo '\''x'\'')' would allow it",
            "> a call of a sub-agent of Bash was denied: no rule allows it",
        ]
    );
}

// REQ: SUR-2
#[test]
fn line_of_progress_says_step_tools_and_sub_agents_in_ascii() {
    let started =
        |call: &str, tool: &str| Event::ToolStarted { call: call.into(), tool: tool.into() };
    let mut view = PrintView::new();
    let mut observe = |event: &Event| {
        view.observe(0, event, &Arc::default(), &mut Vec::new());
        view.status()
    };
    assert_eq!(observe(&Event::TurnStarted { turn: 2 }), "begins");
    let step = Event::StepStarted { turn: 2, step: Step::ModelCall };
    assert_eq!(observe(&step), "turn 2, step 5 model_call");
    observe(&started("a", "Grep"));
    observe(&started("b", "Grep"));
    assert_eq!(observe(&started("c", "é\x1b[1m漢")), "turn 2, step 8 tool_execution: Grep x2, ??");
    let (tool, text) = ("Grep".into(), "".into());
    let done = Event::ToolFinished { call: "a".into(), tool, is_error: false, text };
    assert_eq!(observe(&done), "turn 2, step 8 tool_execution: Grep, ??");
    let agent = Event::AgentStarted {
        agent: "x".into(),
        call: "c".into(),
        description: "".into(),
        in_background: false,
    };
    assert!(observe(&agent).ends_with("; 1 sub-agent"));
    let usage = Usage { input_tokens: 2, output_tokens: 1, ..Usage::default() };
    let used = Event::Agent { agent: "x".into(), event: Arc::new(Event::TokensUsed { usage }) };
    assert!(observe(&used).ends_with("; 1 sub-agent; 3 tokens"));
    let end = Event::RunFinished { run: "r".into(), reason: "done" };
    let end = Event::Agent { agent: "x".into(), event: Arc::new(end) };
    assert!(!observe(&end).contains("sub-agent"));
}

// REQ: OUT-5
#[test]
fn message_of_which_deltas_were_missed_is_shown_whole() {
    let missed = Event::Lagged { missed: 7, run: None };
    let (seen, view) = seen(&[says(1, "be"), missed, says(1, "xx"), completed(1, "beginning")]);
    let note = "> 7 events came too fast to be shown; the transcript has them";
    assert_eq!(seen, ["be", "WITHDRAWN", note, "beginning", "END"]);
    assert_eq!(view.last_message(), "beginning");
}
