//! When two names mean one model.
//!
//! Reasoning is signed by a model, not by a name: `claude-opus-4-8`,
//! `us.anthropic.claude-opus-4-8-v1:0` and `claude-opus-4-8@20260101` read each other's signatures.

use crate::catalogue::canonical;

/// Returns whether two names mean one model. A date in one name alone, or none at all, is not a difference.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let dates = (date(one), date(other));
    let names = (canonical(last(one)), canonical(last(other)));
    names.0 == names.1 && (dates.0 == dates.1 || dates.0.is_none() || dates.1.is_none())
}

/// The last part of a path or of a resource name.
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn date(name: &str) -> Option<&str> {
    name.split(['-', '@', '[']).find(|it| is_date(it))
}

fn is_date(text: &str) -> bool {
    text.len() == 8 && text.starts_with("20") && text.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-8
    #[test]
    fn a_model_is_the_same_under_all_its_names() {
        for name in [
            "claude-opus-4-8",
            "claude-opus-4-8-20260101",
            "claude-opus-4-8@20260101",
            "claude-opus-4-8[1m]",
            "anthropic.claude-opus-4-8",
            "us.anthropic.claude-opus-4-8-20260101-v1:0",
            "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-8-v1:0",
            "anthropic/claude-opus-4-8",
        ] {
            assert!(is_same(name, "claude-opus-4-8"), "{name}");
        }
    }

    // REQ: MDL-8
    #[test]
    fn other_models_and_other_dates_are_not_the_same() {
        assert!(!is_same("claude-opus-4-8", "claude-opus-4-7"));
        assert!(!is_same("claude-opus-4-8-20260101", "claude-opus-4-8@20260202"));
        assert!(is_same("claude-opus-4-8-20260101", "anthropic.claude-opus-4-8-20260101-v1:0"));
        assert!(is_same("", ""));
    }
}
