//! Where a command runs, and what counts as the workspace.

use std::sync::Arc;

use super::followed::Follower;
use crate::step7_permission_gate::path_rule::lies_in;

/// Where a command runs and what counts as the workspace. All paths are absolute.
#[derive(Clone, Debug)]
pub(crate) struct CommandContext {
    /// The directory that it starts in.
    pub(crate) cwd: Arc<str>,
    /// The home directory of the user.
    pub(crate) home: Arc<str>,
    /// The directories of the workspace, as written and as they really are.
    pub(crate) workspace: Arc<[String]>,
    /// Where links lead that are there.
    pub(crate) links: Follower,
}

impl CommandContext {
    /// Returns where a path leads besides what its text shows.
    pub(crate) fn places(&self, path: &str) -> Arc<[String]> {
        self.links.places(path, &self.workspace)
    }

    /// Returns where a pattern of paths leads besides what its text shows.
    pub(crate) fn places_of_pattern(&self, pattern: &str) -> Arc<[String]> {
        self.links.places_of_pattern(pattern, &self.workspace)
    }

    /// Returns whether a path or pattern leads to where some process is, or through what it has open.
    pub(crate) fn is_of_process(&self, path: &str) -> bool {
        self.links.is_of_process(path)
    }

    /// Returns whether a path is in the workspace.
    pub(crate) fn hold(&self, path: &str) -> bool {
        self.workspace.iter().any(|it| lies_in(path, it))
    }
}
