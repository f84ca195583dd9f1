//! Escapes of `$'…'`, as the manual of bash lists them under "ANSI-C Quoting".

/// Decodes the text; `None` for an escape whose meaning differs between versions of bash.
pub(super) fn decoded(inside: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = inside.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let decoded = match rest.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' | 'E' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            c @ ('\\' | '\'' | '"' | '?') => c,
            'c' => {
                let c = rest.next()?;
                if !c.is_ascii() || c == '\\' {
                    return None;
                }
                char::from(c.to_ascii_uppercase() as u8 & 0x1f)
            }
            'x' => number(&mut rest, 16, 2, 0).and_then(byte)?,
            'u' => number(&mut rest, 16, 4, 0).and_then(char::from_u32)?,
            'U' => number(&mut rest, 16, 8, 0).and_then(char::from_u32)?,
            c if c.is_digit(8) => {
                let first = c.to_digit(8)?;
                number(&mut rest, 8, 2, first).and_then(|it| byte(it & 0xff))?
            }
            c => {
                out.push('\\');
                c
            }
        };
        // The text ends there.
        if decoded == '\0' {
            return None;
        }
        out.push(decoded);
    }
    Some(out)
}

/// Up to `most` digits after `value`; `None` when `value` is 0 and there is none.
fn number(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    most: usize,
    value: u32,
) -> Option<u32> {
    let mut value = value;
    let mut n_read = 0;
    while n_read < most
        && let Some(digit) = rest.peek().and_then(|it| it.to_digit(radix))
    {
        value = value.checked_mul(radix)?.checked_add(digit)?;
        n_read += 1;
        rest.next();
    }
    (n_read > 0 || radix == 8).then_some(value)
}

/// One byte; above ASCII it is a piece of a character that this does not put together.
fn byte(value: u32) -> Option<char> {
    (value < 0x80).then_some(value).and_then(char::from_u32)
}
