//! What a turn supervisor receives. The leaves of a turn, its hook runner and its dispatcher name this
//! and nothing else of the supervisor.

use ennead_runtime::{hook::HandlerOutput, step::Step, turn::TurnInput};
use ractor::ActorId;

use super::next_turn::NextTurn;
use crate::turn::{
    approval::pending::SurfaceAnswer, gate_worker::CheckedCall, source_reader::Look,
};

/// What a turn supervisor receives.
pub(crate) enum TurnMsg {
    /// Walk the next turn of the run. Sent when the one before has left nothing at work.
    Begin(Box<NextTurn>),
    /// Do this step. Sent by the turn to itself where stop and kill are to come first, and by a breakpoint.
    Run(Step),
    /// Something the turn asked for has an answer.
    Input(TurnInput),
    /// A surface answers a question.
    Answer(Box<SurfaceAnswer>),
    /// The time of the question that was raised as this one is over.
    Expired(u64),
    /// The settings files were looked at.
    Settings(Box<Look>),
    /// The inputs of calls were checked against their schemas.
    InputsChecked(Vec<CheckedCall>),
    /// Handlers of a firing have ended.
    Hooks(u32, Vec<HandlerOutput>),
    /// The handlers of a firing could not be run, for this reason.
    HooksLost(u32, &'static str),
    /// The hook runner has crashed, and whatever it ran for this turn with it.
    HookRunnerGone,
    /// A child has ended. Queued after the messages that it sent.
    ChildGone(ActorId),
}
