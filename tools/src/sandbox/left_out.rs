//! What is there on other systems than Linux, and without the feature `sandbox`.

#[cfg(target_os = "linux")]
use ennead_runtime::sandbox::{HostRules, SandboxPolicy};

#[cfg(target_os = "linux")]
use super::Confinement;
use super::{Bubblewrap, Kernel};

/// Reports that nothing can be confined.
pub fn kernel() -> &'static Kernel {
    static NONE: std::sync::LazyLock<Kernel> = std::sync::LazyLock::new(|| Kernel {
        confinement: None,
        landlock: 0,
        seccomp: false,
        own_network: false,
        own_processes: false,
        lacks: Some(WHY.to_owned()),
        levels: Vec::new(),
        escapes: super::escapes::table(None, false, false),
    });
    &NONE
}

/// Why there is none.
const WHY: &str = "this build has no sandbox (Linux, feature `sandbox`)";

/// Reports that it is not used.
pub fn bubblewrap() -> &'static Bubblewrap {
    static NONE: std::sync::LazyLock<Bubblewrap> =
        std::sync::LazyLock::new(|| Bubblewrap { path: None, lacks: Some(WHY.to_owned()) });
    &NONE
}

/// Refuses always, so that nothing is started.
#[cfg(target_os = "linux")]
pub(crate) fn confine(_: &SandboxPolicy, _: Confinement) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The port of a proxy that there is not.
#[cfg(target_os = "linux")]
pub(crate) const PORT: u16 = 0;

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn listen(_: Confinement) -> std::io::Result<std::net::TcpListener> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A proxy that there is not.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) enum Proxy {}

#[cfg(target_os = "linux")]
impl Proxy {
    /// Refuses as [`confine`] does.
    pub(crate) fn start(_: std::net::TcpListener, _: HostRules) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn prepare(_: &SandboxPolicy) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn separate() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn begin() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A `bwrap` that is not started.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Wrapped {
    /// Nothing makes one without the feature.
    pub(crate) command: std::process::Command,
}

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn wrap(_: &SandboxPolicy) -> std::io::Result<Wrapped> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn begin_inside() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
