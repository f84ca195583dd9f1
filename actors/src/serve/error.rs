//! Why a server cannot start.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a server cannot start, or why it ended.
///
/// ```
/// use ennead::serve::{Role, ServeError, TokenFile};
///
/// let directory = tempfile::tempdir()?;
/// let refused = TokenFile::new(directory.path()).add("laptop", "no/tenant", Role::User);
/// assert!(matches!(refused, Err(ServeError::Tokens { .. })));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The file of the tokens cannot be used.
    #[error("cannot use the tokens in {}: {cause}", path.display())]
    Tokens {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        cause: io::Error,
    },
    /// The directory of what the server keeps cannot be used.
    #[error("cannot use the directory {}: {cause}", path.display())]
    State {
        /// Path of the directory.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// Another process serves from the same directory.
    #[error("another server uses {}", path.display())]
    InUse {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The server refused what the program that hosts it asked for.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The operating system gives no random bytes.
    #[error("no random bytes: {0}")]
    Random(#[source] io::Error),
    /// An address that others can reach is served in the clear.
    #[error("{address} can be reached by others, so TLS is needed: give a certificate and its key")]
    NoTls {
        /// The address that was asked for.
        address: std::net::SocketAddr,
    },
    /// The file holds no token, so every request would be refused.
    #[error("there is no token in {}: add one", path.display())]
    NoTokens {
        /// Path of the file.
        path: PathBuf,
    },
}
