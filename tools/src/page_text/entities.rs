//! Names for characters in HTML.

use std::borrow::Cow;

/// Bytes of a reference that are looked at.
const MAX_REFERENCE: usize = 12;

/// The names of the characters from U+00A0 to U+00FF, in order.
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 \
     sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml \
     Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml \
     times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave \
     eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute \
     ucirc uuml yacute thorn yuml";

/// Other names, as pages use them.
const OTHERS: [(&str, char); 58] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("OElig", 'Œ'),
    ("oelig", 'œ'),
    ("Scaron", 'Š'),
    ("scaron", 'š'),
    ("fnof", 'ƒ'),
    ("alpha", 'α'),
    ("beta", 'β'),
    ("gamma", 'γ'),
    ("delta", 'δ'),
    ("epsilon", 'ε'),
    ("lambda", 'λ'),
    ("mu", 'μ'),
    ("pi", 'π'),
    ("sigma", 'σ'),
    ("phi", 'φ'),
    ("omega", 'ω'),
    ("Delta", 'Δ'),
    ("Sigma", 'Σ'),
    ("Omega", 'Ω'),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("bull", '•'),
    ("hellip", '…'),
    ("permil", '‰'),
    ("prime", '′'),
    ("lsaquo", '‹'),
    ("rsaquo", '›'),
    ("euro", '€'),
    ("trade", '™'),
    ("larr", '←'),
    ("uarr", '↑'),
    ("rarr", '→'),
    ("darr", '↓'),
    ("harr", '↔'),
    ("rArr", '⇒'),
    ("forall", '∀'),
    ("part", '∂'),
    ("infin", '∞'),
    ("asymp", '≈'),
    ("ne", '≠'),
    ("le", '≤'),
    ("ge", '≥'),
    ("check", '✓'),
    ("grave", '`'),
];

/// Replaces the references to characters in a text. One that is not known stays as it is.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'&', text.as_bytes()) {
        if at < copied {
            continue;
        }
        if let Some((c, end)) = reference(text, at + 1) {
            out.push_str(&text[copied..at]);
            out.push(c);
            copied = end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the character of the reference that begins after its `&`, and where that ends.
fn reference(text: &str, from: usize) -> Option<(char, usize)> {
    let after = text.as_bytes().get(from..)?;
    let length = after.iter().take(MAX_REFERENCE).position(|it| *it == b';')?;
    let name = text.get(from..from + length)?;
    let c = match name.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named(name)?,
    };
    Some((c, from + length + 1))
}

fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    let code = code.ok()?;
    Some(char::from_u32(code).filter(|it| *it != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn named(name: &str) -> Option<char> {
    if let Some((_, c)) = OTHERS.iter().find(|it| it.0 == name) {
        return Some(*c);
    }
    let at = LATIN.split_ascii_whitespace().position(|it| it == name)?;
    char::from_u32(0xa0 + u32::try_from(at).ok()?)
}
