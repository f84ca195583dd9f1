//! Servers on their way: who waits for them, and what tools they give.

use std::{collections::BTreeSet, fmt, sync::Arc};

use ennead_runtime::{
    ids::ToolName,
    mcp::{
        names::prefix,
        spec::{CallLimits, Listed, NotOffered, offered},
    },
    ports::{BoxFuture, Tool},
};
use ennead_tools::mcp::McpTool;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::{ServerFailure, Tools, join::AT_ONCE, one_line, server::SharedServer};

/// A server that was asked for its tools. The question is asked when this is first polled, and then
/// once, so that a server which fails is not started again by the one that waits on.
pub(super) struct AskedServer {
    server: Arc<SharedServer>,
    is_own: bool,
    answer: BoxFuture<'static, Tools>,
    calls: CallLimits,
}

/// What a server answered.
pub(crate) struct Answered {
    server: Arc<SharedServer>,
    is_own: bool,
    tools: Result<Made, ServerFailure>,
}

/// A server of a session, to be asked again.
#[derive(Clone, Debug)]
pub(crate) struct AskedAgain {
    server: Arc<SharedServer>,
    is_own: bool,
    calls: CallLimits,
    kept_names: KeptNames,
}

impl AskedAgain {
    /// Asks the server for its tools; one that has failed is started or connected to again, without a pause.
    pub(crate) async fn answered(&self) -> Answered {
        let Self { server, is_own, calls, kept_names } = self.clone();
        server.hurry();
        AskedServer::new(server, is_own, calls).answered().await.without(&kept_names)
    }
}

/// Tools of a server by their names there, and why others are none.
type Made = (Vec<(String, McpTool)>, Vec<NotOffered>);

/// What of an answer becomes part of a session.
#[derive(Default)]
pub(crate) struct Joining {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// Notices for listeners, in words.
    pub(crate) notes: Vec<Arc<str>>,
    /// Why the server cannot be had.
    pub(crate) error: Option<ServerFailure>,
}

/// Servers that had not answered when their session was opened.
pub(crate) struct StartingServers {
    pub(super) asked: Vec<AskedServer>,
    pub(super) kept_names: KeptNames,
}

/// Beginnings of names of tools that are kept for the caller's own servers, whatever became of these: a hook, or who
/// asks a tool about permissions, relies on the name.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptNames(Arc<[String]>);

impl AskedServer {
    /// Makes a server that will be asked. `is_own`: the caller named it, not only the project.
    pub(super) fn new(server: Arc<SharedServer>, is_own: bool, calls: CallLimits) -> Self {
        let answer = Box::pin(Arc::clone(&server).tools());
        Self { server, is_own, answer, calls }
    }

    /// Returns what asks the same server again.
    pub(super) fn again(&self, kept_names: &KeptNames) -> AskedAgain {
        let (server, kept_names) = (Arc::clone(&self.server), kept_names.clone());
        AskedAgain { server, is_own: self.is_own, calls: self.calls, kept_names }
    }

    pub(super) fn name(&self) -> Arc<str> {
        self.server.name().into()
    }

    /// Waits for its answer; returns itself when there is none by the deadline, if there is one.
    pub(super) async fn until(mut self, deadline: Option<Instant>) -> Result<Answered, Self> {
        let Some(deadline) = deadline else { return Ok(self.answered().await) };
        // One whose turn comes later is not asked: its start would not be bounded.
        if deadline <= Instant::now() {
            return Err(self);
        }
        match timeout_at(deadline, &mut self.answer).await {
            Ok(tools) => Ok(self.made(tools).await),
            Err(_) => Err(self),
        }
    }

    async fn answered(mut self) -> Answered {
        let tools = (&mut self.answer).await;
        self.made(tools).await
    }

    /// Schemas are compiled, and a server may list a thousand: on a thread that may block.
    async fn made(self, tools: Tools) -> Answered {
        let Self { server, is_own, calls, .. } = self;
        let tools = match tools {
            Ok(listed) => {
                let of_server = Arc::clone(&server);
                let made = move || tools_made(&of_server, &listed, calls);
                let crashed = |_| ServerFailure::new("its tools crashed");
                tokio::task::spawn_blocking(made).await.map_err(crashed)
            }
            Err(failure) => Err(failure),
        };
        Answered { server, is_own, tools }
    }
}

impl Answered {
    /// Returns the name of the server.
    pub(crate) fn server(&self) -> Arc<str> {
        self.server.name().into()
    }

    /// Returns why the server cannot be had, on one line, if it cannot.
    pub(crate) fn into_failure(self) -> Option<ServerFailure> {
        let on_one_line = |it: ServerFailure| ServerFailure { why: one_line(&it.why).into(), ..it };
        self.tools.err().map(on_one_line)
    }

    /// Leaves out the tools whose names are kept for others.
    pub(super) fn without(mut self, kept: &KeptNames) -> Self {
        if let (false, Ok((tools, left_out))) = (self.is_own, &mut self.tools) {
            let taken = tools.extract_if(.., |(_, it)| kept.has(&it.spec().name));
            left_out.extend(taken.map(|(tool, _)| name_taken(&self.server, tool)));
        }
        self
    }

    /// Returns what becomes part of the session. `names` are those of the session's tools; those of the tools that join
    /// are added.
    pub(crate) fn joining(self, names: &mut BTreeSet<ToolName>) -> Joining {
        let (made, left_out) = match self.tools {
            Ok(made) => made,
            Err(failure) => {
                let why: Arc<str> = one_line(&failure.why).into();
                let notes =
                    vec![format!("MCP server `{}` failed: {why}", self.server.name()).into()];
                let error = Some(ServerFailure { why, ..failure });
                return Joining { notes, error, ..Joining::default() };
            }
        };
        let mut joining = Joining::default();
        let tell = |it: NotOffered| one_line(&it.to_string()).into();
        joining.notes.extend(left_out.into_iter().map(tell));
        for (tool, made) in made {
            if names.insert(made.spec().name.clone()) {
                joining.tools.push(Arc::new(made))
            } else {
                joining.notes.push(tell(name_taken(&self.server, tool)))
            }
        }
        joining
    }
}

impl StartingServers {
    /// Waits until all have answered or failed, and hands over each answer as it comes. No more are
    /// started at once than when a session is opened.
    pub(crate) async fn wait(self, take: impl Fn(Answered)) {
        let Self { asked, kept_names } = self;
        let mut answers =
            stream::iter(asked.into_iter().map(AskedServer::answered)).buffer_unordered(AT_ONCE);
        while let Some(answered) = answers.next().await {
            take(answered.without(&kept_names));
        }
    }
}

impl KeptNames {
    /// Keeps the names for the caller's own servers among these.
    pub(super) fn of(asked: &[AskedServer]) -> Self {
        Self(asked.iter().filter(|it| it.is_own).map(|it| prefix(it.server.name())).collect())
    }

    fn has(&self, name: &ToolName) -> bool {
        self.0.iter().any(|it| name.as_str().starts_with(&**it))
    }
}

/// The tools of a server, and why others are none of a session. Takes as long as their schemas are.
fn tools_made(server: &Arc<SharedServer>, listed: &[Listed], limits: CallLimits) -> Made {
    let (tools, mut left_out) = offered(server.config(), listed, limits);
    let mut made = Vec::with_capacity(tools.len());
    for (remote, spec) in tools {
        let way = Arc::clone(server) as Arc<dyn ennead_tools::mcp::Server>;
        match McpTool::new(spec, &remote, way) {
            Ok(tool) => made.push((remote, tool)),
            Err(_) => {
                let server = server.config().name.clone();
                left_out.push(NotOffered::Schema { server, tool: remote });
            }
        }
    }
    (made, left_out)
}

fn name_taken(server: &SharedServer, tool: String) -> NotOffered {
    NotOffered::NameTaken { server: server.config().name.clone(), tool }
}

impl fmt::Debug for StartingServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.asked.iter().map(AskedServer::name)).finish()
    }
}
