//! The demonstration inside a server: the same survey, to be watched on its page.

use std::{sync::Arc, time::Duration};

use ennead::{
    Ennead, Options,
    serve::{Role, ServeError, ServeOptions, Server},
};
use futures::future::{self, Either};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    demo::{Demo, DemoError, listen, simulator},
    simulate,
};

/// How long the survey waits for somebody who watches.
const PATIENCE: Duration = Duration::from_secs(30);

/// The tenant of the demonstration.
const TENANT: &str = "demo";

/// A server that the demonstration runs in.
#[derive(Debug)]
pub struct DemoServer {
    /// The address of its page, with the token that opens it.
    pub page: String,
    /// The running server, to be drained or shut down.
    pub server: Server,
}

/// Why the demonstration cannot run inside a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoServerError {
    /// The demonstration cannot be prepared.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The server does not start.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Runs a survey inside a server on `listener`, until `stop` is cancelled; then the server ends in order.
/// `started` is given the server before anything happens in it. The survey begins with the first request of whoever opens
/// the page, or after half a minute.
///
/// # Errors
///
/// [`DemoServerError`].
pub async fn serve(
    demo: Demo,
    listener: TcpListener,
    stop: CancellationToken,
    started: impl FnOnce(DemoServer),
) -> Result<(), DemoServerError> {
    let survey = demo.prepare()?;
    let (model, address) = listen().await?;
    let stopped = CancellationToken::new();
    let hosting = async {
        let state = survey.transcripts.join("server");
        let session = survey.session(&address).map_err(DemoError::Rule)?;
        let options = ServeOptions::new(&state, &state, session).workspace(survey.root());
        let ennead = Ennead::start(Options::default()).await.map_err(DemoError::Start)?;
        let server = Server::start(ennead, options).await?;
        // Made anew, since the last one is not kept anywhere.
        server.tokens().remove(TENANT)?;
        let token = server.tokens().add(TENANT, TENANT, Role::Admin)?;
        let at = listener.local_addr().map_err(DemoError::Serve)?;
        let page = format!("http://{at}/#token={token}");
        started(DemoServer { page, server: server.clone() });
        let listening = std::pin::pin!(server.listen(listener, None, server.app()));
        let surveying = async {
            // Late or not, the survey begins.
            let _late = tokio::time::timeout(PATIENCE, server.first_request()).await;
            server.begin(TENANT, "Survey", &survey.prompt()).await?;
            stop.cancelled().await;
            Ok::<(), ServeError>(())
        };
        let ending = async {
            match future::select(std::pin::pin!(surveying), std::pin::pin!(stop.cancelled())).await
            {
                Either::Left((ended, _)) => ended,
                Either::Right(((), _)) => Ok(()),
            }
        };
        match future::select(listening, std::pin::pin!(ending)).await {
            Either::Left((ended, _)) => ended?,
            Either::Right((surveyed, listening)) => {
                future::join(server.shutdown(), listening).await.1?;
                surveyed?;
            }
        }
        Ok(())
    };
    let hosting = async {
        let result: Result<(), DemoServerError> = hosting.await;
        stopped.cancel();
        result
    };
    let serving = simulate::serve(Arc::clone(&simulator()?), model, stopped.clone());
    let (served, result) = future::join(serving, hosting).await;
    served.map_err(DemoError::Serve)?;
    result
}
