//! What is too much is refused, visibly, and nothing is lost by it.

use ennead::{Placement, RunEnd, RunError, RunRequest};

use crate::support::{
    host::{Host, check_answers, check_record},
    until::until,
};

// REQ: RUN-8, RUN-1
#[tokio::test]
async fn full_queue_gives_the_prompt_back() {
    let host = Host::start(Placement::Ambient).await;
    let options = host.options().max_queued_prompts(2);
    let session = host.ennead.open(options).await.unwrap();
    host.workshop.wait.close();
    let run = |text: &'static str| {
        let session = session.clone();
        tokio::spawn(async move { session.prompt(text).await })
    };
    let first = run("use wait");
    host.workshop.wait.arrived().await;
    let waiting = [run("again"), run("again")];
    until("both wait", async || session.status().await.unwrap().queued == 2).await;
    for n in 0..100 {
        let request = RunRequest::new(format!("prompt {n}"));
        let refused = session.run(request.clone()).await.unwrap_err();
        assert_eq!(refused, RunError::Busy(Box::new(request)));
    }
    host.workshop.wait.open();
    assert_eq!(first.await.unwrap().unwrap().end, RunEnd::NoPendingTools);
    for run in waiting {
        assert_eq!(run.await.unwrap().unwrap().text, "still here");
    }
    check_answers(&session).await;
    check_record(session.transcript());
}

// REQ: TOL-3
#[tokio::test]
async fn call_above_the_bound_is_refused_and_the_turn_goes_on() {
    for n in [25, 26, 60] {
        let (host, session) = Host::open_one(Placement::Ambient).await;
        let outcome = session.prompt(format!("use{}", " echo".repeat(n))).await.unwrap();
        assert_eq!(outcome.end, RunEnd::NoPendingTools);
        assert_eq!(outcome.text, format!("done with {n}"), "the model sees all results");
        assert_eq!(host.workshop.n_runs("echo"), n.min(25));
        let results: Vec<_> = outcome
            .messages
            .iter()
            .flat_map(|it| &it.blocks)
            .filter_map(|it| it.as_tool_result())
            .map(|(_, text, is_error)| (is_error, text.to_owned()))
            .collect();
        let refused: Vec<_> = results.iter().enumerate().filter(|(_, it)| it.0).collect();
        assert_eq!(refused.len(), n - n.min(25), "{refused:?}");
        for (place, (_, text)) in refused {
            assert!(25 <= place && text.contains("25"), "{place}: {text}");
        }
        check_answers(&session).await;
        check_record(session.transcript());
    }
}
