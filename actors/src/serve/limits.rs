//! What tenants may use, and what all of them together.

use ennead_runtime::ids::TenantId;

use super::{
    Server,
    hosted::Hosted,
    problem::{Code, Problem},
};

/// Sessions of one tenant.
const MAX_SESSIONS: usize = 10_000;

/// Sessions of a server.
const MAX_ALL_SESSIONS: usize = 200_000;

/// The limits of a server.
#[derive(Debug, Default)]
pub(crate) struct Limits {}

impl Limits {
    /// Refuses a session too many.
    pub(crate) fn admit_session(&self, server: &Server, tenant: &TenantId) -> Result<(), Problem> {
        let (of_tenant, all) = server.0.book.count(tenant);
        let wait = std::time::Duration::from_secs(60);
        if MAX_SESSIONS <= of_tenant {
            let detail = format!("the tenant has {MAX_SESSIONS} sessions; delete some");
            return Err(Problem::new(Code::Sessions, detail).after(wait));
        }
        if MAX_ALL_SESSIONS <= all {
            return Err(Problem::new(Code::Sessions, "the server is full").after(wait));
        }
        Ok(())
    }

    /// Refuses a run that the tenant has nothing left for.
    pub(crate) fn admit_run(&self, _hosted: &Hosted) -> Result<(), Problem> {
        Ok(())
    }
}
