//! Whole turns, played against a world of scripts, and read as logs.

pub(crate) mod world;

mod in_flight;
mod plan_mode;
pub(crate) mod play;
mod provider_cache;
pub(crate) mod script;
mod trace;

mod appending;
mod approvals;
mod caching;
mod cold_cache;
mod compacting;
mod cut_frames;
mod dispatch;
mod ends;
mod estimates;
mod gate;
mod hook_events;
mod hooks;
mod long_instructions;
mod long_session;
mod modes;
mod order;
mod origins;
mod overflow;
pub(crate) mod random;
mod recovery;
mod reopening;
mod resuming;
mod settings;
mod shaping;
mod steps;
mod syntheses;
mod worst_case;
