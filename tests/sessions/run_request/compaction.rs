//! A run that sums up the conversation: what it is to keep in mind, in the record and in the request.

use ennead::{RunEnd, RunRequest, transcript::verify};

use crate::support::scripted::{TestDirs, finish, model, text};

// REQ: TRN-14, SHP-7, SES-4
#[tokio::test]
async fn focus_of_a_summary_is_short_and_without_secrets_wherever_it_goes() {
    let place = TestDirs::new();
    let model = model(|_| text("said"));
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    session.run(RunRequest::new("go")).await.unwrap();
    let secret = format!("sk-ant-api03-{}", "aB3dE6fG9hJ2kL5m".repeat(6));
    let focus = format!("the names, {secret} {}", "\u{1} and on ".repeat(20_000));
    let outcome = session.run(RunRequest::new("/compact").compacts(focus)).await.unwrap();
    assert_eq!((outcome.end, outcome.error), (RunEnd::Compacted, None));
    let file = session.transcript().to_owned();
    finish(ennead, session).await;
    verify(&file).unwrap();
    let asked = model.asked()[1].body.to_string();
    assert!(asked.contains("the names, [secret:"), "{asked}");
    assert!(!asked.contains(&secret));
    let lines = place.lines();
    let start = lines.iter().rfind(|it| it["kind"] == "run_start").unwrap();
    let kept = start["compacts"].as_str().unwrap();
    assert!(kept.starts_with("the names, [secret:") && kept.len() <= 1_000, "{kept}");
    assert!(start.to_string().len() <= 4_096, "{start}");
    assert!(lines.iter().all(|it| !it.to_string().contains(&secret)));
}
