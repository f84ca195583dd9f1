//! The actors of one turn: the supervisor, which feeds `runtime`'s `Turn` and carries out its effects,
//! and the leaves that wait for it. Each is a child of the supervisor or of its session.

pub(crate) mod gate_worker;
pub(crate) mod hook_runner;
pub(crate) mod model_call;
pub(crate) mod shaper_stage;
pub(crate) mod source_reader;
pub(crate) mod tool_dispatcher;
pub(crate) mod turn_supervisor;
