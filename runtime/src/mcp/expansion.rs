//! `${VAR}` and `${VAR:-default}` in a server's configuration.
//!
//! The environment is an argument. A variable that is not set and has no default stays as it is
//! written; the server is started all the same, and an alert names it.

/// Reads one variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces the variables of the text. Names that are not set and have no default are pushed to `unset`. What a
/// variable holds is not expanded again.
pub(crate) fn expand(text: &str, environment: Environment<'_>, unset: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        out.push_str(before);
        let Some((inner, after)) = reference[2..].split_once('}') else {
            rest = reference;
            break;
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match environment(name).or_else(|| default.map(str::to_owned)) {
            Some(value) if is_name(name) => out.push_str(&value),
            _ => {
                if is_name(name) {
                    unset.push(name.to_owned());
                }
                out.push_str(&reference[..inner.len() + 3]);
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
        && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expanded: &str, missing: &[&str]) {
        let environment = |name: &str| match name {
            "A" => Some("a ${B}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let mut unset = Vec::new();
        assert_eq!(expand(text, &environment, &mut unset), expanded, "{text}");
        assert_eq!(unset, missing, "{text}");
    }
    #[test]
    fn variables_have_their_value_or_their_default_or_stay() {
        check("${B:-https://d}/mcp", "https://d/mcp", &[]);
        check("${C}/mcp", "${C}/mcp", &["C"]);
        check("x${A}y${A}", "xa ${B}ya ${B}", &[]);
        check("${A:-d}${EMPTY:-d}${B:-}", "a ${B}", &[]);
    }

    #[test]
    fn what_is_no_reference_stays() {
        for text in ["", "$A", "${A", "${}", "${a b}", "${:-d}", "$${", "}{"] {
            check(text, text, &[]);
        }
    }
}
