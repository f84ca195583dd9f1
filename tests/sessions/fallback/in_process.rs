//! A model of the process, and a server over a socket to turn to.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ennead::{
    Endpoint, RunEnd,
    model::{ModelError, ModelEvent, ModelRequest},
};
use futures::stream;
use serde_json::json;

use super::{Model, used};
use crate::support::clocked::ClockedSessions;
use crate::support::{model_server::Reply, settings::SettingsJson as _};

// REQ: MDL-1, MDL-10
#[tokio::test]
async fn model_of_the_process_that_is_overloaded_gives_way_to_a_server_over_a_socket() {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_asked);
    let mine = move |_: ModelRequest| {
        let call = ModelEvent::ToolCall { tool: "Touch".into(), input: json!({}) };
        stream::iter(match count.fetch_add(1, Ordering::SeqCst) {
            0 => vec![Ok(ModelEvent::Text("I touch it.".into())), Ok(call)],
            _ => vec![Err(ModelError::overloaded("not now"))],
        })
    };
    let other = Model::says(vec![Reply::text("hello from afar")]).await;
    let world = ClockedSessions::start().await;
    let options = world.session(&[&other, &other]);
    let options = options
        .endpoint(Endpoint::in_process("mine", Arc::new(mine)))
        .own_setting("maxRetries", 1.into());
    let (outcome, _, _) = world.run(options).await;
    assert_eq!((outcome.end, &*outcome.text), (RunEnd::NoPendingTools, "hello from afar"));
    assert_eq!(outcome.fallback, used("there", "first"));
    assert_eq!(*world.touched.lock().unwrap(), 1);
    assert_eq!(n_asked.load(Ordering::SeqCst), 3, "an answer, and an attempt with one retry");
    // The server reads what the other one did.
    let asked = other.asked();
    assert!(asked[0].text.contains("I touch it.") && asked[0].text.contains("touched"));
}
