//! What a caller chooses for the turns to come, while the session is open: the model, and the MCP servers whose tools are withheld.

use std::mem;

use ennead_runtime::{
    mcp::names::rule_for_all, permission::Scope, step1_settings_resolution::LayerText,
};

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

    /// Chooses the model of the turns to come; `None`: the one of the settings.
    pub(super) fn set_model(&mut self, model: Option<String>) {
        self.model = model;
        self.take_effect();
    }

    /// Withholds the tools of these servers, and of no others, from the turns to come.
    pub(super) fn disable_servers(&mut self, names: Vec<String>) {
        self.disabled_servers = names;
        self.take_effect();
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
