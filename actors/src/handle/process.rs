//! What a program calls at the start of its `main`, before there are threads.

use std::{io, process::ExitCode};

use ennead_tools::withdrawn_keys;

use super::ennead::Ennead;
use crate::world::environment::Environment;

impl Ennead {
    /// Serves as the helper of another process, if this one was started as that, and returns its exit code.
    ///
    /// Shell commands, hooks and MCP servers are started by way of a helper, which is the same program, started
    /// again. It confines them to the sandbox, and ends what they leave behind when the call ends or the host is
    /// killed. Without this call a command that is to be confined fails, and processes that leave their session
    /// are found by a mark in their environment while the host lives. Only Linux has the helper.
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use ennead::{Ennead, Environment};
    ///
    /// fn main() -> ExitCode {
    ///     if let Some(code) = Ennead::serve_helper() {
    ///         return code;
    ///     }
    ///     if let Err(error) = Environment::withdraw_keys() {
    ///         eprintln!("commands can read the keys of this process: {error}");
    ///     }
    ///     // The program: a tokio runtime, `Ennead::start`, sessions.
    ///     ExitCode::SUCCESS
    /// }
    /// ```
    pub fn serve_helper() -> Option<ExitCode> {
        #[cfg(target_os = "linux")]
        return ennead_tools::process_tree::reaper::serve();
        #[cfg(not(target_os = "linux"))]
        None
    }
}

impl Environment {
    /// Takes the keys of providers out of the environment of this process, where every command of its user
    /// could read them, and hides its memory from them. `Endpoint::from_env` still finds the keys.
    ///
    /// If there is something to take out, the program starts anew in this process, with the same number,
    /// arguments, files and terminal. So it is called first in `main`, after [`Ennead::serve_helper`] alone. On
    /// other systems than Linux it does nothing.
    ///
    /// # Errors
    ///
    /// When the system does not let the program start anew, or does not hide its memory; the program can go on.
    pub fn withdraw_keys() -> io::Result<()> {
        withdrawn_keys::withdraw()?;
        withdrawn_keys::hide_memory()
    }
}
