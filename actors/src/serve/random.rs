//! Random bytes from the operating system, for tokens and ids that cannot be guessed.

use std::{fmt::Write, fs::File, io::Read};

use super::ServeError;

/// Returns `n` random bytes in hexadecimal.
pub(crate) fn hex(n: usize) -> Result<String, ServeError> {
    let mut bytes = vec![0; n];
    let mut source = File::open("/dev/urandom").map_err(ServeError::Random)?;
    source.read_exact(&mut bytes).map_err(ServeError::Random)?;
    let mut text = String::with_capacity(2 * n);
    for byte in bytes {
        // Writing to a string does not fail.
        let _written = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Makes a UUID of version 4.
pub(crate) fn uuid() -> Result<String, ServeError> {
    let hex = hex(16)?;
    let variant = match hex.as_bytes()[16] {
        b'0' | b'4' | b'8' | b'c' => '8',
        b'1' | b'5' | b'9' | b'd' => '9',
        b'2' | b'6' | b'a' | b'e' => 'a',
        _ => 'b',
    };
    let (a, b, c) = (&hex[..8], &hex[8..12], &hex[13..16]);
    let (d, e) = (&hex[17..20], &hex[20..]);
    Ok(format!("{a}-{b}-4{c}-{variant}{d}-{e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-5
    #[test]
    fn uuid_says_its_version_and_variant() {
        let id = uuid().unwrap();
        let groups: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        assert_ne!(id, uuid().unwrap());
    }
}
