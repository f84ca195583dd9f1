//! A model that the settings name in addition to the first one.

/// A model to turn to, as settings name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackModel {
    /// The provider, where it was named apart from the model.
    pub provider: Option<String>,
    /// The model's name, or `provider/model`.
    pub model: String,
}
