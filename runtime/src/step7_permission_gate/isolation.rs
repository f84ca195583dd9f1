//! A worktree and the checkout that it stands for: who works in the one leaves the other alone.
//!
//! Holds in every mode and whatever rules say. Commands are read with suspicion and not run, as
//! elsewhere in the gate: the directories that they may be in are followed from `cd` to `cd`, and
//! where they cannot be followed, or git is pointed to another repository by something that the
//! shell has yet to work out, the command is refused.

use super::{
    ResolvedPath,
    path_rule::lies_in,
    setup::Places,
    shell_command::{MAX_LEN, ShellCommand},
};
use crate::tool::Access;

mod git;
mod shell_text;
mod walk;
mod written;

/// Why a command is refused.
const THERE: &str = "it works in the checkout that this worktree stands apart from";
const UNTRACED: &str = "nobody can tell in which directory or repository it works, and this agent \
    is to stay in its worktree";

/// Where somebody works that is to leave the checkout around it alone. Each as written and as it
/// really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The top directories of the worktree.
    pub worktree: Vec<String>,
    /// Those of the checkout.
    pub checkout: Vec<String>,
}

impl Isolation {
    /// Why a call is refused, if it would reach the checkout.
    pub(super) fn refuses(
        &self,
        access: &Access,
        path: Option<&ResolvedPath>,
        command: Option<&ShellCommand>,
        places: &Places,
    ) -> Option<&'static str> {
        let writes = matches!(access, Access::WritePath { .. });
        let outside = |it: &ResolvedPath| {
            let all = [&it.lexical, &it.real].into_iter().chain(&it.passed);
            all.into_iter().any(|it| self.is_in_checkout(it))
        };
        if writes && path.is_some_and(outside) {
            return Some("it changes a file of the checkout that this worktree stands apart from");
        }
        let raw = command?.raw();
        if raw.len() > MAX_LEN {
            return Some(UNTRACED);
        }
        walk::walk(raw, self, places).err()
    }

    fn is_in_checkout(&self, path: &str) -> bool {
        let inside = |all: &[String]| all.iter().any(|it| lies_in(path, it));
        inside(&self.checkout) && !inside(&self.worktree)
    }
}

#[cfg(test)]
mod tests;
