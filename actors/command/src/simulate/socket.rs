//! A connection that can be reset, or end without an answer.
//!
//! axum can express neither: a body that fails makes it close the connection in
//! good order, and a client that sees a proper end has not seen a reset; and every request is
//! answered with a head.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{extract::connect_info::Connected, serve::IncomingStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// Says how a connection shall end.
#[derive(Clone, Debug, Default)]
pub(super) struct Fate(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    reset: AtomicBool,
    mute: AtomicBool,
}

impl Fate {
    /// Makes the connection end in a reset.
    pub(super) fn reset(&self) {
        self.0.reset.store(true, Ordering::Release);
    }

    /// Makes the connection end without another byte.
    pub(super) fn mute(&self) {
        self.0.mute.store(true, Ordering::Release);
    }

    fn is_reset(&self) -> bool {
        self.0.reset.load(Ordering::Acquire)
    }

    fn is_mute(&self) -> bool {
        self.0.mute.load(Ordering::Acquire)
    }
}

/// Accepts connections that can be reset.
#[derive(Debug)]
pub(super) struct Listener(pub(super) TcpListener);

impl axum::serve::Listener for Listener {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        // axum's own way waits out a lack of file descriptors.
        let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "small packets may be joined");
        }
        (Socket { stream, fate: Fate::default() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Listener>> for Fate {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.io().fate.clone()
    }
}

/// A connection that can be reset.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    fate: Fate,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.fate.is_reset() {
            // Closing without lingering is what sends the reset.
            if let Err(error) = self.stream.set_zero_linger() {
                tracing::warn!(%error, "a connection is closed instead of reset");
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.fate.is_mute() {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A proper end now would hide the reset.
        if self.fate.is_reset() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.fate.is_mute() {
            return Poll::Ready(Ok(slices.iter().map(|it| it.len()).sum()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
