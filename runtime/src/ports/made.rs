//! Making what ports take and give: these types can grow, so nothing outside of the crate writes them field by field.
//!
//! A constructor takes what every value has; what else there is, is a field that may be set afterwards.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;

use super::{
    AgentOrder, AgentPlace, AgentReport, AgentStatus, Cancel, Clock, CommittedOutcome, Progress,
    ResponseBody, ToolContext, WireRequest, WireResponse, WorkGuard,
};
use crate::{
    ids::{AgentId, SessionId, ToolUseId},
    step1_settings_resolution::{Certificates, ShellSettings},
    tokens::Usage,
    wire_body::WireBody,
};

impl AgentOrder {
    /// Orders a sub-agent of the general type, with its parent's model, in the workspace.
    pub fn new(
        tool_use: ToolUseId,
        description: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Self {
        Self {
            tool_use,
            description: description.into(),
            prompt: prompt.into(),
            part: None,
            agent_type: None,
            model: None,
            worktree: None,
            in_background: None,
        }
    }
}

impl AgentPlace {
    /// Names the directory of a worktree, which is kept while something holds the guard.
    pub fn new(directory: impl Into<String>, guard: WorkGuard) -> Self {
        Self { directory: directory.into(), guard }
    }
}

impl AgentReport {
    /// Reports the end of a sub-agent that called no tool and used nothing; without a status, that it was started in
    /// the background.
    pub fn new(
        status: impl Into<Option<AgentStatus>>,
        agent: Option<AgentId>,
        text: impl Into<String>,
    ) -> Self {
        let (status, text, usage) = (status.into(), text.into(), Usage::default());
        Self { status, agent, text, n_tool_uses: 0, usage, head: None, can_go_on: false }
    }
}

impl Progress {
    /// Reports how far a call is: a share of 0 to 100, if the whole is known, and a line for people.
    pub fn new(percent: Option<u8>, text: impl Into<Arc<str>>) -> Self {
        Self { percent, text: text.into() }
    }
}

impl ToolContext {
    /// Makes the context of a call that remembers nothing, has no variables, and works alone: there are no sub-agents, no
    /// sandbox, no redaction, and no subscriber to its progress. Both directories are absolute paths; outputs too
    /// long for the model are kept in `temporary`, too.
    pub fn new(
        session: SessionId,
        workspace: impl Into<Arc<str>>,
        temporary: impl Into<Arc<str>>,
        cancel: Arc<dyn Cancel>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let temporary = temporary.into();
        Self {
            session,
            workspace: workspace.into(),
            additional_directories: Arc::default(),
            spill_directory: Arc::clone(&temporary),
            temporary,
            memory: Arc::default(),
            env: Arc::default(),
            cancel,
            guard: WorkGuard::new(()),
            committed: CommittedOutcome::default(),
            agents: None,
            processes: None,
            pages: None,
            shell: ShellSettings::default(),
            sandbox: None,
            exports: Arc::default(),
            unconfined_exports: Arc::default(),
            redactor: None,
            redacts_results: false,
            progress: None,
            clock,
        }
    }
}

impl WireRequest {
    /// Makes a `POST` request to a server that the system's own authorities vouch for.
    pub fn new(
        url: impl Into<Arc<str>>,
        headers: impl Into<Arc<[(String, String)]>>,
        body: impl Into<WireBody>,
        connect_timeout: Duration,
    ) -> Self {
        let certificates = Certificates::default();
        Self {
            method: http::Method::POST,
            url: url.into(),
            headers: headers.into(),
            body: body.into(),
            connect_timeout,
            certificates,
        }
    }
}

impl WireResponse {
    /// Makes an answer of its head and its body.
    pub fn new(status: u16, headers: HeaderMap, body: ResponseBody) -> Self {
        Self { status, headers, body }
    }
}
