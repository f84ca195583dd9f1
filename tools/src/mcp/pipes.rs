//! The two pipes of a server as the library wants them: messages in, messages out.

use std::io;

use rmcp::{
    RoleClient,
    service::TxJsonRpcMessage,
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::io::{AsyncRead, AsyncWrite, Empty};

use super::lines::{Lines, Message};

/// The pipes of a server.
pub(super) struct Pipes<R, W: AsyncWrite> {
    lines: Lines<R>,
    /// The library's own; of it only the way to the server is used.
    writer: AsyncRwTransport<RoleClient, Empty, W>,
}

impl<R, W: AsyncWrite + Send + Unpin + 'static> Pipes<R, W> {
    pub(super) fn new(lines: Lines<R>, input: W) -> Self {
        Self { lines, writer: AsyncRwTransport::new(tokio::io::empty(), input) }
    }
}

impl<R, W> Transport<RoleClient> for Pipes<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.writer.send(message)
    }

    async fn receive(&mut self) -> Option<Message> {
        self.lines.next().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.close().await
    }
}
