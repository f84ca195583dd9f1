//! Models of an embedder in real sessions.
//!
//! Built under `#[cfg(test)]` only.

use std::{sync::Mutex, time::Duration};

use ennead_runtime::run::{RunEnd, outcome::RunOutcome};
use serde_json::json;
use tempfile::TempDir;

use ennead_runtime::message::MessageKind;

use super::*;
use crate::{Endpoint, Ennead, Options, Placement, SessionOptions};

type Script = Vec<Result<ModelEvent, ModelError>>;

type RequestsMade = Arc<Mutex<Vec<ModelRequest>>>;

/// Gives these answers in turn, and keeps what it was asked.
fn scripted(answers: Vec<Script>) -> (RequestsMade, impl InProcessModel) {
    let asked = RequestsMade::default();
    let (log, answers) = (Arc::clone(&asked), Mutex::new(answers.into_iter()));
    let model = move |request: ModelRequest| {
        log.lock().unwrap().push(request);
        stream::iter(answers.lock().unwrap().next().expect("it is asked no more"))
    };
    (asked, model)
}

/// One run on this model. Its transcript is in order.
async fn run(model: impl InProcessModel + 'static, streams: bool) -> RunOutcome {
    let place = TempDir::new().unwrap();
    std::fs::write(place.path().join("a.txt"), "").unwrap();
    let ennead = Ennead::start(Options::default().placement(Placement::Ambient)).await.unwrap();
    let options = SessionOptions::new(place.path(), Endpoint::in_process("mine", Arc::new(model)))
        .isolated()
        .home(place.path())
        .streams(streams)
        .system_prompt("Be brief.");
    let session = ennead.open(options).await.unwrap();
    let outcome = session.prompt("which files?").await.unwrap();
    let verified = crate::transcript::verify(session.transcript());
    assert!(verified.is_ok(), "{verified:?}");
    ennead.shutdown().await;
    outcome
}

// REQ: MDL-1
#[tokio::test]
async fn model_of_the_process_calls_tools_reads_results_and_is_billed_like_a_server() {
    for streams in [true, false] {
        let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
        let call = ModelEvent::ToolCall { tool: "Glob".into(), input: json!({"pattern": "*"}) };
        let (asked, model) = scripted(vec![
            vec![
                Ok(ModelEvent::Reasoning("I ".into())),
                Ok(ModelEvent::Reasoning("look.".into())),
                Ok(ModelEvent::Text("Loo".into())),
                Ok(ModelEvent::Text("king.".into())),
                Ok(call),
                Ok(ModelEvent::Usage(usage)),
            ],
            vec![Ok(ModelEvent::Text("One.".into())), Ok(ModelEvent::Usage(usage))],
        ]);
        let outcome = run(model, streams).await;
        assert_eq!((outcome.end, &*outcome.text), (RunEnd::NoPendingTools, "One."));
        assert_eq!((outcome.usage.input_tokens, outcome.usage.output_tokens), (20, 10));
        let asked = asked.lock().unwrap();
        assert!(asked[0].system.contains("Be brief."), "{}", asked[0].system);
        assert!(asked[0].tools.iter().any(|it| it.name == "Glob" && it.input_schema.is_object()));
        let [.., answer, results] = &asked[1].messages[..] else { panic!("{asked:?}") };
        assert_eq!(answer.text(), "Looking.");
        assert_eq!(answer.tool_uses().count(), 1);
        assert_eq!(results.kind, MessageKind::ToolResults);
        let result = results.blocks.iter().find_map(|it| it.as_tool_result()).unwrap();
        assert!(result.1.contains("a.txt") && !result.2, "{result:?}");
    }
}

// REQ: MDL-1
#[tokio::test]
async fn refusal_of_a_model_of_the_process_ends_the_run_with_its_words() {
    for streams in [true, false] {
        let (asked, model) = scripted(vec![vec![Err(ModelError::refused("no such thing"))]]);
        let outcome = run(model, streams).await;
        assert_eq!(outcome.end, RunEnd::Error);
        assert!(outcome.error.unwrap().contains("no such thing"));
        assert_eq!(asked.lock().unwrap().len(), 1, "it is not asked again");
    }
}

// REQ: MDL-6, MDL-10
#[tokio::test(start_paused = true)]
async fn rate_limit_without_end_ends_the_run_with_its_words() {
    let limited = || vec![Err(ModelError::rate_limited("never again", Some(Duration::MAX)))];
    let (_, model) = scripted((0..20).map(|_| limited()).collect());
    let outcome = run(model, true).await;
    assert_eq!(outcome.end, RunEnd::Error);
    assert!(outcome.error.unwrap().contains("never again"));
}

// REQ: MDL-1
#[tokio::test]
async fn answer_that_breaks_off_or_is_cut_is_asked_for_again() {
    let (asked, model) = scripted(vec![
        vec![Ok(ModelEvent::Text("half".into())), Err(ModelError::failed("lost"))],
        vec![Ok(ModelEvent::Text("whole".into()))],
    ]);
    let outcome = run(model, true).await;
    assert_eq!((outcome.end, &*outcome.text), (RunEnd::NoPendingTools, "whole"));
    assert_eq!(asked.lock().unwrap().len(), 2);
}
