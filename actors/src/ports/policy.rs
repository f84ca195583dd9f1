//! The handler that is asked first: code of the embedder that decides without a person.

use std::{fmt, future};

use ennead_runtime::{
    approval::{PolicyVerdict, Question},
    ports::BoxFuture,
};

/// Decides about calls that no rule decides, before a person or a program is asked. It may allow what a
/// person may allow, and is trusted as much.
pub trait PermissionPolicy: Send + Sync + fmt::Debug {
    /// Decides about one call, or passes. Dropped when the turn ends meanwhile.
    fn decide(&self, question: &Question) -> BoxFuture<'static, PolicyVerdict>;
}

/// A closure as a policy.
pub(crate) struct PolicyFn<F>(pub(crate) F);

impl<F: Fn(&Question) -> PolicyVerdict + Send + Sync> PermissionPolicy for PolicyFn<F> {
    fn decide(&self, question: &Question) -> BoxFuture<'static, PolicyVerdict> {
        Box::pin(future::ready((self.0)(question)))
    }
}

impl<F> fmt::Debug for PolicyFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PolicyFn")
    }
}
