//! Who asks for a run.

use ennead::{
    RunError, RunRequest,
    transcript::{trace, verify},
};
use ennead_runtime::run::InvalidRequest;
use serde_json::json;

use crate::support::scripted::{TestDirs, finish, says, text};

// REQ: TRN-14
#[tokio::test]
async fn sender_stands_in_the_outcome_and_in_the_transcript() {
    let place = TestDirs::new();
    let ennead = place.start(&says(vec![text("one"), text("two"), text("three")])).await;
    let session = ennead.open(place.session()).await.unwrap();
    let requests = [
        RunRequest::new("go").sender("anna", true),
        RunRequest::new("go").sender("ben", false),
        RunRequest::new("go"),
    ];
    for request in requests {
        let sender = request.sender.clone();
        assert_eq!(session.run(request).await.unwrap().sender, sender);
    }
    let file = session.transcript().to_owned();
    finish(ennead, session).await;
    let lines = place.lines();
    let starts: Vec<_> = lines.iter().filter(|it| it["kind"] == "run_start").collect();
    assert_eq!(starts[0]["sender"], json!({"id": "anna", "is_owner": true}));
    assert_eq!(starts[1]["sender"], json!({"id": "ben", "is_owner": false}));
    assert!(starts[2].get("sender").is_none());
    assert_eq!(verify(&file).unwrap()[0].verified.runs, 3);
    let traced = trace(&file).unwrap();
    assert!(traced.contains("from api, asked for by the guest ben"), "{traced}");
}

// REQ: TRN-14
#[tokio::test]
async fn request_that_is_wrong_is_refused_and_leaves_nothing() {
    let place = TestDirs::new();
    let ennead = place.start(&says(vec![text("one")])).await;
    let session = ennead.open(place.session()).await.unwrap();
    let refused = session.run(RunRequest::new("go").sender("x".repeat(129), true)).await;
    let wrong = InvalidRequest::Name { of: "sender", bytes: 129 };
    assert_eq!(refused.unwrap_err(), RunError::Invalid(wrong));
    assert_eq!(session.prompt("go").await.unwrap().text, "one");
    finish(ennead, session).await;
    assert_eq!(place.lines().iter().filter(|it| it["kind"] == "run_start").count(), 1);
}
