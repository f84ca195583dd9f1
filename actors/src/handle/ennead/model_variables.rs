//! What settings say about model servers, for a program that reads them from its environment.

use ennead_runtime::{
    permission::Scope, step1_settings_resolution::merge, turn::input::SettingsRead,
};

use super::{layers, place::place};
use crate::{
    options::{ENDPOINT_VARIABLES, SessionOptions},
    ports::errors::OpenError,
    world::{
        environment::Environment, local_files::LocalFiles, real_paths::RealPaths,
        source_files::SourceLookup as _,
    },
};

/// Returns an environment with the variables of model servers that `env` sets in the user's settings, in those of the
/// organisation, and in the options of a session. They are stronger than those that are there. What a repository sets does
/// not count: it could have prompts sent to a server of its own. Settings that cannot be read are passed over here; the
/// session says why it cannot begin.
///
/// # Errors
///
/// [`OpenError::Workspace`] when the directory of the session cannot be used.
pub async fn with_model_variables(
    environment: Environment,
    options: &SessionOptions,
) -> Result<Environment, OpenError> {
    let dirs = place(&environment, options, &mut RealPaths::default())?;
    let mut all = layers(options);
    if options.reads_settings
        && let Ok((SettingsRead::Layers(read), _)) =
            LocalFiles::default().settings(&dirs, None).await
    {
        all.extend(read);
    }
    all.retain(|it| !matches!(it.scope, Scope::Project | Scope::Local));
    let merged = merge(&all);
    let of_settings = &merged.settings.env;
    Ok(ENDPOINT_VARIABLES.into_iter().fold(environment, |environment, names| {
        let set: Vec<_> = names.iter().filter_map(|it| of_settings.get_key_value(*it)).collect();
        if set.is_empty() {
            return environment;
        }
        let others = names.iter().fold(environment, |it, name| it.without(name));
        set.into_iter().fold(others, |it, (name, value)| it.with(name, value.as_str()))
    }))
}
