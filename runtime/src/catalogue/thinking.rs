//! How a model takes thinking, effort and sampling, as data that a wire format reads.

use serde::{Deserialize, Serialize};

/// What a model takes. The default is a model that takes none of it: nothing about thinking or
/// effort is sent, and sampling is free.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ThinkingSupport {
    /// Whether the model takes `{"type":"adaptive"}`.
    pub adaptive: bool,
    /// Whether the model takes `{"type":"enabled","budget_tokens":…}`.
    pub manual: bool,
    /// Thinks when the request says nothing about it.
    pub on_by_default: bool,
    /// Whether it takes `{"type":"disabled"}`.
    pub disabling: Disabling,
    /// The levels of effort that it takes, lowest first; empty: the parameter is not sent.
    pub efforts: Vec<Effort>,
    /// What it says of `temperature`, `top_p` and `top_k`.
    pub sampling: Sampling,
    /// What comes back of its thinking when the request does not say.
    pub display: ThinkingDisplay,
}

/// Whether thinking can be switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Disabling {
    /// Thinking can be disabled at any effort.
    #[default]
    Always,
    /// Only at effort `high` or below.
    UpToHighEffort,
    /// Never: it is a 400.
    Never,
}

/// A level of effort, lowest first. Wire names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// The lowest effort, `low` on the wire.
    Low,
    /// Medium effort, `medium` on the wire.
    Medium,
    /// `high`: the same as none given.
    High,
    /// More than high effort, `xhigh` on the wire.
    Xhigh,
    /// The highest effort, `max` on the wire.
    Max,
}

/// What a model says of sampling parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sampling {
    /// The model takes sampling parameters.
    #[default]
    Free,
    /// Takes them only in requests without thinking.
    WithoutThinking,
    /// Refuses them with a 400.
    Refused,
}

/// What comes back of thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingDisplay {
    /// The answer holds a summary of the reasoning.
    #[default]
    Summarized,
    /// The answer holds the signature of the reasoning without its text.
    Omitted,
}

impl ThinkingSupport {
    /// Returns whether the model supports neither thinking nor effort.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the highest level that the model takes and that is not above `wanted`; `None` when it takes no effort,
    /// or none that low.
    pub(crate) fn effort(&self, wanted: Effort) -> Option<Effort> {
        self.efforts.iter().copied().filter(|it| *it <= wanted).max()
    }

    /// Returns whether `{"type":"disabled"}` is taken at this effort; `None` is the effort that the model has by
    /// itself.
    pub(crate) fn may_disable(&self, effort: Option<Effort>) -> bool {
        match self.disabling {
            Disabling::Always => true,
            Disabling::UpToHighEffort => effort.is_none_or(|it| it <= Effort::High),
            Disabling::Never => false,
        }
    }
}

impl Effort {
    /// Returns the word on the wire.
    pub(crate) fn as_wire(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }
}
