//! How many files a turn changes before somebody is asked (`ennead.codeEdit`).
//!
//! Every layer may make it stricter and none looser: the confirmation is on where any layer has it on, and
//! the smallest number holds. So a repository's own settings count without trust.

use serde::{Deserialize, Serialize};

use super::layer::SettingsLayer;

/// The name of the group under `ennead`.
pub(super) const GROUP: &str = "code_edit";

/// The settings under `ennead.codeEdit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CodeEditSettings {
    /// Whether somebody is asked about changes of files above the number; off.
    pub confirm: bool,
    /// Changes of files that pass without a question in one turn; 5 (TOL-12).
    pub max_changes_per_turn: u32,
}

impl Default for CodeEditSettings {
    fn default() -> Self {
        Self { confirm: false, max_changes_per_turn: 5 }
    }
}

impl CodeEditSettings {
    /// Returns how many changes pass in a turn without a question; `None` means any number.
    pub(crate) fn unasked_changes(&self) -> Option<u32> {
        self.confirm.then_some(self.max_changes_per_turn)
    }
}

/// What one layer says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LayerKeys {
    confirm: Option<bool>,
    max_changes_per_turn: Option<u32>,
}

/// Merges the settings of layers, whose order does not matter. A number alone switches the confirmation on.
pub(super) fn code_edit(layers: &[SettingsLayer]) -> CodeEditSettings {
    match strictest(layers) {
        Some((max_changes_per_turn, _)) => CodeEditSettings { confirm: true, max_changes_per_turn },
        None => CodeEditSettings::default(),
    }
}

/// Returns the smallest number of changes that pass without a question, and the first layer with that number; `None`
/// where no layer has the confirmation on.
pub(super) fn strictest(layers: &[SettingsLayer]) -> Option<(u32, &SettingsLayer)> {
    let default = CodeEditSettings::default().max_changes_per_turn;
    let said = layers.iter().filter_map(|layer| {
        let section = layer.values.get("ennead")?.get(GROUP)?;
        // What is wrong is warned of, and switches on.
        let of_wrong = LayerKeys { confirm: Some(true), max_changes_per_turn: None };
        let LayerKeys { confirm, max_changes_per_turn } =
            LayerKeys::deserialize(section).unwrap_or(of_wrong);
        let is_on = confirm.unwrap_or(max_changes_per_turn.is_some());
        is_on.then(|| (max_changes_per_turn.unwrap_or(default), layer))
    });
    said.min_by_key(|it| it.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{
        permission::Scope,
        step1_settings_resolution::{
            LayerText, merge,
            trust::{Trust, restrict},
        },
    };

    #[track_caller]
    fn check(layers: &[(Scope, Value)], expected: Option<u32>) {
        for trust in [Trust::Untrusted, Trust::Headless, Trust::Trusted] {
            let layer = |(scope, section): &(Scope, Value)| {
                let text = json!({"ennead": {"codeEdit": section, "maxTurns": 3}}).to_string();
                restrict(LayerText::new(*scope, "s", text), trust)
            };
            let resolved = merge(&layers.iter().map(layer).collect::<Vec<_>>());
            assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
            assert_eq!(resolved.settings.code_edit.unasked_changes(), expected, "{trust:?}");
            let is_loose =
                trust == Trust::Untrusted && layers.iter().all(|it| it.0.is_of_repository());
            let max_turns = resolved.settings.max_turns.get();
            assert_eq!(max_turns, if is_loose { 25 } else { 3 }, "nothing else counts untrusted");
        }
    }

    // REQ: TOL-12
    #[test]
    fn confirmation_is_off_unless_a_layer_says_so_and_then_begins_after_five_changes() {
        check(&[(Scope::User, json!({}))], None);
        check(&[(Scope::User, json!({"confirm": false}))], None);
        check(&[(Scope::User, json!({"confirm": false, "maxChangesPerTurn": 2}))], None);
        check(&[(Scope::User, json!({"confirm": true}))], Some(5));
        check(&[(Scope::User, json!({"maxChangesPerTurn": 0}))], Some(0));
        check(&[(Scope::User, json!({"confirm": true, "max_changes_per_turn": 7}))], Some(7));
    }

    // REQ: TOL-12, TRN-4
    #[test]
    fn every_layer_makes_it_stricter_and_none_looser() {
        let user = |section| (Scope::User, section);
        for own in [Scope::Project, Scope::Local] {
            check(&[(own, json!({"confirm": true}))], Some(5));
            check(&[user(json!({"confirm": true})), (own, json!({"confirm": false}))], Some(5));
            check(
                &[user(json!({"confirm": true})), (own, json!({"maxChangesPerTurn": 9}))],
                Some(5),
            );
            check(
                &[user(json!({"confirm": true})), (own, json!({"maxChangesPerTurn": 1}))],
                Some(1),
            );
        }
        check(
            &[(Scope::Policy, json!({"confirm": true})), user(json!({"confirm": false}))],
            Some(5),
        );
        let policy = (Scope::Policy, json!({"maxChangesPerTurn": 8}));
        check(&[policy, user(json!({"maxChangesPerTurn": 3}))], Some(3));
    }
}
