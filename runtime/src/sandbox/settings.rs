//! The settings of the sandbox, as all layers together have them.

use super::HostRules;

/// Whether a confined command reaches a network.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxNetwork {
    /// No socket can be made.
    #[default]
    Off,
    /// Sockets of the internet protocols can be made; those of the machine (`AF_UNIX`) cannot.
    Open,
    /// The same in a network of its own, from which only listed hosts are reached, through a proxy.
    Listed,
}

/// The settings under `sandbox`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Whether commands are confined.
    pub enabled: bool,
    /// Whether a session is refused where the kernel cannot confine.
    pub required: bool,
    /// Whether a confined command that no rule, hook or protected path speaks of runs unasked.
    pub auto_allow: bool,
    /// Whether a confined command reaches a network.
    pub network: SandboxNetwork,
    /// Which hosts, where only some are.
    pub hosts: HostRules,
    /// Commands that are not confined, and judged as if there were no sandbox. Each is a text of
    /// words; ` *` at the end stands for any further ones.
    pub excluded: Vec<String>,
    /// Paths that may be written in addition to the workspace and the temporary directory.
    pub allow_write: Vec<String>,
    /// Paths that may be read though they are among those that by default are not.
    pub allow_read: Vec<String>,
    /// Paths that may not be read, in addition to those that by default are not.
    pub deny_read: Vec<String>,
    /// The home directory of confined commands; `None`: the user's.
    pub home: Option<String>,
    /// Their temporary directory; `None`: that of the process.
    pub tmpdir: Option<String>,
    /// Keys that are set and ask for something that is not supported, in the order of the names.
    pub unsupported: Vec<String>,
    /// Whether a call may ask for its command to run outside the sandbox. It is the last field: see
    /// `SandboxSettings::decides`.
    pub allow_unsandboxed: bool,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            required: false,
            auto_allow: true,
            network: SandboxNetwork::Off,
            hosts: HostRules::default(),
            excluded: Vec::new(),
            allow_write: Vec::new(),
            allow_read: Vec::new(),
            deny_read: Vec::new(),
            home: None,
            tmpdir: None,
            unsupported: Vec::new(),
            allow_unsandboxed: true,
        }
    }
}

impl SandboxSettings {
    /// Returns all that decisions depend on, as text, for digests. Those of recorded questions are of a time when there
    /// was not the last field, so its default is left out.
    pub(crate) fn decides(&self) -> String {
        let text = format!("{self:?}");
        match text.strip_suffix(", allow_unsandboxed: true }") {
            Some(before) => format!("{before} }}"),
            None => text,
        }
    }
}
