//! Settings as JSON, for tests of what files may hold.

use ennead::SessionOptions;
use serde_json::{Value, json};

/// Sets single keys of the settings that have the rank of flags.
pub(crate) trait SettingsJson: Sized {
    /// Sets a key as in a settings file.
    fn setting(self, key: &str, value: Value) -> Self;

    /// Sets a key below `ennead`.
    fn own_setting(self, key: &str, value: Value) -> Self {
        self.setting("ennead", json!({ key: value }))
    }
}

impl SettingsJson for SessionOptions {
    fn setting(self, key: &str, value: Value) -> Self {
        self.settings_json(json!({ key: value })).unwrap()
    }
}
