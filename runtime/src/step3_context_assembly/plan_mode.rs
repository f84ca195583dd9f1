//! What the model is shown of the mode `plan`: what it may not do, and where it writes its plan.

use super::{appended::DuePart, reminder};
use crate::digest::Digest;

/// Name of the part.
pub(crate) const NAME: &str = "plan";

/// The part while the mode holds. `file` is the absolute path of the plan; `asks` is whether there is a tool
/// that asks for approval of it.
pub(crate) fn begun(file: &str, asks: bool, day: &str) -> DuePart {
    let mut text = format!(
        "Plan mode holds as of {day}. Change nothing: no file, no setting, nothing outside. Read and search \
         until you know what is to be done. The one file that you may write is your plan, {file}; it may hold \
         an earlier plan, so look first. Write there with the file tools what you would change, in which \
         order, and how it would be checked. "
    );
    text.push_str(if asks {
        "When the plan is whole, call ExitPlanMode: it shows the plan to the person and asks for approval."
    } else {
        "When the plan is whole, say so and end your turn."
    });
    let state = Digest::of(text.replace(day, "").as_bytes());
    DuePart { name: NAME.into(), source: 1, state, text: reminder(&text) }
}

/// The part when the mode does not hold any more.
pub(crate) fn end_notice(day: &str) -> DuePart {
    let text = format!("Plan mode is over as of {day}. You may change what you are permitted to.");
    DuePart { name: NAME.into(), source: 1, state: Digest::default(), text: reminder(&text) }
}
