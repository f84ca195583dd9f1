//! The session is opened once the program has introduced itself.

use std::sync::{Arc, OnceLock};

use ennead::{OpenError, SessionHandle, internal::ServerTools};
use ennead_runtime::skill::SkillContext;

use super::{
    super::{
        callbacks::HostApprover,
        checkpoints::directory_of,
        mcp,
        permission_tool::{AskedTool, ToolApprover},
        results::of_error,
    },
    Face, Opening,
};

impl Face {
    /// Opens the session, once.
    pub(super) fn open(&mut self) -> Option<Opening> {
        let mut options = self.options.take()?;
        self.opened_with = Some(options.clone());
        if self.face.asks_program {
            let approver =
                HostApprover::new(self.host.clone(), self.shown_calls.clone(), self.modes.clone());
            options = options.approver(Arc::new(approver));
        }
        let servers = mcp::servers(&self.host, &self.host_servers);
        let asked = self.permission_tool.clone();
        let of_session = Arc::new(OnceLock::new());
        if let Some(name) = asked.as_deref() {
            let tool = match mcp::tool_of(&servers, name) {
                Some((server, tool)) => AskedTool::OfProgram(server, tool.to_owned()),
                None => AskedTool::OfSession(Arc::clone(&of_session), name.to_owned()),
            };
            let (shown, modes) = (self.shown_calls.clone(), self.modes.clone());
            options = options.approver(Arc::new(ToolApprover::new(tool, shown, modes)));
        }
        let session = self.translator.frame().session().clone();
        let place = SkillContext { session: session.as_str(), project: &self.facts.cwd };
        self.warnings.extend(self.skills.offer(&mut options, place));
        let ennead = self.ennead.take()?;
        Some(Box::pin(async move {
            let states = mcp::join(servers, &mut options).await;
            // The model does not answer for itself. A tool of another server is denied to it by a rule.
            options.tools.retain(|it| asked.as_deref() != Some(it.spec().name.as_str()));
            let opened = ennead.open(options).await;
            if let Ok(session) = &opened {
                // It is set once.
                let _first = of_session.set(ServerTools::of(session));
            }
            (ennead, opened, states)
        }))
    }

    /// Returns whether there is a session.
    pub(super) async fn opened(&mut self, opened: Result<SessionHandle, OpenError>) -> bool {
        match opened {
            Ok(session) => {
                self.events = Some(session.conversation(self.face.partial));
                self.facts.tools = session.tools();
                self.facts.tools.retain(|it| !self.facts.denied.contains(it));
                if let Some(model) = self.chosen_model.take() {
                    session.set_model(model.as_deref());
                }
                if !self.facts.disabled_servers.is_empty() {
                    self.withhold_servers(&session);
                }
                self.translator.transcript_lies_at(session.transcript());
                self.mirror.iter().for_each(|it| it.follow(session.transcript()));
                self.checkpoints
                    .iter()
                    .for_each(|it| it.follow(directory_of(session.transcript())));
                self.session = Some(session);
                self.learn_tools();
                self.begin_reconnects();
                self.end_clearing();
                if let Some(mode) = self.chosen_mode.take()
                    && let Err(why) = self.choose_mode(mode).await
                {
                    self.warn(&why);
                }
                true
            }
            Err(error) => {
                self.refuse(&error.to_string());
                false
            }
        }
    }

    /// Answers all that wait for the session that it cannot be opened.
    pub(super) fn refuse(&mut self, why: &str) {
        let notes = self.clearing.take().unwrap_or_default();
        self.output.write(of_error(self.translator.frame(), why, &notes));
        self.refuse_reconnects(why);
        self.refused = Some(why.to_owned());
        self.has_failed = true;
        self.queue.clear();
    }
}
