//! Keeps the rules of an answer in the settings files that they name.

use ennead_runtime::approval::{AnswerError, RuleDestination, RuleUpdate};
use ennead_tools::rule_file::keep_rules;

use crate::world::source_files::SessionDirs;

/// Keeps rules in files, on the blocking pool. Those of the session alone are in no file.
pub(super) async fn keep(place: &SessionDirs, rules: &[RuleUpdate]) -> Result<(), AnswerError> {
    use RuleDestination::{LocalSettings, ProjectSettings, Session, UserSettings};
    for destination in [LocalSettings, ProjectSettings, UserSettings] {
        let rules = rules.iter().filter(|it| it.destination == destination).cloned();
        let rules: Vec<RuleUpdate> = rules.collect();
        let (root, below, name) = match destination {
            _ if rules.is_empty() => continue,
            Session => continue,
            LocalSettings => (place.workspace.clone(), Some(".claude"), "settings.local.json"),
            ProjectSettings => (place.workspace.clone(), Some(".claude"), "settings.json"),
            UserSettings => (place.config.clone(), None, "settings.json"),
        };
        let keeping =
            tokio::task::spawn_blocking(move || keep_rules(&root, below, name, &rules)).await;
        match keeping {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(AnswerError::RuleNotKept(error.to_string())),
            Err(crashed) => return Err(AnswerError::RuleNotKept(crashed.to_string())),
        }
    }
    Ok(())
}
