//! Paths in `file:` addresses, which programs that fetch read from the disk.

/// Returns the path in a `file:` address.
pub(super) fn file_url(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (at, scheme) = ["file:", "fileb:"].iter().find_map(|it| Some((lower.find(it)?, it)))?;
    let rest = text.get(at + scheme.len()..)?;
    let path = match rest.strip_prefix("//") {
        // Without a host, an expansion may be there.
        Some(rest) if rest.starts_with('$') => rest,
        Some(rest) => &rest[rest.find('/')?..],
        None => rest,
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|_| *byte == b'%').and_then(|it| str::from_utf8(it).ok());
        let decoded = hex.and_then(|it| u8::from_str_radix(it, 16).ok());
        rest = if decoded.is_some() { &tail[2..] } else { tail };
        bytes.push(decoded.unwrap_or(*byte));
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
