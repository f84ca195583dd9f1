//! What the options of a session give: layers of settings, models, and secrets.

use std::sync::Arc;

use ennead_runtime::{permission::Scope, step1_settings_resolution::LayerText};

use super::{Ennead, check::LookResult};
use crate::{
    options::{Endpoint, SessionOptions},
    storage::redaction::Redaction,
};

impl Ennead {
    /// Makes the redaction of the session's texts, by its options and the settings files.
    pub(super) async fn redaction(
        &self,
        options: &SessionOptions,
        looked: &LookResult,
    ) -> Redaction {
        let endpoints = endpoints(options);
        let catalogue = self.learned.apply_to(&self.catalogue, &endpoints);
        let merged = self.merged(&looked.layers, &catalogue);
        let read = looked.first.as_ref().map_or(&[][..], |it| &it.layers);
        let environment = &self.options.environment;
        self.patterns.redaction(merged, &looked.layers, read, environment, &endpoints).await
    }
}

/// Returns where a session's models are asked, in order.
pub(super) fn endpoints(options: &SessionOptions) -> Arc<[Endpoint]> {
    [&options.endpoint].into_iter().chain(&options.fallbacks).cloned().collect()
}

/// Returns the settings among its options, as a layer.
pub(super) fn layers(options: &SessionOptions) -> Vec<LayerText> {
    let layer = |text| LayerText::new(Scope::CliArg, "options", text);
    options.settings.text().map(layer).into_iter().collect()
}
