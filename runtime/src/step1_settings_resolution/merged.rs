//! Layers together with what they merge to, so that equal layers are merged once.
//!
//! Sessions of one embedder mostly have the same settings. Merging them costs some 50 µs; to find
//! that they are the same costs a comparison of texts.

use std::sync::Arc;

use super::{LayerText, Resolved, merge_with};
use crate::{catalogue::Catalogue, json::MeasuredText};

/// Bytes of layers that are merged, and whose rules are compiled, where others wait: well below a millisecond.
const SHORT: usize = 16 * 1024;

/// Layers to be merged, strongest first, and what is known of the models.
#[derive(Clone, Debug)]
pub struct MergeOrder {
    layers: Vec<LayerText>,
    catalogue: Arc<Catalogue>,
}

impl MergeOrder {
    /// Makes an order without layers, to be merged with this catalogue.
    pub fn new(catalogue: &Arc<Catalogue>) -> Self {
        Self { layers: Vec::new(), catalogue: Arc::clone(catalogue) }
    }

    /// Adds layers that are weaker than those it has.
    pub fn with(mut self, layers: Vec<LayerText>) -> Self {
        self.layers.extend(layers);
        self
    }

    /// Returns whether it is short enough to be merged where others wait.
    pub fn is_short(&self) -> bool {
        are_short(&self.layers)
    }

    /// Merges the layers. Work is linear in their bytes.
    pub fn merge(self) -> Merged {
        Merged::new(self.layers, &self.catalogue)
    }
}

/// Layers, and what [`merge_with`] makes of them.
#[derive(Clone, Debug)]
pub struct Merged {
    /// What was merged, in the order in which it was given.
    pub layers: Arc<[LayerText]>,
    /// The same as JSON, as a transcript holds it.
    pub(crate) text: MeasuredText,
    /// The settings that result from the merge.
    pub resolved: Arc<Resolved>,
    catalogue: Arc<Catalogue>,
}

impl Merged {
    /// Merges the layers, strongest first.
    pub fn new(layers: Vec<LayerText>, catalogue: &Arc<Catalogue>) -> Self {
        let text = MeasuredText::new(serde_json::to_string(&layers).unwrap_or_default());
        let resolved = Arc::new(merge_with(&layers, catalogue));
        Self { layers: layers.into(), text, resolved, catalogue: Arc::clone(catalogue) }
    }

    /// Returns whether their rules are few enough to be compiled where others wait.
    pub fn is_short(&self) -> bool {
        are_short(&self.layers)
    }

    /// Returns whether these layers were merged, with this very catalogue.
    pub fn matches<'a>(
        &self,
        layers: impl IntoIterator<Item = &'a LayerText>,
        catalogue: &Arc<Catalogue>,
    ) -> bool {
        Arc::ptr_eq(&self.catalogue, catalogue) && self.layers.iter().eq(layers)
    }
}

fn are_short(layers: &[LayerText]) -> bool {
    layers.iter().map(|it| it.text.len()).sum::<usize>() <= SHORT
}

/// What was merged with the same catalogue from the same layers is the same.
impl PartialEq for Merged {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.layers.iter(), &other.catalogue)
    }
}

impl Eq for Merged {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::Scope;

    #[test]
    fn only_equal_layers_with_the_same_catalogue_are_known() {
        let layer = |model: &str| LayerText {
            scope: Scope::User,
            source: "user.json".into(),
            text: format!(r#"{{"model":"{model}"}}"#),
        };
        let catalogue = Arc::new(Catalogue::built_in());
        let merged = Merged::new(vec![layer("m-1")], &catalogue);
        assert_eq!(&*merged.resolved.settings.model, "m-1");
        assert_eq!(*merged.resolved, merge_with(&[layer("m-1")], &catalogue));
        assert!(merged.matches(&[layer("m-1")], &catalogue));
        assert!(!merged.matches(&[layer("m-2")], &catalogue));
        assert!(!merged.matches(&[], &catalogue));
        assert!(!merged.matches(&[layer("m-1"), layer("m-1")], &catalogue));
        assert!(!merged.matches(&[layer("m-1")], &Arc::new(Catalogue::built_in())));
    }
}
