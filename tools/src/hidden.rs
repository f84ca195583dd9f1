//! Paths that searches leave out, because a `Read` deny rule hides them.
//!
//! The gate's own matcher is used, so that a search and a rule mean the same by a pattern.

use std::path::Path;

use ennead_runtime::step7_permission_gate::path_rule::PathPattern;

/// The hidden paths of a permit; `None` if there are none.
#[derive(Debug)]
pub(crate) struct Hidden(Option<PathPattern>);

impl Hidden {
    /// Reads the patterns of a permit.
    pub(crate) fn new(patterns: &[String]) -> Self {
        Self((!patterns.is_empty()).then(|| PathPattern::hidden(patterns)))
    }

    /// Returns whether a pattern names this absolute path or a directory that it lies in.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|patterns| patterns.matches(&path.to_string_lossy()))
    }

    /// Returns whether there is nothing to hide.
    #[cfg(feature = "search")]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_anchored_at_their_directory() {
        let patterns = ["//w/**/.env", "//w/secret", "//w/a*/config.json"].map(String::from);
        let hidden = Hidden::new(&patterns);
        let cases = [
            ("/w/.env", true),
            ("/w/deep/down/.ENV", true),
            ("/x/.env", false),
            ("/w/secret", true),
            ("/w/secret/key", true),
            ("/w/secrets", false),
            ("/w/abc/config.json", true),
            ("/w/b/config.json", false),
            ("/", false),
        ];
        for (path, expected) in cases {
            assert_eq!(hidden.hides(Path::new(path)), expected, "{path}");
        }
        assert!(Hidden::new(&[]).is_empty());
    }
}
