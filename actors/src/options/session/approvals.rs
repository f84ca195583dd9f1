//! Who answers questions about calls.

use std::sync::Arc;

use ennead_runtime::approval::{PolicyVerdict, Question};

use super::SessionOptions;
use crate::ports::{
    approver::Approver,
    policy::{PermissionPolicy, PolicyFn},
};

impl SessionOptions {
    /// Sets the approver, which answers questions about permissions.
    #[must_use]
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        Self { approver: Some(approver), ..self }
    }

    /// Sets the policy that decides about calls before a question is asked.
    #[must_use]
    pub fn policy(self, policy: Arc<dyn PermissionPolicy>) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// Sets a closure as the policy. It is called on the thread of the session and must not wait.
    #[must_use]
    pub fn policy_fn(
        self,
        policy: impl Fn(&Question) -> PolicyVerdict + Send + Sync + 'static,
    ) -> Self {
        self.policy(Arc::new(PolicyFn(policy)))
    }

    /// Sets whether questions can be answered through handles.
    #[must_use]
    pub fn answers_by_handle(self, answers_by_handle: bool) -> Self {
        Self { answers_by_handle, ..self }
    }

    /// Sets whether the session may be put into the mode `bypassPermissions` while it runs.
    #[must_use]
    pub fn may_bypass(self, may_bypass: bool) -> Self {
        Self { may_bypass, ..self }
    }
}
