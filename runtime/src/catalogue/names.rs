//! The many names of one model: with date, with platform, with region.

/// Regions in front of a name on `bedrock-runtime`.
const REGIONS: [&str; 7] = ["us", "eu", "apac", "jp", "au", "us-gov", "global"];

/// Returns the name without what platforms and dates add to it: `us.anthropic.claude-haiku-4-5-20251001-v1:0`,
/// `claude-haiku-4-5@20251001` and `claude-haiku-4-5-20251001` are all `claude-haiku-4-5`. Any other name comes back as
/// it is.
pub(crate) fn canonical(name: &str) -> &str {
    let name = name.trim();
    let name = name.strip_suffix("[1m]").unwrap_or(name);
    let name = without_region(name);
    let makers = ["anthropic.", "anthropic/", "openai/", "models/"];
    let name = makers.iter().find_map(|it| name.strip_prefix(it)).unwrap_or(name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let name = name.strip_suffix("-latest").unwrap_or(name);
    without_date(without_version(name))
}

/// Returns the name without a region such as `us.`.
pub(super) fn without_region(name: &str) -> &str {
    match name.split_once('.') {
        Some((region, name)) if REGIONS.contains(&region) => name,
        _ => name,
    }
}

/// Returns the name without a version such as `-v1` or `-v1:0`.
fn without_version(name: &str) -> &str {
    let major = |it| without_digits(it)?.strip_suffix("-v");
    let minor = |it| major(without_digits(it)?.strip_suffix(':')?);
    major(name).or_else(|| minor(name)).unwrap_or(name)
}

/// Without the digits at its end; `None` when there are none.
fn without_digits(name: &str) -> Option<&str> {
    let front = name.trim_end_matches(|it: char| it.is_ascii_digit());
    (front.len() < name.len()).then_some(front)
}

/// Returns the name without a date such as `-20251001` or `-2025-10-01`.
fn without_date(name: &str) -> &str {
    // A zero represents any digit.
    let fits = |rest: &str, form: &str| {
        rest.bytes().zip(form.bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            like => byte == like,
        })
    };
    let front = |form: &str| {
        let (front, rest) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        fits(rest, form).then_some(front)
    };
    front("-20000000").or_else(|| front("-2000-00-00")).unwrap_or(name)
}
