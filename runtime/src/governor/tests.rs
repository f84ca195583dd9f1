//! The governor, input by input. Built under `#[cfg(test)]` only.

mod properties;
mod scenarios;
