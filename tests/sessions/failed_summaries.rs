//! Summaries that come to nothing: each is a call with the whole conversation, and is not paid for with every prompt.

use ennead::{RunEnd, transcript::verify};
use serde_json::json;

use crate::support::{
    scripted::{Asked, TestDirs, call, finish, model, text},
    settings::SettingsJson as _,
};

fn wants_summary(asked: &Asked) -> bool {
    asked.user().contains("is about to be replaced by a summary")
}

// REQ: SHP-13, SHP-7
#[tokio::test]
async fn summary_that_comes_to_nothing_is_asked_for_again_when_there_is_half_as_much_more() {
    let place = TestDirs::new();
    let model = model(|asked| match wants_summary(asked) {
        true => call("no", "Glob", json!({"pattern": "*"})),
        false => text(&"so be it ".repeat(50)),
    });
    let options = || place.session().own_setting("shapers", json!({"maxMessages": 50}));
    let n_summaries = || model.asked().iter().filter(|it| wants_summary(it)).count();

    let ennead = place.start(&model).await;
    let session = ennead.open(options()).await.unwrap();
    let mut asked_at = Vec::new();
    for n_runs in 1..=60 {
        let outcome = session.prompt("go on").await.unwrap();
        assert_eq!(outcome.end, RunEnd::NoPendingTools);
        if asked_at.len() < n_summaries() {
            asked_at.push(n_runs);
        }
    }
    finish(ennead, session).await;
    // A run is two messages: at 50 of them, at 75 and at 113.
    assert_eq!((asked_at.len(), n_summaries()), (3, 3), "{asked_at:?}");
    assert!(asked_at[0] < 30 && asked_at[2] < 60, "{asked_at:?}");

    // What goes on in another process knows from the transcript.
    let ennead = place.start(&model).await;
    let session = ennead.open(options()).await.unwrap();
    for _ in 0..5 {
        session.prompt("go on").await.unwrap();
    }
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    assert_eq!(n_summaries(), 3);
    assert_eq!(verify(&transcript).unwrap().len(), 1);
}
