//! What a row of the table of shapes says.

use super::{check::SecretCheck, class::ByteClass};

pub use super::rows::TABLE;

pub(super) const DIGIT_LETTER: ByteClass = ByteClass::new(b"0-9A-Za-z", b"");
pub(super) const WORD: ByteClass = ByteClass::new(b"0-9A-Za-z", b"_");
pub(super) const URL64: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-_");
pub(super) const URL64_DOT: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-_.");
pub(super) const BASE64: ByteClass = ByteClass::new(b"0-9A-Za-z", b"+/=");
pub(super) const DASHED: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-");
pub(super) const HEX: ByteClass = ByteClass::new(b"0-9a-f", b"");
pub(super) const BASE32: ByteClass = ByteClass::new(b"A-Z2-7", b"");
pub(super) const UPPER: ByteClass = ByteClass::new(b"A-Z0-9", b"");
pub(super) const DOT: ByteClass = ByteClass::new(b"", b".");
pub(super) const COLON: ByteClass = ByteClass::new(b"", b":");
pub(super) const AT: ByteClass = ByteClass::new(b"", b"@");
pub(super) const BLANK: ByteClass = ByteClass::new(b"", b" ");
pub(super) const LETTER: ByteClass = ByteClass::new(b"A-Za-z", b"");
/// Between a name and its value in JSON, YAML, shell, headers and code, escaped quotes included.
pub(super) const SEPARATOR: ByteClass = ByteClass::new(b"", b" \t\"'\\`:=>,(");
pub(super) const QUOTE: ByteClass = ByteClass::new(b"", b" \t\"'\\`");
pub(super) const ASSIGN: ByteClass = ByteClass::new(b"", b":=,");
/// `token68` of RFC 9110, section 11.2.
pub(super) const TOKEN68: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-._~+/=");
/// The same without the dots of names in code.
pub(super) const OPAQUE: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-_~+/=");
pub(super) const PADDED: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-_=");
/// The user of RFC 3986, section 3.2.1.
pub(super) const USER: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-._~!&'*+,;=%");
/// The same for what follows the first colon; without brackets, so that a placeholder is none.
pub(super) const PASSWORD: ByteClass = ByteClass::new(b"0-9A-Za-z", b"-._~!&*+,;=%:");
/// What a key block may hold in a file, in a JSON string, or in front of whose lines a tool puts names
/// and numbers. No quote ends up inside of it, so that JSON stays JSON.
pub(super) const BLOCK: ByteClass =
    ByteClass::new(b"0-9A-Za-z", b" \t\r\n+/=-_:,.;()\\|").and_others();
/// The label of a key block's last line.
pub(super) const LABEL: ByteClass = ByteClass::new(b"A-Z0-9", b" ");

/// Bytes of a key block at most. One of 16,384 bits, the longest that OpenSSL makes, has 12.5 KiB.
pub(super) const MAX_BLOCK: usize = 16 * 1024;

/// A run of bytes of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteRun {
    pub(super) class: ByteClass,
    pub(super) min: u32,
    pub(super) max: u32,
    /// Whether it is taken out; else it is only in front of or after what is.
    pub(super) is_secret: bool,
}

/// What follows the beginning of a shape.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// These runs, one after the other. Each takes what it can, so one pass decides.
    Parts(&'static [ByteRun]),
    /// A block of lines up to its end line.
    Block,
}

/// The shape of one kind of secret: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct SecretRule {
    /// What its placeholders are named.
    pub kind: &'static str,
    /// The shape begins with one of these; at least three bytes.
    pub anchors: &'static [&'static str],
    /// Whether a letter or digit in front of the beginning means that it is none.
    pub(super) at_word: bool,
    /// Whether the beginning counts in capitals and small letters alike.
    pub(super) any_case: bool,
    /// Whether the beginning is taken out, too.
    pub(super) with_anchor: bool,
    pub(super) shape: Shape,
    pub(super) check: SecretCheck,
    /// Where the shape is documented.
    pub source: &'static str,
}

pub(super) const fn secret(class: ByteClass, min: u32, max: u32) -> ByteRun {
    ByteRun { class, min, max, is_secret: true }
}

pub(super) const fn around(class: ByteClass, min: u32, max: u32) -> ByteRun {
    ByteRun { class, min, max, is_secret: false }
}

/// Makes the rule of a token with a beginning of its own.
pub(super) const fn token(
    kind: &'static str,
    anchors: &'static [&'static str],
    parts: &'static [ByteRun],
    check: SecretCheck,
    source: &'static str,
) -> SecretRule {
    let shape = Shape::Parts(parts);
    SecretRule {
        kind,
        anchors,
        at_word: true,
        any_case: false,
        with_anchor: true,
        shape,
        check,
        source,
    }
}

/// Makes the rule of a value that is known by the name in front of it.
pub(super) const fn named(
    kind: &'static str,
    anchors: &'static [&'static str],
    parts: &'static [ByteRun],
    check: SecretCheck,
    source: &'static str,
) -> SecretRule {
    let shape = Shape::Parts(parts);
    SecretRule {
        kind,
        anchors,
        at_word: false,
        any_case: true,
        with_anchor: false,
        shape,
        check,
        source,
    }
}
