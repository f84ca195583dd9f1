//! Where the socket of a user's host is, and who may listen there.
//!
//! Its directory is open to the user alone, and each end looks at whose process the other one is. A host holds a lock for as
//! long as it lives, so that what an earlier one left behind can be told from what listens.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    process::geteuid,
};
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};

/// The directory of the socket, below that of the user's running programs or that of the configuration.
const DIRECTORY: &str = "ennead";

/// Why no host can listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// Another host has the socket.
    #[error("a host is listening at {0} already")]
    InUse(PathBuf),
    /// The directory is not the user's alone.
    #[error("{0} is open to others or belongs to another user; `chmod 700` it or remove it")]
    NotPrivate(PathBuf),
    /// The system does not let us.
    #[error("cannot listen at {path}")]
    Io {
        /// The path of the socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Returns where the socket of this user's host is: below `$XDG_RUNTIME_DIR`, or below the directory of the configuration
/// where there is none.
pub fn socket(configuration: &Path) -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let root = runtime.filter(|it| it.is_absolute());
    root.as_deref().unwrap_or(configuration).join(DIRECTORY).join("host.sock")
}

/// The socket of a host, which goes away with it.
#[derive(Debug)]
pub struct HostSocket {
    /// Accepts the connections of clients.
    pub listener: UnixListener,
    path: PathBuf,
    _lock: File,
}

impl HostSocket {
    /// Listens there; the directory is made where it is missing.
    ///
    /// # Errors
    ///
    /// [`PlaceError`].
    pub fn listen(path: &Path) -> Result<Self, PlaceError> {
        let failed = |source| PlaceError::Io { path: path.to_owned(), source };
        let directory = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let found = fs::symlink_metadata(directory).map_err(failed)?;
        let is_ours = found.is_dir() && found.uid() == geteuid().as_raw();
        if !is_ours || found.mode() & 0o077 != 0 {
            return Err(PlaceError::NotPrivate(directory.to_owned()));
        }
        let mut create = OpenOptions::new();
        let lock = create.create(true).truncate(false).write(true).mode(0o600);
        let lock = lock.open(path.with_extension("lock")).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(PlaceError::InUse(path.to_owned())),
            Err(error) => return Err(failed(error.into())),
        }
        // Nobody listens there, as the lock was free.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), _lock: lock })
    }

    /// Returns the next client that is of the same user; others are closed.
    ///
    /// # Errors
    ///
    /// Those of the system; with too many open files another client may be taken in later.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if is_of_this_user(&stream) {
                return Ok(stream);
            }
        }
    }
}

impl Drop for HostSocket {
    fn drop(&mut self) {
        // The lock is still held, so it is ours.
        let _gone = fs::remove_file(&self.path);
    }
}

/// Returns whether the process at the other end is of the same user.
pub(crate) fn is_of_this_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|it| it.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-3
    #[tokio::test]
    async fn one_host_listens_and_what_an_earlier_one_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ennead/host.sock");
        let first = HostSocket::listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        let second = HostSocket::listen(&path);
        assert!(matches!(second, Err(PlaceError::InUse(_))), "{second:?}");
        let (client, accepted) = tokio::join!(UnixStream::connect(&path), first.accept());
        assert!(is_of_this_user(&client.unwrap()) && is_of_this_user(&accepted.unwrap()));
        drop(first);
        assert!(!path.exists());
        // One that was killed leaves its socket.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _next = HostSocket::listen(&path).unwrap();
    }

    // REQ: SUR-3
    #[tokio::test]
    async fn directory_that_others_can_enter_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ennead/host.sock");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
        let refused = HostSocket::listen(&path);
        assert!(matches!(refused, Err(PlaceError::NotPrivate(_))), "{refused:?}");
        // A link to a directory of ours could be turned elsewhere.
        let linked = dir.path().join("linked");
        std::os::unix::fs::symlink(dir.path(), &linked).unwrap();
        let refused = HostSocket::listen(&linked.join("host.sock"));
        assert!(matches!(refused, Err(PlaceError::NotPrivate(_))), "{refused:?}");
    }
}
