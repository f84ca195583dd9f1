//! Glob patterns that a model or a repository wrote.
//!
//! Reading a glob descends once for each brace that is open, and its regular expression grows with it:
//! some ten thousand open braces end the process, where no supervisor is asked. So both are bounded
//! before anything reads the pattern.

use globset::{GlobBuilder, GlobSet};

/// Bytes of one pattern at most.
pub(crate) const MAX_BYTES: usize = 4_096;

/// Braces that may be open at one place of a pattern.
pub(crate) const MAX_DEPTH: usize = 16;

/// Why a pattern is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadGlob {
    /// The pattern has more bytes than [`MAX_BYTES`].
    #[error("a pattern has at most {MAX_BYTES} bytes, this one has {0}")]
    TooLong(usize),
    /// The pattern has more open braces than [`MAX_DEPTH`].
    #[error("a pattern has at most {MAX_DEPTH} braces inside one another")]
    TooDeep,
    /// It cannot be read, or is too large when it is.
    #[error(transparent)]
    Unreadable(#[from] globset::Error),
}

/// Checks whether a pattern is short and flat enough to be read. Escapes and classes are not looked at: a brace in them
/// counts as well.
pub(crate) fn check(pattern: &str) -> Result<(), BadGlob> {
    if MAX_BYTES < pattern.len() {
        return Err(BadGlob::TooLong(pattern.len()));
    }
    let mut depth = 0_usize;
    for byte in pattern.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if MAX_DEPTH < depth {
            return Err(BadGlob::TooDeep);
        }
    }
    Ok(())
}

/// Reads a pattern whose `*` stays within a directory.
pub(crate) fn compile(pattern: &str) -> Result<GlobSet, BadGlob> {
    check(pattern)?;
    let glob = GlobBuilder::new(pattern).literal_separator(true).build()?;
    // A single matcher panics where its expression is too large; a set says so.
    Ok(GlobSet::builder().add(glob).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-1
    #[test]
    fn bounds_are_exact_and_hostile_patterns_are_errors() {
        let nested = |n: usize| format!("{}b{}", "{a,".repeat(n), "}".repeat(n));
        assert!(compile(&nested(MAX_DEPTH)).unwrap().is_match("b"));
        assert!(matches!(compile(&nested(MAX_DEPTH + 1)), Err(BadGlob::TooDeep)));
        assert!(matches!(compile(&nested(40_000)), Err(BadGlob::TooLong(_))));
        assert!(compile(&"x".repeat(MAX_BYTES)).is_ok());
        assert!(matches!(compile(&"x".repeat(MAX_BYTES + 1)), Err(BadGlob::TooLong(_))));
        for odd in ["{a", "a}", "[", "{a,{b}", "[z-a]"] {
            assert!(matches!(compile(odd), Err(BadGlob::Unreadable(_)) | Ok(_)), "{odd}");
        }
        for part in ["**/", "{a,b}", "[a-z]", "*?", "/**"] {
            let _read = compile(&part.repeat(MAX_BYTES / part.len()));
        }
    }
}
