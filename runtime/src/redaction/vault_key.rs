//! The public key that secrets are sealed to, as settings have it.
//!
//! A text with a beginning of its own, so that the secret key is not taken for it, and with a check sum, since what was
//! sealed to a mistyped key nobody can open.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of a key.
const BYTES: usize = 32;

/// What the text of a public key begins with.
const PUBLIC: &str = "ennead-vault-public-";

/// What the text of a secret key begins with: a shape that is redacted.
pub(super) const SECRET: &str = "ennead-vault-secret-";

/// Digits of a key and of its check sum.
pub(super) const DIGITS: u32 = 2 * (BYTES as u32 + 4);

/// The public key of a vault: who knows it can put something in, and take nothing out.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VaultKey([u8; BYTES]);

/// A text that is not the key of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key of a vault is `{expected}` and {DIGITS} hexadecimal digits, as `ennead vault` makes it"
)]
pub struct NotAVaultKey {
    expected: &'static str,
}

impl VaultKey {
    /// Makes the key of these bytes.
    pub fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key.
    pub fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

/// Returns the text of a secret key, which is shown to nobody but the one who made it.
pub fn secret_key_text(key: &[u8; BYTES]) -> String {
    text(SECRET, key)
}

/// Reads the text of a secret key.
///
/// # Errors
///
/// [`NotAVaultKey`], which does not repeat the text.
pub fn read_secret_key(text: &str) -> Result<[u8; BYTES], NotAVaultKey> {
    read(SECRET, text)
}

fn text(begin: &str, key: &[u8; BYTES]) -> String {
    let sum = crc32fast::hash(key).to_be_bytes();
    let digits = key.iter().chain(&sum).map(|it| format!("{it:02x}"));
    std::iter::once(begin.to_owned()).chain(digits).collect()
}

fn read(begin: &'static str, whole: &str) -> Result<[u8; BYTES], NotAVaultKey> {
    let bytes = || {
        let digits = whole.trim().strip_prefix(begin)?.as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Vec<u8> = pairs.iter().map(byte).collect::<Option<_>>()?;
        let key = <[u8; BYTES]>::try_from(bytes.get(..BYTES)?).ok()?;
        // Also what is too long, in capitals or signed: there is but one spelling.
        (rest.is_empty() && text(begin, &key) == whole.trim()).then_some(key)
    };
    bytes().ok_or(NotAVaultKey { expected: begin })
}

impl TryFrom<String> for VaultKey {
    type Error = NotAVaultKey;

    fn try_from(text: String) -> Result<Self, NotAVaultKey> {
        read(PUBLIC, &text).map(Self)
    }
}

impl From<VaultKey> for String {
    fn from(key: VaultKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(PUBLIC, &self.0))
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VaultKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; BYTES] = *b"0123456789abcdefghijklmnopqrstuv";

    // REQ: SES-8
    #[test]
    fn key_is_read_back_and_one_wrong_digit_is_seen() {
        let text = VaultKey(KEY).to_string();
        assert_eq!(text.len(), PUBLIC.len() + 72);
        assert_eq!(VaultKey::try_from(format!(" {text}\n")), Ok(VaultKey(KEY)));
        for at in PUBLIC.len()..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert!(VaultKey::try_from(wrong.clone()).is_err(), "{wrong}");
        }
        let capitals = format!("{PUBLIC}{}", text[PUBLIC.len()..].to_uppercase());
        for wrong in ["", PUBLIC, "x", &text[1..], &format!("{text}00"), &capitals] {
            assert!(VaultKey::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    // REQ: SES-8
    #[test]
    fn secret_key_is_no_public_one_and_is_not_repeated() {
        let secret = secret_key_text(&KEY);
        assert_eq!(read_secret_key(&secret), Ok(KEY));
        let error = VaultKey::try_from(secret.clone()).unwrap_err().to_string();
        assert!(error.contains(PUBLIC) && !error.contains(&secret[30..]), "{error}");
        assert!(read_secret_key(&VaultKey(KEY).to_string()).is_err());
    }
}
