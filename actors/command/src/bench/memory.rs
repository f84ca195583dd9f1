//! Resident memory of a session that does nothing.

use ennead::Options;
use serde::Serialize;

use super::{
    BenchError,
    stage::{ANSWERS, Stage, answered, close},
};

use crate::demo_load::resident_kib;

/// What idle sessions take.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// Number of sessions that were measured.
    pub n_sessions: u32,
    /// Resident memory of the process before any of them was opened, in kibibytes; 0 where the
    /// system does not say.
    pub before_kib: u64,
    /// When all were open, in kibibytes.
    pub open_kib: u64,
    /// When each had answered one prompt, in kibibytes.
    pub answered_kib: u64,
}

impl Memory {
    /// Returns the growth for each open session, in bytes.
    pub fn bytes_open(&self) -> u64 {
        self.grown(self.open_kib)
    }

    /// Returns the growth for each session that had answered one prompt, in bytes.
    pub fn bytes_answered(&self) -> u64 {
        self.grown(self.answered_kib)
    }

    fn grown(&self, kib: u64) -> u64 {
        kib.saturating_sub(self.before_kib) * 1024 / u64::from(self.n_sessions.max(1))
    }
}

pub(super) async fn measure(n_sessions: u32) -> Result<Memory, BenchError> {
    let stage = Stage::new(Options::default().placement).await?;
    // Touches all code and the pools of every scheduler thread.
    let first = stage.open(8).await?;
    for session in &first {
        answered(session, ANSWERS).await?;
    }
    close(&first).await;
    let before_kib = resident_kib();
    let sessions = stage.open(n_sessions).await?;
    let open_kib = resident_kib();
    for session in &sessions {
        answered(session, ANSWERS).await?;
    }
    let answered_kib = resident_kib();
    close(&sessions).await;
    stage.end().await;
    Ok(Memory { n_sessions, before_kib, open_kib, answered_kib })
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-3
    #[test]
    fn growth_is_divided_by_the_sessions_and_never_negative() {
        let memory = Memory { n_sessions: 4, before_kib: 100, open_kib: 104, answered_kib: 90 };
        assert_eq!((memory.bytes_open(), memory.bytes_answered()), (1024, 0));
    }
}
