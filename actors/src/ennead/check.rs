//! What can be wrong with the options of a session before anything is started for it.

use ennead_runtime::{
    step1_settings_resolution::merge, step5_model_call::wire_format::WireFormat,
    turn::input::SettingsRead,
};

use super::{Ennead, is_uuid, layers, place};
use crate::{errors::OpenError, options::SessionOptions, world::real_paths::RealPaths};

impl Ennead {
    /// Checks options as [`Ennead::open`] does before it starts anything: the id, the directory, and
    /// that a model is named where none is the provider's own.
    ///
    /// # Errors
    ///
    /// [`OpenError`], of these three.
    pub async fn check(&self, options: &SessionOptions) -> Result<(), OpenError> {
        if let Some(id) = options.id.as_ref().filter(|it| !is_uuid(it.as_str())) {
            return Err(OpenError::BadId(id.to_string()));
        }
        let is_openai =
            matches!(options.endpoint.format, WireFormat::OpenAiChat | WireFormat::OpenAiResponses);
        if !is_openai || options.settings.get("model").is_some_and(serde_json::Value::is_string) {
            return Ok(());
        }
        let place = place(&self.options.environment, options, &mut RealPaths::default())?;
        let mut layers = layers(options);
        if options.reads_settings {
            match self.options.files.settings(&place, None).await {
                Ok((SettingsRead::Layers(read), _)) => layers.extend(read),
                // Its first run says that they cannot be read.
                Ok((SettingsRead::Unchanged, _)) | Err(_) => return Ok(()),
            }
        }
        match merge(&layers).provenance.contains_key("model") {
            true => Ok(()),
            false => Err(OpenError::NoModel { provider: options.endpoint.provider.clone() }),
        }
    }
}
