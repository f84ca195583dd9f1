//! The way to a collector: the HTTP client that also asks models, with its proxies and certificates.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use ennead::internal::Http;
use ennead_runtime::ports::{Transport, WireRequest};
use futures::StreamExt;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

/// How long one request may take. The exporter tries no second time.
const LIMIT: Duration = Duration::from_secs(10);

/// Bytes of an answer that are looked at.
const MAX_ANSWER: usize = 64 * 1024;

/// Sends what a thread of the exporter hands over, on the scheduler threads of the runtime.
pub(super) struct Collector {
    http: Arc<Http>,
    runtime: Handle,
}

impl Collector {
    /// Uses the runtime that it is called in.
    pub(super) fn new() -> Result<Self, HttpError> {
        Ok(Self { http: Arc::new(Http::new()?), runtime: Handle::try_current()? })
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let headers = parts.headers.iter().filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        let headers: Vec<_> = headers.collect();
        let request = WireRequest::new(parts.uri.to_string(), headers, body, LIMIT);
        let http = Arc::clone(&self.http);
        let exchange = async move {
            let mut came = http.send(request).await?;
            let mut answer = BytesMut::new();
            while let Some(chunk) = came.body.next().await {
                answer.extend_from_slice(&chunk?);
                if MAX_ANSWER < answer.len() {
                    break;
                }
            }
            Ok::<_, HttpError>(Response::builder().status(came.status).body(answer.freeze())?)
        };
        // A clock needs a runtime, which the exporter's thread has none of.
        self.runtime.spawn(async { tokio::time::timeout(LIMIT, exchange).await }).await??
    }
}
