//! How many questions a run asked, and who answered them (PRM-10).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::AnsweredBy;
use crate::transcript::entry::RecordKind;

/// Questions about calls, those of sub-agents included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuestionCounts {
    /// Questions that were asked.
    pub asked: u64,
    /// Questions that were answered, by a person or by a program.
    pub answered: u64,
    /// Questions that expired without an answer.
    pub expired: u64,
    /// All that ended, by who or what ended them.
    pub by_handler: BTreeMap<AnsweredBy, u64>,
}

impl QuestionCounts {
    /// Counts a record, if it is about a question.
    #[doc(hidden)]
    pub fn note(&mut self, what: &RecordKind) {
        match what {
            RecordKind::Question { .. } => self.asked += 1,
            RecordKind::Approval { by: Some(by), .. } => {
                self.answered += u64::from(by.is_answer());
                self.expired += u64::from(*by == AnsweredBy::Expiry);
                *self.by_handler.entry(*by).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Adds the counts of a sub-agent.
    pub fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.expired += other.expired;
        for (by, n) in &other.by_handler {
            *self.by_handler.entry(*by).or_default() += n;
        }
    }
}
