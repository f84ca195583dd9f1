//! What the characters of a shape must be beyond their number, so that names, words and data that look
//! alike are left as they are.

use base64::Engine as _;

/// Whether a text of the right characters is a secret.
pub(super) type SecretCheck = fn(&[u8]) -> bool;

/// Accepts anything of the shape.
pub(super) fn any(_: &[u8]) -> bool {
    true
}

/// Accepts digits and letters together: a word or a name of code has none of the first, a number none of the second.
pub(super) fn mixed(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_digit) && secret.iter().any(u8::is_ascii_alphabetic)
}

/// Accepts capitals and small letters together.
pub(super) fn both_cases(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_uppercase) && secret.iter().any(u8::is_ascii_lowercase)
}

/// Accepts digits and letters of both cases, as 40 random characters of base64 have.
pub(super) fn random(secret: &[u8]) -> bool {
    mixed(secret) && both_cases(secret) && no_example(secret)
}

/// Accepts all but the keys that the documentation of AWS gives as examples.
pub(super) fn no_example(secret: &[u8]) -> bool {
    !secret.ends_with(b"EXAMPLE") && !secret.ends_with(b"EXAMPLEKEY")
}

/// Accepts characters that look random: three digits, or a digit and letters of both cases.
pub(super) fn opaque(secret: &[u8]) -> bool {
    let n_digits = secret.iter().filter(|it| it.is_ascii_digit()).count();
    mixed(secret) && (3 <= n_digits || both_cases(secret))
}

/// Accepts a credential in a header: random characters, or name and password in base64 (RFC 7617).
pub(super) fn credential(secret: &[u8]) -> bool {
    opaque(secret) && 12 <= secret.len() || name_and_password(secret)
}

/// Name and password in base64 (RFC 7617).
fn name_and_password(secret: &[u8]) -> bool {
    let decoded = base64::engine::general_purpose::STANDARD.decode(secret).unwrap_or_default();
    let is_text = decoded.iter().all(|it| !it.is_ascii_control());
    is_text && decoded.iter().position(|it| *it == b':').is_some_and(|it| it + 1 < decoded.len())
}

/// Accepts a password that is written out: not the name of one, as in `:PASSWORD@`, and not stars.
pub(super) fn password(secret: &[u8]) -> bool {
    let is_name = secret.iter().all(|it| it.is_ascii_uppercase() || *it == b'_');
    let is_hidden = secret.iter().all(|it| *it == b'*' || *it == b'x' || *it == b'.');
    !is_name && !is_hidden
}

/// Accepts what follows the beginning of a token of three parts of which the second is a JSON object, too (RFC 7519):
/// in base64 each begins with `eyJ`.
pub(super) fn jwt(secret: &[u8]) -> bool {
    secret.split(|it| *it == b'.').nth(1).is_some_and(|it| it.starts_with(b"eyJ"))
}

/// Accepts a key block with a line of base64 in it: texts about such blocks have none.
pub(super) fn key_block(secret: &[u8]) -> bool {
    /// Characters of the shortest line that counts. Keys are wrapped at 64 (RFC 7468) or 70; the
    /// private part of a curve in one line has 48 at least.
    const LINE: usize = 40;
    let is_base64 = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=');
    let lines = secret.split(|it| !is_base64(it));
    lines.map(<[u8]>::len).any(|it| LINE <= it)
}
