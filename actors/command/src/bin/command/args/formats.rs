//! The values of flags that are one of a few words.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Durability {
    /// Never: lines survive the end of the process, not that of the machine.
    Process,
    /// At the end of each turn and before calls with side effects.
    Turn,
    /// After every line.
    Entry,
}
