//! The actors of one turn: the supervisor, which feeds `runtime`'s `Turn` and carries out its effects,
//! and the leaves that wait for it. Each is a child of the supervisor or of its session.
//!
//! By step: [`source_reader`] 1 and 3, [`shaper_stage`] 4, [`model_call`] 5, [`tool_dispatcher`] 6 and 8,
//! [`gate_worker`] and [`hook_runner`] 7, where what no rule decides is asked by way of
//! [`approval`]. Steps 2 and 9 wait for nothing but hooks. What each step makes of their results is
//! in `turn/stepN_*.rs` of `runtime`.

pub(crate) mod approval;
pub(crate) mod gate_worker;
pub(crate) mod hook_runner;
pub(crate) mod model_call;
pub(crate) mod shaper_stage;
pub(crate) mod source_reader;
pub(crate) mod tool_dispatcher;
pub(crate) mod turn_supervisor;
