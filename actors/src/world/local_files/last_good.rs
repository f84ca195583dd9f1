//! What represents a settings file that cannot be read as settings.
//!
//! Its deny rules and hooks are unknown, so nothing may pass that they could have stopped. Where the
//! file could be read before, its content of then goes on to hold. Where it could not, the file counts for
//! nothing, and every call is asked about: who runs alone is denied it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead_runtime::{
    permission::Scope,
    step1_settings_resolution::{LayerText, layer::unreadable},
};

use ennead_tools::locked::Locked as _;

/// Bytes of all texts that are kept; above it they are forgotten, and a file that cannot be read
/// counts as one that never could.
const MAX_KEPT: usize = 16 << 20;

/// Asks about every call, whatever allows it.
const ASK_ABOUT_ALL: &str = r#"{"permissions":{"ask":["*"]}}"#;

/// The last text of each settings file that could be read as settings.
#[derive(Debug, Default)]
pub(super) struct LastGood(Mutex<BTreeMap<PathBuf, Arc<str>>>);

/// What a settings file says now.
pub(super) struct FileLayers {
    pub(super) layers: Vec<LayerText>,
    /// Why its earlier content goes on to hold, if it does.
    pub(super) broken: Option<Arc<str>>,
}

impl LastGood {
    /// Returns the layers of a file with this text. `is_known` is whether the session looked at the files before.
    pub(super) fn layers_of(
        &self,
        scope: Scope,
        path: &Path,
        text: String,
        is_known: bool,
    ) -> FileLayers {
        let source = path.display().to_string();
        let layer = |source: &str, text| LayerText::new(scope, source, text);
        let Some(why) = unreadable(&text) else {
            self.keep(path, &text);
            return FileLayers { layers: vec![layer(&source, text)], broken: None };
        };
        if let Some(good) = self.of(path).filter(|_| is_known) {
            let what = format!("{source}: {why}; what it said before goes on to hold");
            return FileLayers {
                layers: vec![layer(&source, good.to_string())],
                broken: Some(what.into()),
            };
        }
        // Its own text is there as well, so that the alert about the settings shows what is wrong with it.
        let closed = layer(&format!("{source} (cannot be read)"), ASK_ABOUT_ALL.to_owned());
        FileLayers { layers: vec![layer(&source, text), closed], broken: None }
    }

    fn of(&self, path: &Path) -> Option<Arc<str>> {
        self.0.locked().get(path).cloned()
    }

    fn keep(&self, path: &Path, text: &str) {
        let mut kept = self.0.locked();
        kept.remove(path);
        let bytes: usize = kept.values().map(|it| it.len()).sum();
        if MAX_KEPT < bytes.saturating_add(text.len()) {
            kept.clear();
        }
        kept.insert(path.to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"permissions":{"deny":["Read(secret)"]}}"#;
    const BAD: &str = r#"{"permissions":{"deny":["Read(secret)"],}}"#;

    fn texts(file_layers: &FileLayers) -> Vec<&str> {
        file_layers.layers.iter().map(|it| it.text.as_str()).collect()
    }

    // REQ: PRM-2, TRN-4
    #[test]
    fn broken_file_closes_a_new_session_and_leaves_an_open_one_what_held() {
        let (files, path) = (LastGood::default(), Path::new("/w/settings.json"));
        let file_layers =
            |text: &str, is_known| files.layers_of(Scope::Project, path, text.into(), is_known);
        assert_eq!(texts(&file_layers(BAD, true)), [BAD, ASK_ABOUT_ALL], "it never could be read");
        assert_eq!(texts(&file_layers(GOOD, false)), [GOOD]);
        assert_eq!(texts(&file_layers(BAD, false)), [BAD, ASK_ABOUT_ALL]);
        let open = file_layers(BAD, true);
        assert_eq!(texts(&open), [GOOD]);
        let why = open.broken.unwrap();
        assert!(why.starts_with("/w/settings.json: ") && why.contains("line 1 column 41"), "{why}");
        assert_eq!(file_layers(GOOD, true).broken, None);
    }

    #[test]
    fn texts_that_are_kept_are_bounded() {
        let files = LastGood::default();
        let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(MAX_KEPT / 2));
        let keep = |name: &str| {
            drop(files.layers_of(Scope::User, Path::new(name), long.clone(), false));
        };
        keep("/a");
        keep("/b");
        assert!(files.of(Path::new("/a")).is_none() && files.of(Path::new("/b")).is_some());
        keep("/b");
        assert!(files.of(Path::new("/b")).is_some(), "a file takes its own place");
    }
}
