//! Who may use the server: tokens, kept as hashes in a file.
//!
//! A token is 32 random bytes, so its hash needs neither salt nor work factor: it cannot be guessed.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Mutex,
    time::SystemTime,
};

use ennead_runtime::ids::TenantId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ServeError, random};
use crate::groundwork::files;
use ennead_tools::locked::Locked as _;

/// What every token begins with, so that it is known where it leaks.
const PREFIX: &str = "ennead_";

/// Bytes that the file may have; about 4,000 tokens.
const MAX_FILE: u64 = 1024 * 1024;

/// What a token may do.
///
/// ```
/// use ennead::serve::Role;
///
/// assert_eq!("viewer".parse(), Ok(Role::Viewer));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Looks at the sessions of its tenant.
    Viewer,
    /// Works with the sessions of its tenant, and answers their questions.
    User,
    /// Works with those of all tenants, and reads the metrics of the server.
    Admin,
}

impl Role {
    /// Returns the name, as in the file and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "viewer" => Ok(Self::Viewer),
            "user" => Ok(Self::User),
            "admin" => Ok(Self::Admin),
            other => Err(format!("there is no role `{other}`: it is viewer, user or admin")),
        }
    }
}

/// A token, as the file keeps it.
///
/// ```
/// use ennead::serve::{Role, TokenFile};
///
/// let directory = tempfile::tempdir()?;
/// let file = TokenFile::new(directory.path().join("tokens.json"));
/// file.add("laptop", "acme", Role::Viewer)?;
/// let entries = file.list()?;
/// assert_eq!(entries[0].role.name(), "viewer");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenEntry {
    /// Names the token for people; of one name there is one.
    pub name: String,
    /// The tenant that the bearer works for.
    pub tenant: TenantId,
    /// What the bearer may do.
    pub role: Role,
    /// BLAKE3 of the token, in hexadecimal.
    hash: String,
}

/// The file of the tokens of a server.
///
/// ```
/// use ennead::serve::{Role, TokenFile};
///
/// let directory = tempfile::tempdir()?;
/// let file = TokenFile::new(directory.path().join("tokens.json"));
/// let token = file.add("laptop", "acme", Role::User)?;
/// assert!(token.starts_with("ennead_"));
/// let entry = &file.list()?[0];
/// assert_eq!((entry.name.as_str(), entry.tenant.as_str()), ("laptop", "acme"));
/// assert!(file.remove("laptop")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    read: Mutex<ReadTokens>,
}

/// The file as it was read last.
#[derive(Debug, Default)]
struct ReadTokens {
    /// When the file was written, and its length.
    stamp: Option<(SystemTime, u64)>,
    by_hash: BTreeMap<String, TokenEntry>,
    /// Set once the file was read.
    was_read: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct TokenFileContent {
    tokens: Vec<TokenEntry>,
}

impl TokenFile {
    /// Makes the set of tokens that this file holds. A missing file holds none.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read: Mutex::default() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a token and returns it: the one time that it can be read.
    ///
    /// # Errors
    ///
    /// [`ServeError::Tokens`] for a file that cannot be read or written, a name that is taken, and a
    /// name or tenant that is none.
    pub fn add(&self, name: &str, tenant: &str, role: Role) -> Result<String, ServeError> {
        if !is_name(name) || !is_name(tenant) {
            let what = "a name and a tenant are 1 to 64 letters, digits, `-`, `_` or `.`, and \
                        begin with a letter or digit";
            return Err(self.failed(io::Error::other(what)));
        }
        let mut content = self.content()?;
        if content.tokens.iter().any(|it| it.name == name) {
            return Err(self.failed(io::Error::other(format!("there is a token named {name}"))));
        }
        let token = format!("{PREFIX}{}", random::hex(32)?);
        let (name, tenant, hash) = (name.to_owned(), tenant.into(), hash(&token));
        content.tokens.push(TokenEntry { name, tenant, role, hash });
        self.write(&content)?;
        Ok(token)
    }

    /// Lists the tokens in the order in which they were made.
    ///
    /// # Errors
    ///
    /// [`ServeError::Tokens`] for a file that cannot be read.
    pub fn list(&self) -> Result<Vec<TokenEntry>, ServeError> {
        Ok(self.content()?.tokens)
    }

    /// Takes a token away; `false` where there is none of this name. A server that runs notices within
    /// a second.
    ///
    /// # Errors
    ///
    /// [`ServeError::Tokens`] for a file that cannot be read or written.
    pub fn remove(&self, name: &str) -> Result<bool, ServeError> {
        let mut content = self.content()?;
        let before = content.tokens.len();
        content.tokens.retain(|it| it.name != name);
        let is_gone = content.tokens.len() < before;
        if is_gone {
            self.write(&content)?;
        }
        Ok(is_gone)
    }

    /// Returns whose token this is. To be called where the disk may be waited for. While the file cannot be read, no
    /// token is valid.
    pub(crate) fn bearer(&self, token: &str) -> Option<TokenEntry> {
        self.refresh();
        let hash = hash(token);
        self.lock().by_hash.get(&hash).cloned()
    }

    /// Reads the file again if it is not as it was.
    fn refresh(&self) {
        let found = fs::metadata(&self.path).ok();
        let stamp = found.and_then(|it| Some((it.modified().ok()?, it.len())));
        let mut read = self.lock();
        if stamp.is_some() && read.stamp == stamp {
            return;
        }
        let tokens = self.content().map(|it| it.tokens).unwrap_or_else(|error| {
            tracing::error!(%error, "nobody is let in");
            Vec::new()
        });
        let by_hash = tokens.into_iter().map(|it| (it.hash.clone(), it)).collect();
        if read.was_read {
            report_changes(&read.by_hash, &by_hash);
        }
        (read.by_hash, read.stamp, read.was_read) = (by_hash, stamp, true);
    }

    fn content(&self) -> Result<TokenFileContent, ServeError> {
        let text = match fs::metadata(&self.path) {
            Ok(found) if MAX_FILE < found.len() => {
                return Err(self.failed(io::Error::other("it is longer than 1 MiB")));
            }
            Ok(found) if may_be_written_by_others(&found) => {
                let what = "others may write it: only its owner may (mode 0600)";
                return Err(self.failed(io::Error::other(what)));
            }
            Ok(_) => fs::read(&self.path).map_err(|it| self.failed(it))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(TokenFileContent::default());
            }
            Err(error) => return Err(self.failed(error)),
        };
        serde_json::from_slice(&text).map_err(|it| self.failed(it.into()))
    }

    fn write(&self, content: &TokenFileContent) -> Result<(), ServeError> {
        let text = serde_json::to_vec_pretty(content).map_err(|it| self.failed(it.into()))?;
        let file = files::write_whole(&self.path, &text).map_err(|it| self.failed(it))?;
        file.sync_all().map_err(|it| self.failed(it))
    }

    fn failed(&self, cause: io::Error) -> ServeError {
        ServeError::Tokens { path: self.path.clone(), cause }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ReadTokens> {
        // Whole values are put in, so a panic elsewhere spoils nothing.
        self.read.locked()
    }
}

/// Whether users other than the owner may write the file.
fn may_be_written_by_others(found: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o022 != 0
}

/// Logs what has changed in the file while the server runs. Every process of its user may write the file, commands of
/// sessions included, so that somebody who looks sees whom it lets in.
fn report_changes(before: &BTreeMap<String, TokenEntry>, after: &BTreeMap<String, TokenEntry>) {
    for (hash, it) in after.iter().filter(|it| before.get(it.0) != Some(it.1)) {
        let change = if before.contains_key(hash) { "changed" } else { "added" };
        let (name, tenant, role) = (&it.name, &it.tenant, it.role.name());
        tracing::warn!(name, %tenant, role, "a token was {change}");
    }
    for (_, it) in before.iter().filter(|it| !after.contains_key(it.0)) {
        tracing::warn!(name = it.name, tenant = %it.tenant, role = it.role.name(), "a token was taken away");
    }
}

fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

/// Returns whether a text can name a tenant: it is the name of a directory.
pub(crate) fn is_name(text: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    (1..=64).contains(&text.len())
        && text.bytes().all(is_plain)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    // REQ: SUR-5
    #[test]
    fn file_that_other_users_may_write_lets_nobody_in() {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::new(directory.path().join("tokens.json"));
        let token = file.add("laptop", "acme", Role::User).unwrap();
        assert!(file.bearer(&token).is_some());
        let mode = |mode| fs::set_permissions(file.path(), fs::Permissions::from_mode(mode));
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        for open in [0o620, 0o602, 0o666] {
            mode(open).unwrap();
            assert!(matches!(file.list(), Err(ServeError::Tokens { .. })), "{open:o}");
            let anew = TokenFile::new(file.path());
            assert!(anew.bearer(&token).is_none(), "{open:o}");
        }
        mode(0o644).unwrap();
        assert!(file.list().is_ok(), "it holds hashes of what cannot be guessed");
    }
}
