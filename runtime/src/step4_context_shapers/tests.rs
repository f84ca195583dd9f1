//! Shapers: the corpus, each stage, properties.

mod cases;
mod properties;
mod stages;
