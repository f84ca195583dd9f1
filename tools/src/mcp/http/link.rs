//! What the exchanges with one server share: its address, the session there, and what went wrong last.

use std::{
    fmt::Display,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use ennead_runtime::{
    mcp::config::{Address, ServerConfig},
    ports::{Transport, TransportError, WireRequest, WireResponse},
};
use rmcp::model::RequestId;
use tokio::{sync::watch, time::timeout};

use super::{
    super::{caller::GRACE, tasks::TaskTools, wire::beginning},
    answer::{MAX_ASKED, read_answer, version_of},
    endpoint,
};
use crate::locked::Locked as _;

/// Until a connection is open.
const CONNECT: Duration = Duration::from_secs(10);

/// Until an answer begins, unless the server's own limit on calls is longer.
const FIRST_BYTE: Duration = Duration::from_secs(60);

/// Until a session that the server forgot is opened again.
const RENEWAL: Duration = Duration::from_secs(30);

/// Bytes of unfinished answers of one server, all its exchanges taken together.
const MAX_HELD: usize = 32 << 20;

/// Characters of the id of a session.
const MAX_SESSION_ID: usize = 1024;

/// Headers that are the transport's own; a configuration does not replace them.
const OWN_HEADERS: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// Characters of a version of the protocol.
const MAX_VERSION: usize = 64;

const SESSION_ID: &str = "mcp-session-id";
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Why an exchange failed.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct HttpFailure {
    /// In words, without the name of the server.
    pub(in crate::mcp) why: String,
    pub(in crate::mcp) kind: FailureKind,
}

/// What a failure says of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mcp) enum FailureKind {
    /// Nothing: the next call may succeed.
    Call,
    /// The server cannot serve at the moment.
    Unavailable,
    /// There is no connection to it.
    Unreachable,
    /// It wants a login.
    NeedsAuth,
    /// It does not take what is sent to it.
    Refused,
}

impl HttpFailure {
    pub(super) fn new(kind: FailureKind, why: impl Display) -> Self {
        Self { why: beginning(why), kind }
    }

    pub(super) fn of_call(why: impl Display) -> Self {
        Self::new(FailureKind::Call, why)
    }

    /// Returns whether no other call can succeed either, until the server is connected to again.
    pub(in crate::mcp) fn is_fatal(&self) -> bool {
        !matches!(self.kind, FailureKind::Call | FailureKind::Unavailable)
    }
}

impl From<TransportError> for HttpFailure {
    fn from(error: TransportError) -> Self {
        let kind = match &error {
            TransportError::Connect { .. } | TransportError::Tls { .. } => FailureKind::Unreachable,
            TransportError::Unsendable { .. } => FailureKind::Refused,
            _ => FailureKind::Call,
        };
        Self::new(kind, error)
    }
}

/// The way to a server.
pub(in crate::mcp) struct Link {
    server: String,
    http: Arc<dyn Transport>,
    url: Arc<str>,
    headers: Vec<(String, String)>,
    first_byte: Duration,
    pub(super) tasks: TaskTools,
    session: Mutex<ServerSession>,
    /// Held by the exchange that opens the session again.
    renewing: tokio::sync::Mutex<()>,
    failure: Mutex<Option<HttpFailure>>,
    held: AtomicUsize,
    /// Requests of the server that are not answered yet.
    asked: AtomicUsize,
    /// Where messages go in the older transport, once the server has named it.
    endpoint: watch::Sender<Option<Arc<str>>>,
}

/// The session that a server keeps for us.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerSession {
    id: Option<String>,
    version: Option<String>,
    /// What opened it, to open another one.
    greeting: Option<(RequestId, Bytes)>,
}

impl ServerSession {
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }
}

/// The id of the session that an answer names, if it names one.
fn session_id(response: &WireResponse) -> Result<Option<String>, HttpFailure> {
    let Some(id) = response.headers.get(SESSION_ID) else { return Ok(None) };
    match id.to_str() {
        Ok(id) if id.len() <= MAX_SESSION_ID => Ok(Some(id.to_owned())),
        _ => Err(HttpFailure::of_call("the id of its session cannot be used")),
    }
}

/// A version of the protocol that can be sent as a header.
fn usable(version: &str) -> Option<String> {
    let is_usable = version.len() <= MAX_VERSION && version.bytes().all(|it| it.is_ascii_graphic());
    is_usable.then(|| version.to_owned())
}

impl Link {
    pub(in crate::mcp) fn new(
        config: &ServerConfig,
        address: &Address,
        http: Arc<dyn Transport>,
        tasks: TaskTools,
    ) -> Self {
        let own = |name: &str| OWN_HEADERS.iter().any(|it| it.eq_ignore_ascii_case(name));
        let headers = address.headers.iter().filter(|(name, _)| !own(name));
        Self {
            server: config.name.to_string(),
            http,
            url: address.url.as_str().into(),
            headers: headers.map(|(name, value)| (name.to_lowercase(), value.clone())).collect(),
            first_byte: config
                .timeout_ms
                .map_or(FIRST_BYTE, |it| FIRST_BYTE.max(Duration::from_millis(it))),
            tasks,
            session: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            failure: Mutex::default(),
            held: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            endpoint: watch::Sender::new(None),
        }
    }

    /// Returns the name of the server.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Sends a message to the server; returns once the answer begins.
    pub(super) async fn post(
        &self,
        session: &ServerSession,
        body: Bytes,
    ) -> Result<WireResponse, HttpFailure> {
        let mut headers = self.headers.clone();
        headers.push(("content-type".into(), "application/json".into()));
        headers.push(("accept".into(), "application/json, text/event-stream".into()));
        let url = self.endpoint.borrow().clone();
        let request = self.request(http::Method::POST, url, session, headers, body);
        self.begun(request).await
    }

    /// Opens the stream of the older transport.
    pub(super) async fn open_stream(&self) -> Result<WireResponse, HttpFailure> {
        let mut headers = self.headers.clone();
        headers.push(("accept".into(), "text/event-stream".into()));
        let session = ServerSession::default();
        self.begun(self.request(http::Method::GET, None, &session, headers, Bytes::new())).await
    }

    fn request(
        &self,
        method: http::Method,
        url: Option<Arc<str>>,
        session: &ServerSession,
        mut headers: Vec<(String, String)>,
        body: Bytes,
    ) -> WireRequest {
        let id = session.id.iter().map(|it| (SESSION_ID.to_owned(), it.clone()));
        let version = session.version.iter();
        let version = version.map(|it| ("mcp-protocol-version".to_owned(), it.clone()));
        headers.extend(id.chain(version));
        let url = url.unwrap_or_else(|| Arc::clone(&self.url));
        let mut request = WireRequest::new(url, headers, body, CONNECT);
        request.method = method;
        request
    }

    async fn begun(&self, request: WireRequest) -> Result<WireResponse, HttpFailure> {
        match timeout(self.first_byte, self.http.send(request)).await {
            Ok(begun) => Ok(begun?),
            Err(_) => {
                let seconds = self.first_byte.as_secs();
                Err(HttpFailure::of_call(format!("no answer began within {seconds} s")))
            }
        }
    }

    pub(super) fn session(&self) -> ServerSession {
        self.session.locked().clone()
    }

    /// Keeps what opens a session.
    pub(super) fn greets_with(&self, id: RequestId, body: Bytes) {
        self.session.locked().greeting = Some((id, body));
    }

    /// Keeps the id of the session that an answer names.
    pub(super) fn note_session(&self, response: &WireResponse) -> Result<(), HttpFailure> {
        self.session.locked().id = session_id(response)?;
        Ok(())
    }

    /// Keeps the version of the protocol that is spoken from now on. One that is no version is not sent.
    pub(super) fn speaks(&self, version: &str) {
        self.session.locked().version = usable(version);
    }

    /// Opens another session in place of one that the server does not know any more, unless that is done.
    pub(super) async fn renew(self: &Arc<Self>, stale: &ServerSession) -> Result<(), HttpFailure> {
        let renewed = timeout(RENEWAL, async {
            let _only_one = self.renewing.lock().await;
            let session = self.session();
            if session.id != stale.id {
                return Ok(());
            }
            let lost = |why| HttpFailure::new(FailureKind::Refused, why);
            let Some((id, greeting)) = session.greeting.clone() else {
                return Err(lost("its session is lost"));
            };
            let response = self.post(&ServerSession::default(), greeting).await?;
            if !(200..300).contains(&response.status) {
                return Err(lost("its session is lost, and it opens no other"));
            }
            let new_id = session_id(&response)?;
            let answer = read_answer(self, response, &id, None).await?;
            let version = version_of(&answer);
            let version =
                version.ok_or_else(|| lost("its session is lost, and it opens no other"))?;
            let new = ServerSession { id: new_id, version: usable(version), ..session };
            self.post(&new, Bytes::from_static(INITIALIZED)).await?;
            // Only now may others use it: one that is half open serves nobody, and the next call tries again.
            *self.session.locked() = new;
            Ok(())
        });
        renewed.await.unwrap_or_else(|_| {
            let seconds = RENEWAL.as_secs();
            Err(HttpFailure::of_call(format!("it opened no other session within {seconds} s")))
        })
    }

    /// Notifies the server that its session is over, if it keeps one.
    pub(super) async fn end_session(&self) {
        let session = self.session();
        if session.has_id() && self.fatal().is_none() {
            let headers = self.headers.clone();
            let request = self.request(http::Method::DELETE, None, &session, headers, Bytes::new());
            // Sessions end by themselves, too.
            let _late = timeout(GRACE, self.http.send(request)).await;
        }
    }

    /// Keeps a failure, to say why a server cannot be had.
    pub(super) fn note(&self, failure: HttpFailure) {
        let mut last = self.failure.locked();
        if !last.as_ref().is_some_and(HttpFailure::is_fatal) {
            *last = Some(failure);
        }
    }

    /// Returns what went wrong last.
    pub(in crate::mcp) fn failure(&self) -> Option<HttpFailure> {
        self.failure.locked().clone()
    }

    /// Returns why nothing can be sent any more.
    pub(in crate::mcp) fn fatal(&self) -> Option<HttpFailure> {
        self.failure().filter(HttpFailure::is_fatal)
    }

    /// Counts bytes that an exchange holds; returns whether it may.
    pub(super) fn holds(&self, bytes: usize) -> bool {
        self.held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= MAX_HELD
    }

    pub(super) fn lets_go(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts a request of the server; returns whether it may be passed on.
    pub(super) fn may_ask(&self) -> bool {
        let may = |asked| (asked < MAX_ASKED).then_some(asked + 1);
        self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, may).is_ok()
    }

    pub(super) fn answered(&self) {
        let answered = |asked: usize| asked.checked_sub(1);
        let _none = self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, answered);
    }

    /// Takes the address for messages that the server names; it has to be of the same origin.
    pub(super) fn name_endpoint(&self, named: &str) -> Result<(), HttpFailure> {
        let endpoint = endpoint::resolve(&self.url, named).ok_or_else(|| {
            let why = "it names an address for messages that is not its own";
            HttpFailure::new(FailureKind::Refused, why)
        })?;
        self.endpoint.send_replace(Some(endpoint.into()));
        Ok(())
    }

    /// Waits until the server has named the address for messages.
    pub(super) async fn wait_for_endpoint(&self) {
        let mut endpoint = self.endpoint.subscribe();
        // The sender lives as long as this.
        let _named = endpoint.wait_for(Option::is_some).await;
    }

    /// Returns whether the configuration itself says who we are.
    pub(super) fn has_credentials(&self) -> bool {
        self.headers.iter().any(|(name, _)| name == "authorization")
    }
}
