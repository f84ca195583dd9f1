//! Shapers: the corpus, each stage, properties.

mod after_summary;
mod cases;
mod clearing;
mod properties;
pub(super) mod stages;
