//! The simulated model, held at barriers.

use std::{
    future,
    sync::{Arc, Mutex},
};

use ennead::{
    data::{ResponseBody, TransportError, WireRequest, WireResponse},
    internal::{SimulatedTransport, Simulator},
    model::Transport,
    testing::Playbook,
    tool::BoxFuture,
};
use futures::{StreamExt, TryFutureExt, TryStreamExt, stream};

use super::barrier::Barrier;

/// Plays a playbook through the real wire format. A request that holds [`HELD`] waits at the
/// barriers, others do not.
#[derive(Clone, Debug)]
pub(crate) struct HeldModel {
    pub(crate) simulator: Arc<Simulator>,
    /// Before an answer.
    pub(crate) answer: Barrier,
    /// After the first piece of an answer.
    pub(crate) stream: Barrier,
    /// The body of the last request.
    pub(crate) last: Arc<Mutex<Vec<u8>>>,
    /// Panics once instead of answering.
    pub(crate) panics: Arc<std::sync::atomic::AtomicBool>,
}

/// The word that makes a request wait.
pub(crate) const HELD: &str = "held";

impl HeldModel {
    pub(crate) fn new(playbook: &str) -> Self {
        let playbook = Playbook::parse(playbook, "test").unwrap();
        let (answer, stream) = (Barrier::default(), Barrier::default());
        let (last, panics) = (Arc::default(), Arc::default());
        Self { simulator: Simulator::new(playbook), answer, stream, last, panics }
    }
}

impl HeldModel {
    /// Whether the last request held a tool.
    pub(crate) fn had_tool(&self, name: &str) -> bool {
        let body: serde_json::Value = serde_json::from_slice(&self.last.lock().unwrap()).unwrap();
        body["tools"].as_array().unwrap().iter().any(|it| it["name"] == name)
    }
}

impl Transport for HeldModel {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let is_held = memchr_of(&request.body.to_bytes(), HELD);
        *self.last.lock().unwrap() = request.body.to_bytes().to_vec();
        let inner = SimulatedTransport::new(Arc::clone(&self.simulator)).send(request);
        let this = self.clone();
        Box::pin(async move {
            if this.panics.swap(false, std::sync::atomic::Ordering::SeqCst) {
                panic!("the transport panics");
            }
            if is_held {
                this.answer.pass().await;
            }
            let mut response = inner.await?;
            if is_held {
                response.body = held(response.body, this.stream);
            }
            Ok(response)
        })
    }
}

fn memchr_of(body: &[u8], word: &str) -> bool {
    body.windows(word.len()).any(|it| it == word.as_bytes())
}

/// The first half of the first chunk is read, the second half waits.
fn held(mut body: ResponseBody, barrier: Barrier) -> ResponseBody {
    let first = async move {
        let Some(mut first) = body.try_next().await? else { return Ok(stream::empty().boxed()) };
        let half = first.split_to(first.len() / 2);
        let rest = stream::once(future::ready(Ok(first))).chain(body).then(move |chunk| {
            let barrier = barrier.clone();
            async move {
                barrier.pass().await;
                chunk
            }
        });
        Ok(stream::once(future::ready(Ok(half))).chain(rest).boxed())
    };
    Box::pin(first.try_flatten_stream())
}
