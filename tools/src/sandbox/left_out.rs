//! What is there on other systems than Linux, and without the feature `sandbox`.

use super::Kernel;

/// Reports that nothing can be confined.
pub fn kernel() -> &'static Kernel {
    static NONE: std::sync::LazyLock<Kernel> = std::sync::LazyLock::new(|| Kernel {
        landlock: 0,
        seccomp: false,
        own_network: false,
        own_processes: false,
        lacks: Some("this build has no sandbox (Linux, feature `sandbox`)".to_owned()),
        levels: Vec::new(),
        escapes: super::escapes::table(false, false, false),
    });
    &NONE
}

/// Refuses always, so that nothing is started.
#[cfg(target_os = "linux")]
pub(crate) fn confine(_: &ennead_runtime::sandbox::SandboxPolicy) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The port of a proxy that there is not.
#[cfg(target_os = "linux")]
pub(crate) const PORT: u16 = 0;

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn listen() -> std::io::Result<std::net::TcpListener> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A proxy that there is not.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) enum Proxy {}

#[cfg(target_os = "linux")]
impl Proxy {
    /// Refuses as [`confine`] does.
    pub(crate) fn start(
        _: std::net::TcpListener,
        _: ennead_runtime::sandbox::HostRules,
    ) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Refuses as [`confine`] does.
#[cfg(target_os = "linux")]
pub(crate) fn prepare(policy: &ennead_runtime::sandbox::SandboxPolicy) -> std::io::Result<()> {
    confine(policy)
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
