//! Hands the body of a request to reqwest: a short one whole, a long one in pieces as the connection takes them.
//!
//! Of a body in pieces reqwest has no copy, so it cannot send again what a server of HTTP/2 has not looked at; that
//! is done here, by the same rule.

use std::{
    convert::Infallible,
    error::Error,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use ennead_runtime::{
    saturating::Saturating as _,
    wire_body::{BodyPieces, WireBody},
};
use http_body::{Body, Frame, SizeHint};

/// Bytes up to which a body is handed over whole. Joining so few costs no more than handing them over in pieces does.
const MAX_WHOLE: usize = 64 * 1024;

/// How often a request is sent again that the server has not looked at. The number of reqwest.
const MAX_SENT_AGAIN: usize = 2;

/// Sends a request that has everything but its body.
pub(super) async fn send(
    client: &reqwest::Client,
    mut request: reqwest::Request,
    body: &WireBody,
) -> reqwest::Result<reqwest::Response> {
    if body.len() <= MAX_WHOLE {
        *request.body_mut() = Some(body.to_bytes().into());
        return client.execute(request).await;
    }
    for _ in 0..MAX_SENT_AGAIN {
        // Without a body there is always a copy.
        let Some(mut copy) = request.try_clone() else { break };
        *copy.body_mut() = Some(in_pieces(body));
        match client.execute(copy).await {
            Err(error) if is_unseen(&error) => {}
            sent => return sent,
        }
    }
    *request.body_mut() = Some(in_pieces(body));
    client.execute(request).await
}

fn in_pieces(body: &WireBody) -> reqwest::Body {
    reqwest::Body::wrap(PiecedBody(body.pieces()))
}

/// Returns whether the server says that it has not looked at the request: it was about to close the connection, or
/// refused the stream (RFC 9113, 8.7).
fn is_unseen(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let (closes, refuses) = (h2::Reason::NO_ERROR, h2::Reason::REFUSED_STREAM);
            let reason = error.reason();
            return error.is_remote()
                && (error.is_go_away() && reason == Some(closes)
                    || error.is_reset() && reason == Some(refuses));
        }
        cause = error.source();
    }
    false
}

/// A body whose length is known from the start.
struct PiecedBody(BodyPieces);

impl Body for PiecedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|it| Ok(Frame::data(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.n_left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::saturating(self.0.n_left()))
    }
}
