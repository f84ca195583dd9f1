//! Everything that a turn waits for, and what a transcript holds of a turn that was ended there.

use ennead::{SessionHandle, data::Step};

use super::{barrier::Barrier, host::Host, record};

/// A prompt, the step that it comes to, and the barrier at which it waits there.
pub(crate) type Wait = (&'static str, Step, fn(&Host) -> &Barrier);

pub(crate) const WAITS: [Wait; 7] = [
    ("again", Step::SettingsResolution, |it| &it.files.settings),
    ("again", Step::ContextAssembly, |it| &it.files.sources),
    ("held again", Step::ModelCall, |it| &it.model.answer),
    ("held hello", Step::ModelCall, |it| &it.model.stream),
    ("use asked", Step::PermissionGate, |it| &it.approver.barrier),
    ("use echo wait", Step::ToolExecution, |it| &it.workshop.wait),
    ("delegate use wait", Step::ToolExecution, |it| &it.workshop.wait),
];

/// The only run ended for this reason, in this step of its turn.
#[track_caller]
pub(crate) fn check_early_end(session: &SessionHandle, reason: &str, (text, step, _): Wait) {
    assert_eq!(record::run_ends(session.transcript()), [reason], "{text}");
    let ends = record::early_ends(session.transcript());
    assert_eq!(ends, [(reason.to_owned(), Some(step.number()))], "{text}");
}
