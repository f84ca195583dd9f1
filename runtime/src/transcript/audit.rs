//! Checks a transcript from its conversation lines; what the records claim is not believed.
//!
//! First the chain: every line of ours whole, in its place, unchanged. Then the sequence: runs, turns
//! and steps in order; for every tool use one decision, one result, in order; the stop reason as
//! the stop check gives it on the conversation so far. The first thing that is wrong is named.
//!
//! Finds accidents and careless edits. The one that can write the file can make a new chain.

mod calls;
mod chain;
mod forked;
mod run;
mod sequence;
mod turn;
mod violation;

pub use forked::Forked;
pub use violation::{Violation, ViolationKind};

use crate::{
    digest::Digest,
    transcript::{
        entry::{Record, SidechainHead},
        lines::FileLines,
        seal::Head,
    },
};

/// A further check of one record. The error says what is wrong.
pub type RecordCheck<'a> = dyn Fn(&Record) -> Result<(), String> + 'a;

/// What lies next to a transcript and is needed to check it.
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct Evidence<'a> {
    /// A stored text by its digest.
    pub stored: &'a dyn Fn(Digest) -> Option<String>,
    /// Whether the file of a sub-agent ends with this hash, or did after one of its runs. `None` where the file is not
    /// at hand: then it is not compared.
    pub sidechain: &'a dyn Fn(&SidechainHead) -> Option<bool>,
    /// Where the transcript ended when it was last closed in order, if that is known. Without it
    /// it cannot be seen that whole lines are gone after the end of a run.
    pub checkpoint: Option<Head>,
    /// The token limit of a run, read from what was fixed when the session was opened.
    pub run_budget: &'a dyn Fn(&str) -> Option<u64>,
    /// Sees every record in order; for checks that need more than the transcript, such as whether a
    /// request compiled anew has the recorded digest. An error is a violation at that line.
    pub also: &'a RecordCheck<'a>,
}

/// What was found in a transcript that is in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The end of the chain.
    pub head: Head,
    /// Number of runs in the transcript.
    pub runs: u64,
    /// Number of turns in the transcript.
    pub turns: u64,
    /// Number of tool uses in the transcript.
    pub calls: u64,
    /// Lines of other programs, with their `type`; allowed.
    pub foreign: Vec<(u64, String)>,
    /// Lines in front of all others that another program copied from another session when it made
    /// this one; allowed, and not checked.
    pub forked: Forked,
}

/// Checks a whole file.
///
/// # Errors
///
/// The first [`Violation`].
pub fn verify(bytes: &[u8], evidence: &Evidence<'_>) -> Result<Verified, Violation> {
    verify_lines(&FileLines::read(bytes), evidence)
}

/// Checks a file that was read before, as [`verify`] does.
///
/// # Errors
///
/// The first [`Violation`].
pub fn verify_lines(file: &FileLines<'_>, evidence: &Evidence<'_>) -> Result<Verified, Violation> {
    let mut verified = Verified::default();
    let (before, lines) = chain::check(file, evidence.checkpoint, &mut verified)?;
    sequence::check(before, lines, evidence, &mut verified)?;
    Ok(verified)
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
