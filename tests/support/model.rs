//! The simulated model, held at barriers.

use std::sync::Arc;

use bytes::Bytes;
use ennead::{
    runtime::{
        ports::{BoxFuture, ResponseBody, Transport, TransportError, WireRequest, WireResponse},
        step5_model_call::simulated::Playbook,
    },
    world::simulated::{SimulatedTransport, Simulator},
};

use super::barrier::Barrier;

/// Plays a playbook through the real wire format. A request that holds [`HELD`] waits at the
/// barriers, others do not.
#[derive(Clone, Debug)]
pub(crate) struct HeldModel {
    pub(crate) simulator: Arc<Simulator>,
    /// Before an answer.
    pub(crate) answer: Barrier,
    /// Behind the first piece of an answer.
    pub(crate) stream: Barrier,
    /// Panics once instead of answering.
    pub(crate) panics: Arc<std::sync::atomic::AtomicBool>,
}

/// The word that makes a request wait.
pub(crate) const HELD: &str = "held";

impl HeldModel {
    pub(crate) fn new(playbook: &str) -> Self {
        let playbook = Playbook::parse(playbook, "test").unwrap();
        let (answer, stream) = (Barrier::default(), Barrier::default());
        let panics = Arc::default();
        Self { simulator: Simulator::new(playbook), answer, stream, panics }
    }
}

impl Transport for HeldModel {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let is_held = memchr_of(&request.body, HELD);
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
                let body = Box::new(HeldBody { inner: response.body, at: Some(this.stream) });
                response.body = body;
            }
            Ok(response)
        })
    }
}

fn memchr_of(body: &[u8], word: &str) -> bool {
    body.windows(word.len()).any(|it| it == word.as_bytes())
}

#[derive(Debug)]
struct HeldBody {
    inner: Box<dyn ResponseBody>,
    at: Option<Barrier>,
}

impl ResponseBody for HeldBody {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async move {
            if let Some(barrier) = self.at.take() {
                let first = self.inner.chunk().await?;
                let Some(mut bytes) = first else { return Ok(None) };
                // The first half is read, the second half waits.
                let half = bytes.split_to(bytes.len() / 2);
                let rest = std::mem::replace(&mut self.inner, Box::new(Nothing));
                self.inner = Box::new(Rest { bytes: Some(bytes), inner: rest, barrier });
                return Ok(Some(half));
            }
            self.inner.chunk().await
        })
    }
}

#[derive(Debug)]
struct Rest {
    bytes: Option<Bytes>,
    inner: Box<dyn ResponseBody>,
    barrier: Barrier,
}

impl ResponseBody for Rest {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async move {
            self.barrier.pass().await;
            match self.bytes.take() {
                Some(bytes) => Ok(Some(bytes)),
                None => self.inner.chunk().await,
            }
        })
    }
}

#[derive(Debug)]
struct Nothing;

impl ResponseBody for Nothing {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}
