//! Texts, images and documents: as asked, so sent, recorded and sent again.

use ennead::{RunEnd, RunError, RunRequest, transcript::verify};
use ennead_runtime::run::{InvalidRequest, PromptBlock};
use serde_json::{Value, json};

use crate::support::scripted::{TestDirs, finish, says, text};

/// A prompt of each kind of block.
fn request() -> RunRequest {
    RunRequest::new("look")
        .block(PromptBlock::image("image/png", "QUJD").unwrap())
        .block(PromptBlock::image_at("https://a.test/x.webp").unwrap())
        .block(PromptBlock::pdf("QUJD", Some("x.pdf")).unwrap())
        .block(PromptBlock::pdf_at("https://a.test/x.pdf", None).unwrap())
        .block(PromptBlock::document("plain", Some("notes")).unwrap())
}

/// The blocks of the first message, as they are to be.
fn content() -> Vec<Value> {
    let data = |media: &str| json!({"type": "base64", "media_type": media, "data": "QUJD"});
    let at = |url: &str| json!({"type": "url", "url": url});
    let plain = json!({"type": "text", "media_type": "text/plain", "data": "plain"});
    vec![
        json!({"type": "text", "text": "look"}),
        json!({"type": "image", "source": data("image/png")}),
        json!({"type": "image", "source": at("https://a.test/x.webp")}),
        json!({"type": "document", "source": data("application/pdf"), "title": "x.pdf"}),
        json!({"type": "document", "source": at("https://a.test/x.pdf")}),
        json!({"type": "document", "source": plain, "title": "notes"}),
    ]
}

/// The blocks of the messages that hold an image, without cache marks.
fn sent(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|it| it["content"].as_array().unwrap());
    let mut blocks: Vec<Value> = blocks.cloned().collect();
    for block in &mut blocks {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    let first = blocks.iter().position(|it| *it == content()[0]).unwrap();
    blocks.drain(first..).take(content().len()).collect()
}

// REQ: TRN-14, SES-4
#[tokio::test]
async fn blocks_are_sent_recorded_and_sent_again_after_resume() {
    let place = TestDirs::new();
    let model = says(vec![text("seen"), text("still seen")]);
    for request in [request(), RunRequest::new("on")] {
        let ennead = place.start(&model).await;
        let session = ennead.open(place.session()).await.unwrap();
        let outcome = session.run(request).await.unwrap();
        assert_eq!(outcome.end, RunEnd::NoPendingTools);
        let file = session.transcript().to_owned();
        finish(ennead, session).await;
        assert_eq!(sent(&model.last().body), content());
        verify(&file).unwrap();
    }
    let lines = place.lines();
    let prompt = lines.iter().find(|it| it["type"] == "user").unwrap();
    assert_eq!(prompt["message"]["content"], Value::from(content()));
}

// REQ: TRN-14
#[tokio::test]
async fn empty_request_is_refused() {
    let place = TestDirs::new();
    let ennead = place.start(&says(vec![])).await;
    let session = ennead.open(place.session()).await.unwrap();
    for request in [RunRequest::of([]), RunRequest::new("  ")] {
        let refused = session.run(request).await.unwrap_err();
        assert_eq!(refused, RunError::Invalid(InvalidRequest::Empty));
        assert_eq!(refused.to_string(), "the run cannot begin: the prompt is empty");
    }
    finish(ennead, session).await;
}
