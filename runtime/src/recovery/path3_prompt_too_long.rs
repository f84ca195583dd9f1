//! Path 3: the prompt is too long for the model.
//!
//! Collapse, then reactive compaction, then results are cut that no shaper touches, then the end. The
//! end is final (MDL-5): neither a retry nor another model brings the chain back.

use super::{
    path2_reactive_compaction::{compact, shrink},
    table::{Action, Cap, Condition, RecoveryRow, row},
};
use crate::step5_model_call::FailureClass::{self, ContextOverflow, OutputOverflow};

/// Collapses per turn (MDL-5).
pub(crate) const MAX_COLLAPSES: u32 = 1;

/// Times that results are cut in a turn; half of the context goes each time.
pub(crate) const MAX_CUTS: u32 = 3;

const fn chain(class: FailureClass) -> [RecoveryRow; 5] {
    let cap = &[Cap::PerTurn(MAX_COLLAPSES)];
    let may_cut = &[Condition::ForTurn, Condition::ContextCanShrink];
    [
        row(class, &[Condition::ForTurn], Action::Collapse, cap),
        compact(class),
        row(class, may_cut, Action::Reduce, &[Cap::PerTurn(MAX_CUTS)]),
        shrink(class),
        row(class, &[], Action::Surface, &[]),
    ]
}

/// Where lowering the output ceiling did not help.
pub(super) const OUTPUT: &[RecoveryRow] = &chain(OutputOverflow);

/// Where the prompt alone is too long.
pub(super) const PROMPT: &[RecoveryRow] = &chain(ContextOverflow);
