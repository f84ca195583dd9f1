//! What a caller chooses for the turns to come, while the session is open: the model, the MCP servers whose tools are withheld,
//! and the permission mode.

use std::mem;

use ennead_runtime::{
    approval::ModeError,
    mcp::names::rule_for_all,
    permission::{PermissionMode, Scope},
    session::SessionInput,
    step1_settings_resolution::LayerText,
};
use tokio::sync::oneshot;

use super::{SessionState, state::Starting};

/// What was chosen since the session was opened: the model, and the MCP servers whose tools are withheld.
#[derive(Debug, Default)]
pub(super) struct ChosenSettings {
    model: Option<String>,
    disabled_servers: Vec<String>,
    /// The choices, as settings.
    layer: Option<LayerText>,
    /// Whether no turn has seen them yet.
    is_new: bool,
}

impl ChosenSettings {
    /// Returns the choices for the turn that begins, and that they are known from then on.
    pub(super) fn take(&mut self) -> ChosenLayer {
        ChosenLayer { layer: self.layer.clone(), is_new: mem::take(&mut self.is_new) }
    }

    /// Makes settings of the choices. They are recorded with the turn, as those of files are.
    fn take_effect(&mut self) {
        let mut settings = serde_json::Map::new();
        if let Some(model) = &self.model {
            settings.insert("model".into(), model.as_str().into());
        }
        if !self.disabled_servers.is_empty() {
            let rules: Vec<String> =
                self.disabled_servers.iter().map(|it| rule_for_all(it)).collect();
            settings.insert("permissions".into(), serde_json::json!({ "deny": rules }));
        }
        self.layer = (!settings.is_empty()).then(|| {
            let text = serde_json::Value::Object(settings).to_string();
            LayerText::new(Scope::CliArg, "session", text)
        });
        self.is_new = true;
    }
}

/// The choices, as a turn is given them.
pub(super) struct ChosenLayer {
    /// The choices, as settings; `None` where nothing is chosen.
    pub(super) layer: Option<LayerText>,
    /// Whether no turn has seen them yet.
    pub(super) is_new: bool,
}

impl SessionState {
    /// Chooses the model of the turns to come. Nothing is to be waited for.
    pub(super) fn choose_model(&mut self, model: Option<String>) -> Starting<'static> {
        self.chosen.model = model;
        self.chosen.take_effect();
        Ok(None)
    }

    /// Withholds the tools of these servers, and of no others, from the turns to come. Nothing is to be waited for.
    pub(super) fn disable_servers(&mut self, names: Vec<String>) -> Starting<'static> {
        self.chosen.disabled_servers = names;
        self.chosen.take_effect();
        Ok(None)
    }

    /// Changes the permission mode here and in sub-agents, if it may be changed, and replies whether it may. Returns what
    /// the machine is asked.
    pub(super) fn change_mode(
        &mut self,
        mode: PermissionMode,
        reply: oneshot::Sender<Result<(), ModeError>>,
    ) -> Option<SessionInput> {
        let may = self.machine.may_change_to(mode);
        // A caller that has left needs no answer.
        let _gone = reply.send(may);
        may.ok()?;
        self.children.set_mode(mode);
        Some(SessionInput::SetMode(mode))
    }
}
