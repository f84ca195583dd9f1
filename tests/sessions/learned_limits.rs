//! Limits of models that nobody knows: read once from what the server says, and kept.

use std::sync::{Arc, Mutex};

use ennead::{Endpoint, Ennead, Options, Placement, RunEnd, SessionHandle, SessionOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    model_server::{ModelServer, Reply, letting_through},
    record,
    scripted::Asked,
};

/// Output ceilings that were asked for, and whether they were granted.
type Ceilings = Arc<Mutex<Vec<(u64, bool)>>>;

/// A server of Chat Completions with a window and a highest ceiling; a token has four bytes here.
async fn server(window: u64, most: u64) -> (ModelServer, Ceilings) {
    let asked = Ceilings::default();
    let log = Arc::clone(&asked);
    let server = ModelServer::start(move |ask: &Asked| {
        let body = &ask.body;
        let ceiling = ["max_completion_tokens", "max_tokens"].iter().find_map(|it| body[it].as_u64());
        let (ceiling, prompt) = (ceiling.unwrap(), body["messages"].to_string().len() as u64 / 4);
        let refusal = match (most < ceiling, window < prompt + ceiling) {
            (true, _) => Some(format!(
                "max_tokens is too large: {ceiling}. This model supports at most {most} completion \
                 tokens, whereas you provided {ceiling}."
            )),
            (false, true) => Some(format!(
                "litellm.ContextWindowExceededError: OpenAIException - This model's maximum context \
                 length is {window} tokens. However, you requested {} tokens ({prompt} in the messages, \
                 {ceiling} in the completion). Please reduce the length of the messages or completion.",
                prompt + ceiling
            )),
            (false, false) => None,
        };
        log.lock().unwrap().push((ceiling, refusal.is_none()));
        match refusal {
            Some(message) => {
                let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
                Reply::body(400, &error.to_string())
            }
            None => {
                let answer = json!({"id": "c", "object": "chat.completion", "model": ask.model(),
                    "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"},
                        "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": prompt, "completion_tokens": 1}});
                Reply::body(200, &answer.to_string())
            }
        }
    })
    .await;
    (server, asked)
}

async fn open(ennead: &Ennead, place: &TempDir, server: &ModelServer) -> SessionHandle {
    let endpoint = Endpoint::openai_chat(server.address(), None);
    let options = SessionOptions::new(place.path(), endpoint)
        .isolated()
        .home(place.path().to_owned())
        .tools(Vec::new())
        .streams(false);
    ennead.open(options.model("nobody-knows-it")).await.unwrap()
}

async fn start() -> Ennead {
    let options = Options::default().placement(Placement::Ambient).governor(letting_through());
    Ennead::start(options).await.unwrap()
}

async fn prompt(session: &SessionHandle, text: &str) {
    let outcome = session.prompt(text).await.unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "done"));
}

// REQ: MDL-9, CTX-4
#[tokio::test]
async fn ceiling_that_a_server_names_is_asked_for_at_once_and_by_all_later_calls() {
    let (server, asked) = server(1_000_000, 8_000).await;
    let (ennead, place) = (start().await, TempDir::new().unwrap());
    let first = open(&ennead, &place, &server).await;
    prompt(&first, "one").await;
    prompt(&first, "two").await;
    first.close().await;
    record::verified(first.transcript());
    // Another session of the same process asks for no more from the beginning.
    let second = open(&ennead, &place, &server).await;
    prompt(&second, "three").await;
    second.close().await;
    record::verified(second.transcript());
    let asked = asked.lock().unwrap().clone();
    // In one piece there are 21,333 at most.
    assert_eq!(asked, [(21_333, false), (8_000, true), (8_000, true), (8_000, true)]);
    ennead.shutdown().await;
}

// REQ: MDL-9, CTX-4
#[tokio::test]
async fn a_window_of_4096_tokens_works_however_long_the_conversation_gets() {
    let (server, asked) = server(4_096, 4_096).await;
    let (ennead, place) = (start().await, TempDir::new().unwrap());
    let session = open(&ennead, &place, &server).await;
    for n in 0..12 {
        prompt(&session, &format!("{n}: {}", "word ".repeat(300))).await;
    }
    session.close().await;
    record::verified(session.transcript());
    let asked = asked.lock().unwrap().clone();
    let refused = asked.iter().filter(|it| !it.1).count();
    assert!(refused <= 4, "{asked:?}");
    ennead.shutdown().await;
}
