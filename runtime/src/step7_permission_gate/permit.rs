//! The permit: proof that the gate let a call through.
//!
//! A tool cannot be run without one, and only this folder can make one:
//!
//! ```compile_fail
//! use ennead_runtime::{step7_permission_gate::Permit, tool::ToolCall};
//!
//! fn forge(call: ToolCall) -> Permit {
//!     Permit { call, digest: Default::default(), path: None, hidden: Default::default() }
//! }
//! ```
//!
//! ```compile_fail
//! use ennead_runtime::{step7_permission_gate::Permit, tool::ToolCall};
//!
//! fn forge(call: ToolCall) -> Permit {
//!     Permit::issue(call, None, Default::default())
//! }
//! ```

use std::sync::Arc;

use super::ResolvedPath;
use crate::{digest::Digest, tool::ToolCall};

/// Allows one call to run, once. Carries the digest of exactly the action that was decided about
/// and the paths that were looked at.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    call: ToolCall,
    digest: Digest,
    path: Option<ResolvedPath>,
    hidden: Arc<[String]>,
}

/// The permit is for another action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the permit is for action {permitted}, not for {found}")]
#[non_exhaustive]
pub struct PermitError {
    /// What was decided about.
    pub permitted: Digest,
    /// What was to be run.
    pub found: Digest,
}

impl Permit {
    /// Issues a permit. Only the gate calls this.
    pub(super) fn issue(call: ToolCall, path: Option<ResolvedPath>, hidden: Arc<[String]>) -> Self {
        let digest = call.digest();
        Self { call, digest, path, hidden }
    }

    /// Returns the call that may run.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Returns the digest that binds it to that call: [`ToolCall::digest`].
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the path that was decided about, for tools that declare one. A tool opens this file and no other: it
    /// compares what it opened with `real`.
    pub fn path(&self) -> Option<&ResolvedPath> {
        self.path.as_ref()
    }

    /// Returns gitignore patterns of paths that a `Read` deny rule hides, and of transcripts; each anchored by an
    /// absolute directory in front (`//abs/dir/pattern`). Searching tools leave them out.
    pub fn hidden(&self) -> &Arc<[String]> {
        &self.hidden
    }

    /// Checks whether this is the permit for that call.
    ///
    /// # Errors
    ///
    /// [`PermitError`] when the digests differ.
    pub fn check(&self, call: &ToolCall) -> Result<(), PermitError> {
        let found = call.digest();
        if found == self.digest && call == &self.call {
            Ok(())
        } else {
            Err(PermitError { permitted: self.digest, found })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: PRM-1
    #[test]
    fn permit_is_for_one_action_only() {
        let call = ToolCall { id: "t1".into(), name: "Bash".into(), input: "{}".into() };
        let permit = Permit::issue(call.clone(), None, Arc::default());
        assert_eq!(permit.check(&call), Ok(()));
        let other = ToolCall { input: r#"{"command":"rm"}"#.into(), ..call.clone() };
        let error = PermitError { permitted: call.digest(), found: other.digest() };
        assert_eq!(permit.check(&other), Err(error));
    }
}
