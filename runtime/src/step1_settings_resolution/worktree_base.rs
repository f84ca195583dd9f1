//! Where the worktrees of sub-agents begin.

/// The commit at which the worktree of a sub-agent begins. Wire names as in settings files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorktreeBase {
    /// The remote's default branch as it was last fetched; the present commit where there is none.
    #[default]
    Fresh,
    /// The commit that `HEAD` names at present.
    Head,
}
