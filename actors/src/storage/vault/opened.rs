//! Opening a vault, by the holder of its secret key.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use crypto_box::{SecretKey, aead::OsRng};
use ennead_runtime::{
    redaction::{NotAVaultKey, VaultKey, read_secret_key, secret_key_text},
    transcript::restore::{Restorations, SecretsTaken},
};
use serde::Deserialize;

use super::name_of;

/// Makes a key pair. Returns the text of its secret key, and that of its public key for the settings.
pub fn new_vault_key() -> (String, String) {
    let secret = SecretKey::generate(&mut OsRng);
    (secret_key_text(&secret.to_bytes()), public_of(&secret).to_string())
}

/// Returns the public key that belongs to the text of a secret key.
///
/// # Errors
///
/// [`NotAVaultKey`].
pub fn public_vault_key(text: &str) -> Result<VaultKey, NotAVaultKey> {
    secret_key(text).map(|it| public_of(&it))
}

fn public_of(secret: &SecretKey) -> VaultKey {
    VaultKey::new(secret.public_key().to_bytes())
}

/// Reads a secret key; lines that begin with `#` are comments.
fn secret_key(text: &str) -> Result<SecretKey, NotAVaultKey> {
    let is_said = |it: &&str| !it.is_empty() && !it.starts_with('#');
    let line = text.lines().map(str::trim).find(is_said).unwrap_or_default();
    read_secret_key(line).map(SecretKey::from)
}

/// Secret keys, each with the name of its public key.
pub(crate) struct VaultKeys(Vec<(String, SecretKey)>);

/// What was found in a vault.
#[derive(Debug, Default)]
pub(crate) struct OpenedVault {
    /// What was taken out of the transcript.
    pub(crate) known: Restorations,
    pub(crate) n_opened: usize,
    /// Entries that are sealed to other keys.
    pub(crate) n_foreign: usize,
    /// Lines that are not entries, or not as they were written.
    pub(crate) n_damaged: usize,
    /// The last entry is not whole: the process was ended while it wrote.
    pub(crate) is_torn: bool,
}

#[derive(Deserialize)]
struct VaultEntry<'a> {
    v: u32,
    #[serde(borrow)]
    key: &'a str,
    #[serde(borrow)]
    sealed: &'a str,
}

enum ReadEntry {
    Opened(SecretsTaken),
    Foreign,
    Damaged,
}

impl VaultKeys {
    /// Reads the texts of secret keys.
    ///
    /// # Errors
    ///
    /// [`NotAVaultKey`].
    pub(crate) fn read(texts: &[String]) -> Result<Self, NotAVaultKey> {
        let key = |text: &String| {
            let secret = secret_key(text)?;
            Ok((name_of(&public_of(&secret)), secret))
        };
        texts.iter().map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Opens what can be opened of a vault.
    pub(crate) fn open(&self, vault: &[u8]) -> OpenedVault {
        let mut opened = OpenedVault::default();
        for line in vault.split_inclusive(|it| *it == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match self.entry(line) {
                ReadEntry::Opened(taken) => {
                    opened.n_opened += 1;
                    opened.known.extend([taken]);
                }
                ReadEntry::Foreign => opened.n_foreign += 1,
                ReadEntry::Damaged if !line.ends_with(b"\n") => opened.is_torn = true,
                ReadEntry::Damaged => opened.n_damaged += 1,
            }
        }
        opened
    }

    fn entry(&self, line: &[u8]) -> ReadEntry {
        let Ok(VaultEntry { v: 1, key, sealed }) = serde_json::from_slice(line) else {
            return ReadEntry::Damaged;
        };
        let Some((_, secret)) = self.0.iter().find(|it| it.0 == key) else {
            return ReadEntry::Foreign;
        };
        let taken = || {
            let bytes = secret.unseal(&STANDARD.decode(sealed).ok()?).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        taken().map_or(ReadEntry::Damaged, ReadEntry::Opened)
    }
}

impl OpenedVault {
    /// Returns whether there is something in it, and nothing that these keys open.
    pub(crate) fn is_of_other_keys(&self) -> bool {
        self.n_opened == 0 && 0 < self.n_foreign
    }

    /// Returns what of the vault cannot be used, in words.
    pub(crate) fn gaps(&self) -> Vec<String> {
        let counted = [(self.n_foreign, "sealed to another key"), (self.n_damaged, "damaged")];
        let gap = |(n, what)| match n {
            0 => None,
            1 => Some(format!("1 entry is {what}")),
            n => Some(format!("{n} entries are {what}")),
        };
        let torn = self.is_torn.then(|| "the last entry is not whole".to_owned());
        counted.into_iter().filter_map(gap).chain(torn).collect()
    }
}
